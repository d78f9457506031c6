/* Additions in runs along the innermost axis: of one dtype (same_dtype), and of two (mixed). */
#include "cuda/elements.cuh"

/* --- One dtype. */

/* Additions of any layout whose operands have the sum's dtype and are aligned to their elements, added without
 * conversion. Switching on each operand's dtype takes 200 us for 2^26 elements on an H200, where float32 takes 130. */

/* Reads a scalar from the kernel's parameters. Loading it by address, like other operands, takes 2 us longer at 2^26
 * float32. */
__device__ static packed
scalar_of(const index_map &map, int operand)
{
    packed elements;
    UNROLLED
    for (unsigned k = 0; k < 4; ++k)
        elements.word[k] = reinterpret_cast<const uint32_t *>(map.scalar[operand])[k];
    return elements;
}

template <unsigned Size, unsigned Count, unsigned Runs>
__global__ static void
add_alikes(const char *a, const char *b, char *c, const __grid_constant__ index_map map)
{
    const uint32_t first = blockIdx.x * blockDim.x * map.runs_a_thread + threadIdx.x;
    run run[Runs];
    packed x[Runs], y[Runs];
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (r >= map.runs_a_thread || first + r * blockDim.x >= map.runs)
            break;
        run[r] = find_run<Count>(map, first + r * blockDim.x);
        x[r] = a ? load_same_dtype<Size, Count>(a + run[r].at[0], map.sides[0], run[r].count) : scalar_of(map, 0);
        y[r] = b ? load_same_dtype<Size, Count>(b + run[r].at[1], map.sides[1], run[r].count) : scalar_of(map, 1);
    }
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (r >= map.runs_a_thread || first + r * blockDim.x >= map.runs)
            break;
        store_same_dtype<Size, Count>(c + run[r].at[LAYOUT_SUM], add_same_dtype<Size>(map.component, x[r], y[r]),
                                      run[r].count);
    }
}

/* Loads the i-th element of a word, or one or more whole words if elements are that large. */
template <unsigned Size>
__device__ static void
load_into_word(packed &to, unsigned word, unsigned i, const char *from)
{
    if constexpr (Size >= 4)
        load_element<Size>(to, word, from);
    else {
        packed element = {};
        load_element<Size>(element, 0, from);
        to.word[word] |= element.word[0] << 8 * Size * i;
    }
}

/* Loads an operand's elements for a few neighbours of a dense sum, across axes: an innermost axis of a few elements,
 * for example 3, would cut most runs short. Dense inputs load as vectors, others element by element, in a loop over the
 * elements of a word; unrolled, it would add 30 KB to the int8 kernel. */
template <unsigned Size, unsigned Count>
__device__ static packed
gather(const index_map &map, int operand, const char *from, uint32_t first, unsigned count)
{
    constexpr unsigned A_WORD = Size < 4 ? 4 / Size : 1;
    const side &side = map.sides[operand];
    if (side.dense)
        return load_same_dtype<Size, Count>(from + static_cast<uint64_t>(first) * Size, side, count);
    const axis &inner = map.axes[0], &outer = map.axes[1];
    const int64_t on = outer.stride[operand] - (inner.extent - 1) * inner.stride[operand];
    const uint32_t row = divided(first, inner);
    uint32_t column = first - row * inner.extent, rows = row - divided(row, outer) * outer.extent;
    const char *at = from + offset_of(map, operand, first);
    packed elements = {};
    UNROLLED
    for (unsigned word = 0; word < Count / A_WORD; ++word)
        ROLLED
    for (unsigned i = word * A_WORD; i < (word + 1) * A_WORD; ++i) {
        if (i < count)
            load_into_word<Size>(elements, word, i % A_WORD, at);
        if (++column < inner.extent)
            at += inner.stride[operand];
        else if (++rows < outer.extent || map.dimensions == 2) {
            column = 0;
            at += on;
        } else {
            column = rows = 0;
            at = from + offset_of(map, operand, first + i + 1);
        }
    }
    return elements;
}

template <unsigned Size, unsigned Count>
__global__ static void
add_gathered(const char *a, const char *b, char *c, const __grid_constant__ index_map map)
{
    const uint32_t first = static_cast<uint32_t>(thread_number()) * Count;
    if (first >= map.runs)
        return;
    a = input_of(map, 0, a);
    b = input_of(map, 1, b);
    const unsigned count = map.runs - first < Count ? map.runs - first : Count;
    const packed x = gather<Size, Count>(map, 0, a, first, count), y = gather<Size, Count>(map, 1, b, first, count);
    store_same_dtype<Size, Count>(c + static_cast<uint64_t>(first) * Size, add_same_dtype<Size>(map.component, x, y),
                                  count);
}

static bool
takes_same(const struct strided *add, const struct layout *layout, const char *const at[])
{
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        if (add->dtype[k] != add->sum || !is_aligned(layout, k, at[k], 1, dtype_table[add->sum].itemsize))
            return false;
    return true;
}

/* Runs per thread: of one element each, and of several. */
enum { RUNS_OF_ONE = 4, RUNS_OF_MORE = 2 };

/* Whether the innermost axis is too short for runs, and the sum is dense and aligned. */
static bool
takes_gathering(const struct strided *add, const struct layout *layout, const char *const at[])
{
    return layout->ndim > 1 && layout->extent[0] < LONG_AXIS &&
           layout_is_dense(layout, LAYOUT_SUM, dtype_table[add->sum].itemsize) &&
           reinterpret_cast<uintptr_t>(at[LAYOUT_SUM]) % 16 == 0;
}

static cudaError_t
launch_same(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    return with_size(dtype_table[add->sum].itemsize, [=](auto size) {
        constexpr unsigned SIZE = decltype(size)::value, COUNT = 16 / SIZE;
        if constexpr (COUNT > 1) {
            if (takes_runs(add, layout, at, COUNT, false))
                return launch_form(add_alikes<SIZE, COUNT, RUNS_OF_MORE>, COUNT, RUNS_OF_MORE, add, layout, at, stream);
            if (takes_gathering(add, layout, at))
                return launch_mapped(add_gathered<SIZE, COUNT>, index_map_of(add, layout, at, 1), COUNT, add, at,
                                     stream);
        }
        return launch_form(add_alikes<SIZE, 1, RUNS_OF_ONE>, 1, RUNS_OF_ONE, add, layout, at, stream);
    });
}

static cudaError_t
load_same(void)
{
    return load_sizes([](auto size) {
        constexpr unsigned SIZE = decltype(size)::value, COUNT = 16 / SIZE;
        if constexpr (COUNT > 1)
            return load(add_alikes<SIZE, 1, RUNS_OF_ONE>, add_alikes<SIZE, COUNT, RUNS_OF_MORE>,
                        add_gathered<SIZE, COUNT>);
        else
            return load(add_alikes<SIZE, 1, RUNS_OF_ONE>);
    });
}

const struct strided_form strided_same_dtype = {"same_dtype", takes_same, launch_same, load_same};

/* --- Two dtypes. */

/* Additions of two dtypes in vectors: threads convert the narrower operand to the sum's dtype in registers, and then
 * add operands of one dtype.
 *
 * The general kernel computes all integer sums in 64 bits and all complex sums in doubles, one element at a time: it
 * has 0.78 of torch's speed for complex64 + float32, 0.92 for int32 + int8 (H200). */

/* Copies the first element to all others. */
template <unsigned Size>
__device__ static void
spread(packed &elements)
{
    UNROLLED
    for (unsigned k = Size / 4; k < 4; ++k)
        elements.word[k] = elements.word[k % (Size / 4)];
}

template <unsigned Size>
__device__ static packed
load_side(const index_map &map, int operand, const char *from, unsigned count)
{
    const side &side = map.sides[operand];
    const unsigned loaded = side.spread ? 1 : count;
    return load_packed(from, side.itemsize * loaded, side.whole && (side.spread || count == 16 / Size));
}

template <unsigned Size>
__global__ static void
add_mixed(const char *a, const char *b, char *c, const __grid_constant__ index_map map)
{
    constexpr unsigned COUNT = 16 / Size;
    const uint32_t number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= map.runs)
        return;
    a = input_of(map, 0, a);
    b = input_of(map, 1, b);
    const run run = find_run<COUNT>(map, number);
    packed x = load_side<Size>(map, 0, a + run.at[0], run.count), y = load_side<Size>(map, 1, b + run.at[1], run.count);
    x = converted_run<Size, COUNT>(map, map.sides[0], x);
    y = converted_run<Size, COUNT>(map, map.sides[1], y);
    if (map.sides[0].spread)
        spread<Size>(x);
    if (map.sides[1].spread)
        spread<Size>(y);
    store_same_dtype<Size, COUNT>(c + run.at[LAYOUT_SUM], add_same_dtype<Size>(map.component, x, y), run.count);
}

static bool
takes_mixed(const struct strided *add, const struct layout *layout, const char *const at[])
{
    const struct dtype_row *sum = &dtype_table[add->sum];
    if (!is_convertible(add))
        return false;
    return takes_runs(add, layout, at, 16 / static_cast<unsigned>(sum->itemsize), true);
}

static cudaError_t
launch_mixed(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    if (dtype_table[add->sum].itemsize == 4)
        return launch_form(add_mixed<4>, 4, 1, add, layout, at, stream);
    return launch_form(add_mixed<8>, 2, 1, add, layout, at, stream);
}

static cudaError_t
load_mixed(void)
{
    return load(add_mixed<4>, add_mixed<8>);
}

const struct strided_form strided_mixed = {"mixed", takes_mixed, launch_mixed, load_mixed};
