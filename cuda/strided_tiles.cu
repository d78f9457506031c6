/* Additions of one dtype along another axis than the sum's, a.T + b and a.T + b.T, whose vectors are aligned.
 *
 * Element by element, a warp would load 32 sectors for 32 elements of a turned input. Here a thread loads a small
 * square of it, as vectors along its contiguous axis, and transposes the square in registers. If both inputs are
 * turned, it adds first and transposes the sum. No shared memory, no barrier. */
#include "cuda/same_dtype.cuh"
#include "cuda/strided_forms.cuh"
#include "cuda/turned.cuh"

/* Elements along a square's edge: one vector's, 8 at most, because a thread holds two squares in registers. */
template <unsigned Size> static constexpr unsigned EDGE = Size == 1 ? 8 : 16 / Size;

template <unsigned Size>
__device__ static void
load_square(packed<16> (&rows)[EDGE<Size>], const char *from, int64_t stride)
{
    UNROLLED
    for (unsigned i = 0; i < EDGE<Size>; ++i)
        rows[i] = load_packed<16>(from + i * stride, EDGE<Size> * Size, true);
}

/* Loads a square of the input that is contiguous along axis 0 or broadcast along it. */
template <unsigned Size>
__device__ static void
load_straight(packed<16> (&rows)[EDGE<Size>], const char *from, const tiles &tiles)
{
    if (tiles.stride[1][0] != 0)
        return load_square<Size>(rows, from, tiles.stride[1][1]);
    UNROLLED
    for (unsigned j = 0; j < EDGE<Size>; ++j)
        rows[j] = load_same_dtype<Size, EDGE<Size>>(from + j * tiles.stride[1][1], tiles.map.sides[1], EDGE<Size>);
}

template <unsigned Size>
__device__ static void
transpose(packed<16> (&rows)[EDGE<Size>])
{
    using element = element_of_size<Size>;
    packed<16> columns[EDGE<Size>];
    UNROLLED
    for (unsigned i = 0; i < EDGE<Size>; ++i)
        columns[i] = rows[i];
    UNROLLED
    for (unsigned j = 0; j < EDGE<Size>; ++j) {
        rows[j] = {};
        UNROLLED
        for (unsigned i = 0; i < EDGE<Size>; ++i)
            put_element(rows[j], i, element_of<element>(columns[i], j));
    }
}

template <unsigned Size>
__device__ static void
add_squares(packed<16> (&x)[EDGE<Size>], const packed<16> (&y)[EDGE<Size>], const tiles &tiles)
{
    UNROLLED
    for (unsigned i = 0; i < EDGE<Size>; ++i)
        x[i] = add_inputs<Size>(tiles, x[i], y[i]);
}

/* How a block's squares lie: 2^across by 2^down of them, a thread each; of a warp, 2^(5 - near) by 2^near. */
struct squares {
    uint32_t across, down, near;
};

template <unsigned Size, bool Both>
__global__ static void
add_tiles(const char *a, const char *b, char *c, const __grid_constant__ tiles tiles, squares squares)
{
    const uint32_t lanes = 5 - squares.near, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t warps = squares.across - lanes; /* 2^warps of them lie side by side */
    const uint32_t own[] = {
        ((lane >> squares.near) + ((warp & ((1u << warps) - 1)) << lanes)) * EDGE<Size>,
        ((lane & ((1u << squares.near) - 1)) + (warp >> warps << squares.near)) * EDGE<Size>,
    };
    const tile tile = find_tile(tiles, EDGE<Size> << squares.across, EDGE<Size> << squares.down);
    const uint32_t first[] = {tile.first[0] + own[0], tile.first[1] + own[1]};
    if (first[0] >= tiles.extent[0] || first[1] >= tiles.extent[1])
        return;
    if (!b)
        b = reinterpret_cast<const char *>(tiles.map.scalar[1]);
    a += tile.at[0] + offset_in(tiles, 0, own[0], own[1]);
    b += tile.at[1] + offset_in(tiles, 1, own[0], own[1]);
    c += tile.at[LAYOUT_SUM] + offset_in(tiles, LAYOUT_SUM, own[0], own[1]);

    const uint32_t left[] = {tiles.extent[0] - first[0], tiles.extent[1] - first[1]};
    if (left[0] >= EDGE<Size> && left[1] >= EDGE<Size>) {
        packed<16> x[EDGE<Size>], y[EDGE<Size>];
        load_square<Size>(x, a, tiles.stride[0][0]);
        if constexpr (Both) {
            load_square<Size>(y, b, tiles.stride[1][0]);
            add_squares<Size>(x, y, tiles);
            transpose<Size>(x);
        } else {
            load_straight<Size>(y, b, tiles);
            transpose<Size>(x);
            add_squares<Size>(x, y, tiles);
        }
        UNROLLED
        for (unsigned j = 0; j < EDGE<Size>; ++j)
            store_packed(c + j * tiles.stride[LAYOUT_SUM][1], x[j], EDGE<Size> * Size, true);
        return;
    }
    ROLLED
    for (uint32_t j = 0; j < EDGE<Size> && j < left[1]; ++j)
        ROLLED
    for (uint32_t i = 0; i < EDGE<Size> && i < left[0]; ++i) {
        const packed<16> x = load_same_dtype<Size, 1>(a + offset_in(tiles, 0, i, j), tiles.map.sides[0], 1),
                         y = load_same_dtype<Size, 1>(b + offset_in(tiles, 1, i, j), tiles.map.sides[1], 1);
        store_same_dtype<Size, 1>(c + offset_in(tiles, LAYOUT_SUM, i, j), add_inputs<Size>(tiles, x, y), 1);
    }
}

static bool
are_vectors_aligned(const turned_addition &turned, unsigned edge, size_t itemsize)
{
    struct layout other = turned.layout;
    swap_axes(&other, 0, 1);
    for (int k = 0; k < LAYOUT_OPERANDS; ++k) {
        const bool is_turned = k == 0 || (k == 1 && turned.both);
        if (turned.layout.stride[k][0] != 0 &&
            !is_aligned(is_turned ? &other : &turned.layout, k, turned.at[k], edge, itemsize))
            return false;
    }
    return true;
}

static ssize_t
squares_along(const struct layout &layout, int axis, unsigned edge)
{
    return (layout.extent[axis] + edge - 1) / edge;
}

static tile_bits
bits_of_squares(const struct layout &layout, unsigned edge)
{
    return tile_bits(squares_along(layout, 0, edge), squares_along(layout, 1, edge), 8, 0);
}
static_assert(1 << 8 == BLOCK, "a square a thread");

/* With fewer blocks than this, tiles of single elements are quicker: they are more blocks. */
enum { FEWEST_BLOCKS = 32 };

static bool
takes(const struct strided *add, const struct layout *layout, const char *const at[])
{
    if (!strided_same_dtype.takes(add, layout, at) || turning_of(add, layout).axis == 0)
        return false;
    const turned_addition turned(add, layout, at);
    return with_size(dtype_table[add->sum].itemsize, [&](auto size) {
        constexpr unsigned SIZE = decltype(size)::value, SQUARE = EDGE<SIZE> * EDGE<SIZE>;
        return layout->extent[0] * SIZE >= SECTOR && layout_size(layout) >= FEWEST_BLOCKS * BLOCK * SQUARE &&
               bits_of_squares(turned.layout, EDGE<SIZE>).is_full && are_vectors_aligned(turned, EDGE<SIZE>, SIZE);
    });
}

static cudaError_t
launch_any(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    const turned_addition turned(add, layout, at);
    return with_size(dtype_table[add->sum].itemsize, [&](auto size) {
        constexpr unsigned SIZE = decltype(size)::value;
        const tile_bits bits = bits_of_squares(turned.layout, EDGE<SIZE>);
        /* A warp's accesses are 8 squares wide along the axis of most of them, 4 along the other. */
        const uint32_t wished = turned.both ? 3 : 2, most = bits.height, least = bits.width < 5 ? 5 - bits.width : 0;
        const squares squares = {bits.width, bits.height, wished < least ? least : wished > most ? most : wished};
        return launch_tiles(turned.both ? add_tiles<SIZE, true> : add_tiles<SIZE, false>, turned,
                            turned.in_tiles(EDGE<SIZE> << bits.width, EDGE<SIZE> << bits.height), stream, squares);
    });
}

static cudaError_t
load_all(void)
{
    return load_sizes([](auto size) {
        const cudaError_t error = load(add_tiles<decltype(size)::value, false>);
        return error == cudaSuccess ? load(add_tiles<decltype(size)::value, true>) : error;
    });
}

const struct strided_form strided_tiles = {"tiles", takes, launch_any, load_all};
