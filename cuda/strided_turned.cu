/* Additions along another axis than the sum's, a.T + b, at any alignment, on short axes and of two dtypes: what
 * strided_tiles.cu leaves.
 *
 * A block adds a tile of 2048 elements, or of 1024. Each access is of one element, and neighbours in a warp are
 * neighbours in memory: the turned inputs are loaded along their own axis and go through shared memory. Tiles of 64 by
 * 32 float32 are nearly as fast as strided_tiles.cu's vectors (102 us for 2^25 on an H200, and 98), where elements that
 * a warp loads from 32 rows take 218. Where an axis is short, as the three channels of an image, tiles are as narrow as
 * it is. */
#include "cuda/mixed_dtypes.cuh"
#include "cuda/same_dtype.cuh"
#include "cuda/strided_forms.cuh"
#include "cuda/turned.cuh"

static constexpr unsigned BANKS = 32, MOST_PARTS = 2, A_THREAD = 4, TILE_BITS = 10, LEAST_BITS = 2;
static_assert(1 << TILE_BITS == A_THREAD * BLOCK && BLOCK >> (TILE_BITS - LEAST_BITS) == 1, "whole rows of threads");

/* A tile has one or two parts along axis 0, of 2^width by 2^height elements each, A_THREAD a thread; `pitch` elements
 * lie in shared memory from one row to the next: so many that a warp that stores columns meets few banks twice. */
struct tile_shape {
    uint32_t width, height, pitch;
};
static constexpr unsigned MOST_IN_SHARED = (MOST_PARTS << TILE_BITS) + (1 << (TILE_BITS - LEAST_BITS));

/* The parts of a tile. One would have too few loads in flight above three channels, where a row of threads is idle: 107
 * us in place of 84 for 2^25. Conversions have the registers of the other. */
__host__ __device__ static constexpr unsigned
parts_of(bool mixed)
{
    return mixed ? 1 : MOST_PARTS;
}

/* A thread's elements of a part, as many in a vector as fit. */
template <unsigned Size> struct elements {
    static constexpr unsigned PER = Size < 4 ? A_THREAD : 16 / Size, VECTORS = A_THREAD / PER;
    packed<16> vector[VECTORS];
};

template <typename Element, unsigned Size>
__device__ static void
load_each(elements<Size> &to, const char *from, int64_t step, uint32_t count)
{
    UNROLLED
    for (unsigned k = 0; k < A_THREAD; ++k)
        if (k < count)
            put_element(to.vector[k / elements<Size>::PER], k % elements<Size>::PER,
                        *reinterpret_cast<const Element *>(from + k * step));
}

/* Loads `count` elements, `step` bytes apart, as elements of the sum. */
template <unsigned Size, bool Mixed>
__device__ static elements<Size>
load_elements(const tiles &tiles, int operand, const char *from, int64_t step, uint32_t count)
{
    const side &side = tiles.map.sides[operand];
    elements<Size> loaded = {};
    if (!Mixed || side.itemsize == Size)
        load_each<element_of_size<Size>>(loaded, from, step, count);
    else if (side.itemsize == 1)
        load_each<uint8_t>(loaded, from, step, count);
    else if (side.itemsize == 2)
        load_each<uint16_t>(loaded, from, step, count);
    else
        load_each<uint32_t>(loaded, from, step, count);
    if constexpr (Mixed) {
        UNROLLED
        for (unsigned i = 0; i < elements<Size>::VECTORS; ++i)
            loaded.vector[i] = converted_run<Size, elements<Size>::PER>(tiles.map, side, loaded.vector[i]);
    }
    return loaded;
}

template <unsigned Size>
__device__ static void
add_to(elements<Size> &x, const elements<Size> &y, const tiles &tiles)
{
    UNROLLED
    for (unsigned i = 0; i < elements<Size>::VECTORS; ++i)
        x.vector[i] = add_inputs<Size>(tiles, x.vector[i], y.vector[i]);
}

/* Of A_THREAD elements, each `step` after the one before, how many lie below `left`. */
__device__ static uint32_t
count_below(uint32_t left, uint32_t first, uint32_t step)
{
    uint32_t count = 0;
    UNROLLED
    for (unsigned k = 0; k < A_THREAD; ++k)
        count += first + k * step < left;
    return count;
}

template <unsigned Size, bool Mixed>
__global__ static void
add_turned(const char *a, const char *b, char *c, const __grid_constant__ tiles tiles, tile_shape shape, bool both)
{
    using element = element_of_size<Size>;
    constexpr unsigned PER = elements<Size>::PER, PARTS = parts_of(Mixed);
    __shared__ element shared[MOST_IN_SHARED];
    const uint32_t part = 1u << shape.width;
    const tile tile = find_tile(tiles, PARTS * part, 1u << shape.height);
    const uint32_t left[] = {tiles.extent[0] - tile.first[0], tiles.extent[1] - tile.first[1]};
    if (!b)
        b = reinterpret_cast<const char *>(tiles.map.scalar[1]);
    a += tile.at[0];
    b += tile.at[1];
    c += tile.at[LAYOUT_SUM];

    /* Turned, a thread's elements lie along axis 0, `across` apart; straight, along axis 1, `down` apart. */
    const uint32_t across = BLOCK >> shape.height, down = BLOCK >> shape.width;
    const uint32_t i = threadIdx.x >> shape.height, j = threadIdx.x & ((1u << shape.height) - 1);
    const uint32_t p = threadIdx.x & (part - 1), q = threadIdx.x >> shape.width;
    elements<Size> x[PARTS], y[PARTS];
    uint32_t straight[PARTS];
    UNROLLED
    for (unsigned r = 0; r < PARTS; ++r) {
        const uint32_t from = r * part;
        const uint32_t turned = j < left[1] && from < left[0] ? count_below(left[0] - from, i, across) : 0;
        straight[r] = from + p < left[0] ? count_below(left[1], q, down) : 0;
        x[r] = load_elements<Size, Mixed>(tiles, 0, a + offset_in(tiles, 0, from + i, j), across * tiles.stride[0][0],
                                          turned);
        y[r] = load_elements<Size, Mixed>(
            tiles, 1, b + (both ? offset_in(tiles, 1, from + i, j) : offset_in(tiles, 1, from + p, q)),
            both ? across * tiles.stride[1][0] : down * tiles.stride[1][1], both ? turned : straight[r]);
    }
    UNROLLED
    for (unsigned r = 0; r < PARTS; ++r) {
        if (both)
            add_to(x[r], y[r], tiles);
        UNROLLED
        for (unsigned k = 0; k < A_THREAD; ++k)
            shared[j * shape.pitch + r * part + i + k * across] = element_of<element>(x[r].vector[k / PER], k % PER);
    }
    __syncthreads();
    UNROLLED
    for (unsigned r = 0; r < PARTS; ++r) {
        elements<Size> sum = {};
        UNROLLED
        for (unsigned k = 0; k < A_THREAD; ++k)
            put_element(sum.vector[k / PER], k % PER, shared[(q + k * down) * shape.pitch + r * part + p]);
        if (!both)
            add_to(sum, y[r], tiles);
        char *const to = c + offset_in(tiles, LAYOUT_SUM, r * part + p, q);
        UNROLLED
        for (unsigned k = 0; k < A_THREAD; ++k)
            if (k < straight[r])
                *reinterpret_cast<element *>(to + k * (down * tiles.stride[LAYOUT_SUM][1])) =
                    element_of<element>(sum.vector[k / PER], k % PER);
    }
}

static tile_bits
bits_of_elements(const struct layout &layout)
{
    return tile_bits(layout.extent[0], layout.extent[1], TILE_BITS, LEAST_BITS);
}

static bool
takes(const struct strided *add, const struct layout *layout, const char *const at[])
{
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        if (!is_aligned(layout, k, at[k], 1, dtype_table[add->dtype[k]].itemsize))
            return false;
    const bool same = add->dtype[0] == add->sum && add->dtype[1] == add->sum && add->dtype[LAYOUT_SUM] == add->sum;
    return (same || is_convertible(add)) && turning_of(add, layout).axis > 0 &&
           layout->extent[0] * dtype_table[add->sum].itemsize >= SECTOR &&
           bits_of_elements(turned_addition(add, layout, at).layout).is_full;
}

/* Calls visit(kernel) with the kernel of an element size. */
template <typename Visit>
static cudaError_t
with_kernel(size_t itemsize, bool mixed, Visit visit)
{
    return with_size(itemsize, [&](auto size) {
        constexpr unsigned SIZE = decltype(size)::value;
        if constexpr (SIZE == 4 || SIZE == 8)
            if (mixed)
                return visit(add_turned<SIZE, true>);
        return visit(add_turned<SIZE, false>);
    });
}

static cudaError_t
launch_any(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    const turned_addition turned(add, layout, at);
    const tile_bits bits = bits_of_elements(turned.layout);
    const uint32_t gap = BANKS >> bits.height;
    const bool mixed = add->dtype[0] != add->sum || add->dtype[1] != add->sum;
    const uint32_t width = parts_of(mixed) << bits.width;
    const tile_shape shape = {bits.width, bits.height, width + (gap > 1 ? gap : 1)};
    return with_kernel(dtype_table[add->sum].itemsize, mixed, [&](auto kernel) {
        return launch_tiles(kernel, turned, turned.in_tiles(width, 1u << bits.height), stream, shape, turned.both);
    });
}

static cudaError_t
load_all(void)
{
    return load_sizes([](auto size) {
        cudaError_t error = cudaSuccess;
        for (int mixed = 0; mixed < 2 && error == cudaSuccess; ++mixed)
            error = with_kernel(decltype(size)::value, mixed, [](auto kernel) { return load(kernel); });
        return error;
    });
}

const struct strided_form strided_turned = {"turned", takes, launch_any, load_all};
