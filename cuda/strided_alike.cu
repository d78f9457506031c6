/* Additions of any layout whose operands are of the sum's own dtype, aligned to their elements: they are added as they
 * are. Asking each for its dtype takes 200 us of 2^26 elements on an H200, where float32 moves in 130. */
#include "strided_alike.cuh"

#include <type_traits>

#include "elements.cuh"
#include "lanes.cuh"
#include "walk.cuh"

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
load_alike(const char *from, const side &side, unsigned count)
{
    packed<16> elements = {};
    if (Count == 1 || side.spread)
        for (unsigned i = 0; i < Count; ++i)
            load_element<Size>(elements, i, from);
    else if (side.whole && count == Count)
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
        x[r] = load_alike<Size, Count>(a + run[r].at[0], walk.sides[0], run[r].count);
        y[r] = load_alike<Size, Count>(b + run[r].at[1], walk.sides[1], run[r].count);
    }
    UNROLLED
    for (unsigned r = 0; r < Runs; ++r) {
        if (first + r * blockDim.x >= walk.runs)
            break;
        store_alike<Size, Count>(c + run[r].at[LAYOUT_SUM], add_alike<Size>(walk.lane, x[r], y[r]), run[r].count);
    }
}

/* A few neighbours of a dense sum, across as many axes as there are: where an innermost axis of a few elements, 3 say,
 * would leave most runs cut short. Inputs are dense as well, or come one by one. */
template <unsigned Size, unsigned Count>
__device__ static packed<16>
gather(const walk &walk, int operand, const char *from, uint32_t first, unsigned count)
{
    const side &side = walk.sides[operand];
    if (side.dense)
        return load_alike<Size, Count>(from + static_cast<uint64_t>(first) * Size, side, count);
    packed<16> elements = {};
    for (unsigned i = 0; i < Count; ++i)
        if (i < count)
            load_element<Size>(elements, i, from + offset_of(walk, operand, first + i));
    return elements;
}

template <unsigned Size, unsigned Count>
__global__ static void
strided_gathered(const char *a, const char *b, char *c, const __grid_constant__ walk walk)
{
    const uint32_t first = static_cast<uint32_t>(thread_number()) * Count;
    if (first >= walk.runs)
        return;
    if (!a)
        a = reinterpret_cast<const char *>(walk.scalar[0]);
    if (!b)
        b = reinterpret_cast<const char *>(walk.scalar[1]);
    const unsigned count = walk.runs - first < Count ? walk.runs - first : Count;
    const packed<16> x = gather<Size, Count>(walk, 0, a, first, count),
                     y = gather<Size, Count>(walk, 1, b, first, count);
    store_alike<Size, Count>(c + static_cast<uint64_t>(first) * Size, add_alike<Size>(walk.lane, x, y), count);
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

bool
strided_alike_takes(const struct strided *add, const struct layout *layout, const char *const at[])
{
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        if (add->dtype[k] != add->sum || !is_aligned(layout, k, at[k], 1, dtype_table[add->sum].itemsize))
            return false;
    return true;
}

/* Runs of a thread in either form. */
enum { RUNS_OF_ONE = 4, RUNS_OF_MORE = 2 };

/* Whether the axis that goes on from neighbour to neighbour is too short for runs, and the sum dense and aligned. */
static bool
takes_gathering(const struct strided *add, const struct layout *layout, const char *const at[])
{
    return layout->ndim > 1 && layout->extent[0] < LONG_AXIS &&
           layout_is_dense(layout, LAYOUT_SUM, dtype_table[add->sum].itemsize) &&
           reinterpret_cast<uintptr_t>(at[LAYOUT_SUM]) % 16 == 0;
}

cudaError_t
strided_alike_launch(const struct strided *add, const struct layout *layout, const char *const at[],
                     cudaStream_t stream)
{
    return with_size(dtype_table[add->sum].itemsize, [=](auto size) {
        constexpr unsigned SIZE = decltype(size)::value, COUNT = 16 / SIZE;
        if constexpr (COUNT > 1) {
            if (takes_runs(add, layout, at, COUNT, false))
                return launch_form(strided_alike<SIZE, COUNT, RUNS_OF_MORE>, COUNT, RUNS_OF_MORE, add, layout, at,
                                   stream);
            if (takes_gathering(add, layout, at))
                return launch_form(strided_gathered<SIZE, COUNT>, 1, COUNT, add, layout, at, stream);
        }
        return launch_form(strided_alike<SIZE, 1, RUNS_OF_ONE>, 1, RUNS_OF_ONE, add, layout, at, stream);
    });
}

cudaError_t
strided_alike_load(void)
{
    cudaError_t error = cudaSuccess;
    for (size_t itemsize = 1; itemsize <= MOST_ITEMSIZE && error == cudaSuccess; itemsize *= 2)
        error = with_size(itemsize, [](auto size) {
            constexpr unsigned SIZE = decltype(size)::value, COUNT = 16 / SIZE;
            cudaError_t found = load(strided_alike<SIZE, 1, RUNS_OF_ONE>);
            if constexpr (COUNT > 1) {
                if (found == cudaSuccess)
                    found = load(strided_alike<SIZE, COUNT, RUNS_OF_MORE>);
                if (found == cudaSuccess)
                    found = load(strided_gathered<SIZE, COUNT>);
            }
            return found;
        });
    return error;
}
