/* strided: any layout, any dtypes, for what `tuned` (add.cu) does not take.
 *
 * Threads go through the sum in its own order. One form gives each of them a few elements at a block's distance, so
 * that a warp's loads of one element each lie side by side whatever the alignment; the other one a run of neighbours
 * along the innermost axis, in vectors, where every operand has that axis contiguous or is broadcast along it. What
 * dtypes the operands have is asked in each thread: all of a grid go the same way. */
#include <string.h>

#include "elements.cuh"
#include "kernels.h"
#include "lanes.cuh"
#include "launch.cuh"

#if VECADD_DOUBLE
#define UNROLLED
#else
#define UNROLLED _Pragma("unroll") /* or what the runs hold would be in local memory */
#endif

static constexpr unsigned BLOCK = 256;
static constexpr uint64_t MOST_ELEMENTS = INT32_MAX; /* a launch: thread numbers are divided as 32 bits */

struct axis {
    uint32_t extent;
    uint32_t magic, shift; /* n / extent == (n * magic / 2^32 + n) >> shift for every n below 2^31 */
    int64_t stride[LAYOUT_OPERANDS];
};

/* An operand of a grid. */
struct side {
    enum dtype dtype;
    unsigned itemsize;
    bool whole;  /* its runs are aligned, to their length or to 16 bytes */
    bool spread; /* every element of a run is the first one */
    bool
        rounded; /* to the sum's dtype, which has fewer bits than the values that are added: of the sum itself always */
};

/* What a grid needs to know: 2.7 KB, of the 4 that a kernel's parameters may have. */
struct walk {
    uint32_t runs;  /* in all; a run is up to Count elements of the innermost axis */
    uint32_t last;  /* elements of an innermost axis' last run */
    int dimensions; /* 1 or more */
    enum dtype sum;
    enum lane lane;
    unsigned wrap; /* integers: bits to the left of the sum's own */
    bool is_signed;
    side sides[LAYOUT_OPERANDS];
    alignas(MOST_ITEMSIZE) unsigned char scalar[LAYOUT_SUM][MOST_ITEMSIZE];
    struct axis axes[LAYOUT_DIMENSIONS];
};

struct run {
    int64_t at[LAYOUT_OPERANDS];
    unsigned count;
};

template <unsigned Count>
__device__ static run
find_run(const walk &walk, uint32_t number)
{
    run run = {{0, 0, 0}, Count};
    for (int i = 0; i < walk.dimensions; ++i) {
        const struct axis &axis = walk.axes[i];
        uint32_t index = number;
        if (i + 1 < walk.dimensions) {
            const uint32_t high = static_cast<uint32_t>(static_cast<uint64_t>(number) * axis.magic >> 32);
            number = (high + number) >> axis.shift;
            index -= number * axis.extent;
        }
        if (Count > 1 && i == 0 && index + 1 == axis.extent)
            run.count = walk.last;
        for (int k = 0; k < LAYOUT_OPERANDS; ++k)
            run.at[k] += static_cast<int64_t>(index) * axis.stride[k];
    }
    return run;
}

/* Bytes of a run: one element of any dtype, or vectors of at most two times 16. */
template <unsigned Count> static constexpr unsigned RUN_BYTES = Count == 1 ? MOST_ITEMSIZE : 32;

template <unsigned Count>
__device__ static packed<RUN_BYTES<Count>>
load_run(const char *from, const side &side, unsigned count)
{
    if (side.spread)
        return load_packed<RUN_BYTES<Count>>(from, side.itemsize, side.whole);
    return load_packed<RUN_BYTES<Count>>(from, side.itemsize * count, side.whole && count == Count);
}

template <typename Value>
static constexpr unsigned input_kinds = std::is_integral_v<Value>  ? INTEGERS
                                        : is_complex<Value>::value ? INTEGERS | FLOATS | COMPLEXES
                                                                   : INTEGERS | FLOATS;
template <typename Value>
static constexpr unsigned output_kinds = std::is_integral_v<Value> ? INTEGERS | FLOATS | COMPLEXES : FLOATS | COMPLEXES;

template <typename Value, unsigned Count>
__device__ static void
unpack(const walk &walk, const side &side, const packed<RUN_BYTES<Count>> &elements, Value (&values)[Count])
{
    with_dtype<input_kinds<Value>>(side.dtype, [&](auto element) {
        for (unsigned i = 0; i < Count; ++i)
            values[i] = value_of<Value>(walk.sum, element_of<decltype(element)>(elements, i));
    });
    if constexpr (std::is_same_v<Value, float>)
        if (side.rounded)
            for (unsigned i = 0; i < Count; ++i)
                values[i] = nearest_of(walk.sum, values[i]);
    if (Count > 1 && side.spread)
        for (unsigned i = 1; i < Count; ++i)
            values[i] = values[0];
}

template <typename Value>
__device__ static Value
add_values(const walk &walk, Value x, Value y)
{
    if constexpr (is_complex<Value>::value)
        return {x.re + y.re, x.im + y.im};
    else if constexpr (std::is_integral_v<Value>) {
        if (walk.sum == DTYPE_BOOL)
            return x | y;
        const uint64_t left = (x + y) << walk.wrap;
        return walk.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(left) >> walk.wrap) : left >> walk.wrap;
    } else if constexpr (std::is_same_v<Value, float>)
        return walk.sides[LAYOUT_SUM].rounded ? nearest_of(walk.sum, x + y) : x + y;
    else
        return x + y;
}

template <typename Value, unsigned Count>
__device__ static packed<RUN_BYTES<Count>>
pack(const walk &walk, const Value (&values)[Count])
{
    packed<RUN_BYTES<Count>> elements = {};
    with_dtype<output_kinds<Value>>(walk.sides[LAYOUT_SUM].dtype, [&](auto element) {
        using type = decltype(element);
        for (unsigned i = 0; i < Count; ++i)
            if constexpr (Count * sizeof(type) <= sizeof elements)
                put_element(elements, i, converted<type>(walk.sum, values[i]));
    });
    return elements;
}

template <typename Value, unsigned Count, unsigned Runs>
__global__ static void
strided(const char *a, const char *b, char *c, const __grid_constant__ walk walk)
{
    const uint32_t first = blockIdx.x * blockDim.x * Runs + threadIdx.x;
    if (!a)
        a = reinterpret_cast<const char *>(walk.scalar[0]);
    if (!b)
        b = reinterpret_cast<const char *>(walk.scalar[1]);
    run run[Runs];
    packed<RUN_BYTES<Count>> x[Runs], y[Runs];
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (first + r * blockDim.x >= walk.runs)
            break;
        run[r] = find_run<Count>(walk, first + r * blockDim.x);
        x[r] = load_run<Count>(a + run[r].at[0], walk.sides[0], run[r].count);
        y[r] = load_run<Count>(b + run[r].at[1], walk.sides[1], run[r].count);
    }
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (first + r * blockDim.x >= walk.runs)
            break;
        Value left[Count] = {}, right[Count] = {};
        unpack(walk, walk.sides[0], x[r], left);
        unpack(walk, walk.sides[1], y[r], right);
        for (unsigned i = 0; i < Count; ++i)
            left[i] = add_values(walk, left[i], right[i]);
        const side &side = walk.sides[LAYOUT_SUM];
        store_packed(c + run[r].at[LAYOUT_SUM], pack(walk, left), side.itemsize * run[r].count,
                     side.whole && run[r].count == Count);
    }
}

/* Operands of the sum's own dtype, aligned to their elements, are added as they are: asking each for its dtype takes
 * 200 us of 2^26 elements on an H200, where float32 moves in 130. */
template <unsigned Size>
__device__ static void
load_element(packed<16> &to, unsigned i, const char *from)
{
    if constexpr (Size == 1)
        put_element(to, i, *reinterpret_cast<const uint8_t *>(from));
    else if constexpr (Size == 2)
        put_element(to, i, *reinterpret_cast<const uint16_t *>(from));
    else if constexpr (Size == 4)
        put_element(to, i, *reinterpret_cast<const uint32_t *>(from));
    else if constexpr (Size == 8)
        put_element(to, i, *reinterpret_cast<const uint2 *>(from));
    else
        put_element(to, i, *reinterpret_cast<const uint4 *>(from));
}

template <unsigned Size, unsigned Count>
__device__ static packed<16>
load_alike(const char *from, bool spread, unsigned count)
{
    packed<16> elements = {};
    if (Count == 1 || spread)
        for (unsigned i = 0; i < Count; ++i)
            load_element<Size>(elements, i, from);
    else if (count == Count)
        load_element<16>(elements, 0, from);
    else
        for (unsigned i = 0; i < Count; ++i)
            if (i < count)
                load_element<Size>(elements, i, from + i * Size);
    return elements;
}

template <unsigned Size, unsigned Count>
__device__ static void
store_alike(char *to, const packed<16> &elements, unsigned count)
{
    constexpr unsigned RUN = Size * Count;
    if (count == Count)
        return store_packed(to, elements, RUN, true);
    for (unsigned i = 0; i < Count; ++i)
        if (i < count)
            for (unsigned k = 0; k < Size; ++k)
                to[i * Size + k] = static_cast<char>(element_of<uint8_t>(elements, i * Size + k));
}

template <typename Lane>
__device__ static packed<16>
add_units(const packed<16> &x, const packed<16> &y)
{
    using unit = typename Lane::unit;
    packed<16> sum = {};
    for (unsigned i = 0; i < sizeof sum / sizeof(unit); ++i)
        put_element(sum, i, Lane::add(element_of<unit>(x, i), element_of<unit>(y, i)));
    return sum;
}

template <unsigned Size>
__device__ static packed<16>
add_alike(enum lane lane, const packed<16> &x, const packed<16> &y)
{
    if constexpr (Size == 1)
        return lane == LANE_BOOL ? add_units<bool_lane>(x, y) : add_units<i8_lane>(x, y);
    else if constexpr (Size == 2)
        return lane == LANE_F16    ? add_units<f16_lane>(x, y)
               : lane == LANE_BF16 ? add_units<bf16_lane>(x, y)
                                   : add_units<i16_lane>(x, y);
    else if constexpr (Size == 4)
        return lane == LANE_F32 ? add_units<f32_lane>(x, y) : add_units<i32_lane>(x, y);
    else if constexpr (Size == 8)
        return lane == LANE_F32   ? add_units<f32_lane>(x, y)
               : lane == LANE_F64 ? add_units<f64_lane>(x, y)
                                  : add_units<i64_lane>(x, y);
    else
        return add_units<f64_lane>(x, y);
}

template <unsigned Size, unsigned Count, unsigned Runs>
__global__ static void
strided_alike(const char *a, const char *b, char *c, const __grid_constant__ walk walk)
{
    const uint32_t first = blockIdx.x * blockDim.x * Runs + threadIdx.x;
    if (!a)
        a = reinterpret_cast<const char *>(walk.scalar[0]);
    if (!b)
        b = reinterpret_cast<const char *>(walk.scalar[1]);
    run run[Runs];
    packed<16> x[Runs], y[Runs];
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (first + r * blockDim.x >= walk.runs)
            break;
        run[r] = find_run<Count>(walk, first + r * blockDim.x);
        x[r] = load_alike<Size, Count>(a + run[r].at[0], walk.sides[0].spread, run[r].count);
        y[r] = load_alike<Size, Count>(b + run[r].at[1], walk.sides[1].spread, run[r].count);
    }
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (first + r * blockDim.x >= walk.runs)
            break;
        store_alike<Size, Count>(c + run[r].at[LAYOUT_SUM], add_alike<Size>(walk.lane, x[r], y[r]), run[r].count);
    }
}

/* visit(Value()) with the kind of value that sums of this dtype are added as. */
template <typename Visit>
static auto
with_value(enum dtype sum, Visit visit)
{
    switch (sum) {
    case DTYPE_FLOAT16:
    case DTYPE_BFLOAT16:
    case DTYPE_FLOAT32:
        return visit(float());
    case DTYPE_FLOAT64:
        return visit(double());
    case DTYPE_COMPLEX64:
        return visit(complex_of<float>());
    case DTYPE_COMPLEX128:
        return visit(complex_of<double>());
    default:
        return visit(uint64_t());
    }
}

/* Elements of a run in vectors, and runs of a thread in either form. */
template <typename Value> static constexpr unsigned RUN = is_complex<Value>::value ? 2 : 4;
enum { RUNS_OF_ONE = 2, RUNS_OF_MORE = 1, ALIKE_RUNS_OF_ONE = 4, ALIKE_RUNS_OF_MORE = 2 };

/* A run that is cut short goes byte by byte: worth it where few are. */
enum { LONG_AXIS = 64 };

static bool
is_aligned(const struct layout *layout, int operand, const char *at, unsigned count, size_t itemsize)
{
    const size_t bytes = count * itemsize, due = bytes < 16 ? bytes : 16;
    uint64_t all = reinterpret_cast<uintptr_t>(at);
    for (int i = 0; i < layout->ndim; ++i)
        all |= static_cast<uint64_t>(layout->stride[operand][i]) * (i == 0 && count > 1 ? count : 1);
    return all % due == 0;
}

static bool
is_spread(const struct layout *layout, int operand)
{
    return layout->ndim == 0 || layout->stride[operand][0] == 0;
}

/* Whether the form that gives a thread `count` neighbours does it. */
static bool
takes_runs(const struct strided *add, const struct layout *layout, const char *const at[], unsigned count)
{
    if (layout->ndim == 0 || (layout->extent[0] % count != 0 && layout->extent[0] < LONG_AXIS))
        return false;
    for (int k = 0; k < LAYOUT_OPERANDS; ++k) {
        const size_t itemsize = dtype_table[add->dtype[k]].itemsize;
        if (k != LAYOUT_SUM && is_spread(layout, k))
            continue;
        if (layout->stride[k][0] != static_cast<ssize_t>(itemsize) || count * itemsize > RUN_BYTES<2> ||
            !is_aligned(layout, k, at[k], count, itemsize))
            return false;
    }
    return true;
}

/* floor(n / extent) by a product and a shift (Granlund and Montgomery, 1994): exact for n below 2^31. */
static void
set_extent(struct axis *axis, uint32_t extent)
{
    axis->extent = extent;
    axis->shift = 0;
    while ((uint64_t(1) << axis->shift) < extent)
        ++axis->shift;
    const uint64_t over = (uint64_t(1) << axis->shift) - extent;
    axis->magic = static_cast<uint32_t>((over << 32) / extent + 1);
}

static walk
walk_of(const struct strided *add, const struct layout *layout, const char *const at[], unsigned count)
{
    walk walk;
    const unsigned sum_bits = 8 * static_cast<unsigned>(dtype_table[add->sum].itemsize);
    const bool is_short = add->sum == DTYPE_FLOAT16 || add->sum == DTYPE_BFLOAT16;
    walk.sum = add->sum;
    walk.lane = dtype_table[add->sum].lane;
    walk.wrap = sum_bits < 64 ? 64 - sum_bits : 0;
    walk.is_signed = dtype_table[add->sum].typestr[1] == 'i';
    for (int k = 0; k < LAYOUT_OPERANDS; ++k) {
        side &side = walk.sides[k];
        side.dtype = add->dtype[k];
        side.itemsize = static_cast<unsigned>(dtype_table[side.dtype].itemsize);
        side.spread = k != LAYOUT_SUM && is_spread(layout, k);
        side.whole = is_aligned(layout, k, at[k], side.spread ? 1 : count, side.itemsize);
        side.rounded = is_short && (k == LAYOUT_SUM || side.dtype != add->sum);
    }
    for (int k = 0; k < LAYOUT_SUM; ++k)
        __builtin_memcpy(walk.scalar[k], add->scalar[k], MOST_ITEMSIZE);

    walk.dimensions = layout->ndim;
    uint64_t runs = 1;
    for (int i = 0; i < layout->ndim; ++i) {
        const uint64_t extent = static_cast<uint64_t>(layout->extent[i]), step = i == 0 ? count : 1;
        set_extent(&walk.axes[i], static_cast<uint32_t>((extent + step - 1) / step));
        for (int k = 0; k < LAYOUT_OPERANDS; ++k)
            walk.axes[i].stride[k] = layout->stride[k][i] * static_cast<int64_t>(step);
        runs *= walk.axes[i].extent;
    }
    walk.runs = static_cast<uint32_t>(runs);
    const uint64_t extent = layout->ndim ? static_cast<uint64_t>(layout->extent[0]) : 1;
    walk.last = extent % count ? static_cast<uint32_t>(extent % count) : count;
    return walk;
}

using kernel = void(const char *, const char *, char *, walk);

static cudaError_t
launch_form(kernel *form, unsigned count, unsigned runs, const struct strided *add, const struct layout *layout,
            const char *const at[], cudaStream_t stream)
{
    const walk walk = walk_of(add, layout, at, count);
    return launch(form, (uint64_t(walk.runs) + runs - 1) / runs, BLOCK, stream, add->is_scalar[0] ? nullptr : at[0],
                  add->is_scalar[1] ? nullptr : at[1], const_cast<char *>(at[LAYOUT_SUM]), walk);
}

/* visit(std::integral_constant) with an element's bytes. */
template <typename Visit>
static auto
with_size(size_t itemsize, Visit visit)
{
    switch (itemsize) {
    case 1:
        return visit(std::integral_constant<unsigned, 1>());
    case 2:
        return visit(std::integral_constant<unsigned, 2>());
    case 4:
        return visit(std::integral_constant<unsigned, 4>());
    case 8:
        return visit(std::integral_constant<unsigned, 8>());
    default:
        return visit(std::integral_constant<unsigned, 16>());
    }
}

static bool
are_alike(const struct strided *add, const struct layout *layout, const char *const at[])
{
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        if (add->dtype[k] != add->sum || !is_aligned(layout, k, at[k], 1, dtype_table[add->sum].itemsize))
            return false;
    return true;
}

static cudaError_t
launch_alike(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    return with_size(dtype_table[add->sum].itemsize, [=](auto size) {
        constexpr unsigned SIZE = decltype(size)::value, COUNT = 16 / SIZE;
        if (COUNT > 1 && takes_runs(add, layout, at, COUNT))
            return launch_form(strided_alike<SIZE, COUNT, ALIKE_RUNS_OF_MORE>, COUNT, ALIKE_RUNS_OF_MORE, add, layout,
                               at, stream);
        return launch_form(strided_alike<SIZE, 1, ALIKE_RUNS_OF_ONE>, 1, ALIKE_RUNS_OF_ONE, add, layout, at, stream);
    });
}

static cudaError_t
launch_piece(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    if (are_alike(add, layout, at))
        return launch_alike(add, layout, at, stream);
    return with_value(add->sum, [=](auto value) {
        using type = decltype(value);
        if (takes_runs(add, layout, at, RUN<type>))
            return launch_form(strided<type, RUN<type>, RUNS_OF_MORE>, RUN<type>, RUNS_OF_MORE, add, layout, at,
                               stream);
        return launch_form(strided<type, 1, RUNS_OF_ONE>, 1, RUNS_OF_ONE, add, layout, at, stream);
    });
}

/* Halves what is too large along its outermost axis, at a multiple of 4096 where there is one. */
static cudaError_t
launch_pieces(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    if (layout_size(layout) <= MOST_ELEMENTS)
        return launch_piece(add, layout, at, stream);
    struct layout half = *layout;
    const int outer = layout->ndim - 1;
    const ssize_t extent = layout->extent[outer], grain = extent > 8192 ? 4096 : 1;
    const ssize_t first = (extent / 2 + grain - 1) / grain * grain;
    half.extent[outer] = first;
    const cudaError_t error = launch_pieces(add, &half, at, stream);
    if (error != cudaSuccess)
        return error;
    const char *rest[LAYOUT_OPERANDS];
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        rest[k] = at[k] + first * layout->stride[k][outer];
    half.extent[outer] = extent - first;
    return launch_pieces(add, &half, rest, stream);
}

/* A number in the sum's own dtype, as far as C++ converts it as the kernel does: what is still of another one goes the
 * longer way. Integers are of 64 bits, of which the sum's are the first. */
static void
convert_scalar(struct strided *add, int k)
{
    unsigned char *element = add->scalar[k];
    const enum dtype from = add->dtype[k], to = add->sum;
    double parts[2] = {0, 0};
    float narrow[2];
    if (from == DTYPE_FLOAT64)
        __builtin_memcpy(parts, element, sizeof parts[0]);
    else if (from == DTYPE_COMPLEX128)
        __builtin_memcpy(parts, element, sizeof parts);
    else {
        if (from == DTYPE_UINT64 && strchr("iu", dtype_table[to].typestr[1]))
            add->dtype[k] = to;
        return;
    }
    narrow[0] = static_cast<float>(parts[0]), narrow[1] = static_cast<float>(parts[1]);
    if (to == DTYPE_FLOAT32 || to == DTYPE_COMPLEX64)
        __builtin_memcpy(element, narrow, sizeof narrow);
    else if (to == DTYPE_COMPLEX128)
        __builtin_memcpy(element, parts, sizeof parts);
    else
        return;
    add->dtype[k] = to;
}

cudaError_t
strided_launch(const struct strided *given, const void *a, const void *b, void *c, cudaStream_t stream)
{
    struct strided converted = *given;
    const struct strided *add = &converted;
    for (int k = 0; k < LAYOUT_SUM; ++k)
        if (converted.is_scalar[k] && converted.dtype[k] != converted.sum)
            convert_scalar(&converted, k);
    const char *at[] = {static_cast<const char *>(a), static_cast<const char *>(b), static_cast<const char *>(c)};
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        at[k] = k < LAYOUT_SUM && add->is_scalar[k] ? nullptr : at[k] + add->layout.offset[k];
    return launch_pieces(add, &add->layout, at, stream);
}

cudaError_t
strided_load(void)
{
    static constexpr enum dtype sums[] = {DTYPE_INT64, DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_COMPLEX64, DTYPE_COMPLEX128};
    cudaError_t error = cudaSuccess;
    for (enum dtype sum : sums)
        if (error == cudaSuccess)
            error = with_value(sum, [](auto value) {
                using type = decltype(value);
                const cudaError_t found = load(strided<type, RUN<type>, RUNS_OF_MORE>);
                return found == cudaSuccess ? load(strided<type, 1, RUNS_OF_ONE>) : found;
            });
    for (size_t itemsize = 1; itemsize <= MOST_ITEMSIZE && error == cudaSuccess; itemsize *= 2)
        error = with_size(itemsize, [](auto size) {
            constexpr unsigned SIZE = decltype(size)::value;
            const cudaError_t found = load(strided_alike<SIZE, 16 / SIZE, ALIKE_RUNS_OF_MORE>);
            return found == cudaSuccess ? load(strided_alike<SIZE, 1, ALIKE_RUNS_OF_ONE>) : found;
        });
    return error;
}
