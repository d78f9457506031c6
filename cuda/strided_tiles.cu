/* Additions of one dtype in which one input is contiguous along another axis than the sum: a.T + b.
 *
 * Element by element, a warp would load 32 sectors for 32 elements of that input. Here a thread loads a small square of
 * it, as vectors along its contiguous axis, and transposes the square in registers. A warp has 8 squares along that
 * axis by 4 along the sum's, a block 16 by 16, so that each load uses whole sectors. No shared memory, no barrier. */
#include <utility>

#include "cuda/same_dtype.cuh"
#include "cuda/strided_forms.cuh"

enum { SQUARES = 16 }; /* per block, along either axis */
static_assert(SQUARES * SQUARES == BLOCK, "one a thread");

/* Elements along a square's edge: one vector's, 8 at most, because a thread holds two squares in registers. */
template <unsigned Size> static constexpr unsigned EDGE = Size == 1 ? 8 : 16 / Size;

struct tiles {
    struct index_map map; /* over tiles, one a block: the extents and strides of axes 0 and 1 count tiles */
    uint32_t extent[2];   /* elements along these axes */
    int64_t stride[LAYOUT_OPERANDS][2];
    bool whole; /* every vector is aligned */
};

__device__ static int64_t
offset_in(const tiles &tiles, int operand, uint32_t i, uint32_t j)
{
    return i * tiles.stride[operand][0] + j * tiles.stride[operand][1];
}

template <unsigned Size>
using element_of_size = std::conditional_t<
    Size == 1, uint8_t,
    std::conditional_t<Size == 2, uint16_t,
                       std::conditional_t<Size == 4, uint32_t, std::conditional_t<Size == 8, uint2, uint4>>>>;

/* Loads a square of the input that is contiguous along axis 1, transposed into rows along axis 0. */
template <unsigned Size>
__device__ static void
load_turned(packed<16> (&rows)[EDGE<Size>], const char *from, const tiles &tiles)
{
    using element = element_of_size<Size>;
    packed<16> columns[EDGE<Size>];
    UNROLLED
    for (unsigned i = 0; i < EDGE<Size>; ++i)
        columns[i] = load_packed<16>(from + i * tiles.stride[0][0], EDGE<Size> * Size, true);
    UNROLLED
    for (unsigned j = 0; j < EDGE<Size>; ++j) {
        rows[j] = {};
        UNROLLED
        for (unsigned i = 0; i < EDGE<Size>; ++i)
            put_element(rows[j], i, element_of<element>(columns[i], j));
    }
}

/* Loads a square of the other input, which is contiguous along axis 0 or broadcast along it. */
template <unsigned Size>
__device__ static void
load_straight(packed<16> (&rows)[EDGE<Size>], const char *from, const tiles &tiles)
{
    UNROLLED
    for (unsigned j = 0; j < EDGE<Size>; ++j) {
        const char *row = from + j * tiles.stride[1][1];
        if (tiles.stride[1][0] != 0)
            rows[j] = load_packed<16>(row, EDGE<Size> * Size, true);
        else
            rows[j] = load_same_dtype<Size, EDGE<Size>>(row, tiles.map.sides[1], EDGE<Size>);
    }
}

template <unsigned Size>
__global__ static void
add_tiles(const char *a, const char *b, char *c, const __grid_constant__ tiles tiles)
{
    const index_map &map = tiles.map;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t own[] = {(lane / 8 + warp / 2 * 4) * EDGE<Size>, (lane % 8 + warp % 2 * 8) * EDGE<Size>};
    const uint32_t tile = blockIdx.x, above = divided(tile, map.axes[0]), outside = divided(above, map.axes[1]);
    const uint32_t first[] = {
        (tile - above * map.axes[0].extent) * SQUARES * EDGE<Size> + own[0],
        (above - outside * map.axes[1].extent) * SQUARES * EDGE<Size> + own[1],
    };
    if (first[0] >= tiles.extent[0] || first[1] >= tiles.extent[1])
        return;
    const run run = find_run<1>(map, tile);
    if (!b)
        b = reinterpret_cast<const char *>(map.scalar[1]);
    a += run.at[0] + offset_in(tiles, 0, own[0], own[1]);
    b += run.at[1] + offset_in(tiles, 1, own[0], own[1]);
    c += run.at[LAYOUT_SUM] + offset_in(tiles, LAYOUT_SUM, own[0], own[1]);

    const uint32_t left[] = {tiles.extent[0] - first[0], tiles.extent[1] - first[1]};
    if (tiles.whole && left[0] >= EDGE<Size> && left[1] >= EDGE<Size>) {
        packed<16> x[EDGE<Size>], y[EDGE<Size>];
        load_turned<Size>(x, a, tiles);
        load_straight<Size>(y, b, tiles);
        UNROLLED
        for (unsigned j = 0; j < EDGE<Size>; ++j)
            store_packed(c + j * tiles.stride[LAYOUT_SUM][1], add_same_dtype<Size>(map.component, x[j], y[j]),
                         EDGE<Size> * Size, true);
        return;
    }
    ROLLED
    for (uint32_t j = 0; j < EDGE<Size> && j < left[1]; ++j)
        ROLLED
    for (uint32_t i = 0; i < EDGE<Size> && i < left[0]; ++i) {
        const packed<16> x = load_same_dtype<Size, 1>(a + offset_in(tiles, 0, i, j), map.sides[0], 1),
                         y = load_same_dtype<Size, 1>(b + offset_in(tiles, 1, i, j), map.sides[1], 1);
        store_same_dtype<Size, 1>(c + offset_in(tiles, LAYOUT_SUM, i, j), add_same_dtype<Size>(map.component, x, y), 1);
    }
}

/* If an axis is shorter than a sector, one element a thread wastes no more bandwidth. */
enum { SECTOR = 32 };

static bool
is_long(const struct layout *layout, int axis, size_t itemsize)
{
    return layout->extent[axis] * itemsize >= SECTOR;
}

/* The input that is neither contiguous along axis 0 nor broadcast along it; -1: none or both. */
static int
turned_input(const struct layout *layout, ssize_t itemsize)
{
    bool turned[LAYOUT_SUM];
    for (int k = 0; k < LAYOUT_SUM; ++k)
        turned[k] = layout->stride[k][0] != 0 && layout->stride[k][0] != itemsize;
    return turned[0] == turned[1] ? -1 : turned[1];
}

/* The axis along which the transposed input is contiguous; 0: tiles do not suit these operands. */
static int
other_axis(const struct strided *add, const struct layout *layout)
{
    const ssize_t itemsize = static_cast<ssize_t>(dtype_table[add->sum].itemsize);
    if (layout->ndim < 2 || layout->stride[LAYOUT_SUM][0] != itemsize || !is_long(layout, 0, itemsize))
        return 0;
    const int turned = turned_input(layout, itemsize);
    if (turned < 0)
        return 0;
    for (int axis = 1; axis < layout->ndim; ++axis)
        if (layout->stride[turned][axis] == itemsize && is_long(layout, axis, itemsize))
            return axis;
    return 0;
}

static bool
takes(const struct strided *add, const struct layout *layout, const char *const at[])
{
    return strided_same_dtype.takes(add, layout, at) && other_axis(add, layout) > 0;
}

static void
swap_axes(struct layout *layout, int one, int other)
{
    std::swap(layout->extent[one], layout->extent[other]);
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        std::swap(layout->stride[k][one], layout->stride[k][other]);
}

static void
swap_inputs(struct strided *add, struct layout *layout, const char **at)
{
    std::swap(at[0], at[1]);
    std::swap(add->is_scalar[0], add->is_scalar[1]);
    std::swap(add->scalar[0], add->scalar[1]);
    std::swap(layout->stride[0], layout->stride[1]);
}

/* Makes the transposed input the first one: a sum of operands of one dtype does not depend on their order. */
template <unsigned Size>
static cudaError_t
launch_tiles(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    struct strided ordered = *add;
    struct layout walked = *layout;
    const char *first[] = {at[0], at[1], at[LAYOUT_SUM]};
    swap_axes(&walked, 1, other_axis(add, layout));
    if (turned_input(layout, Size) == 1)
        swap_inputs(&ordered, &walked, first);
    struct layout turned = walked;
    swap_axes(&turned, 0, 1);

    tiles tiles;
    tiles.map = index_map_of(&ordered, &walked, first, SQUARES * EDGE<Size>, SQUARES * EDGE<Size>);
    tiles.whole = true;
    for (int axis = 0; axis < 2; ++axis)
        tiles.extent[axis] = static_cast<uint32_t>(walked.extent[axis]);
    for (int k = 0; k < LAYOUT_OPERANDS; ++k) {
        for (int axis = 0; axis < 2; ++axis)
            tiles.stride[k][axis] = walked.stride[k][axis];
        if (walked.stride[k][0] != 0)
            tiles.whole &= is_aligned(k == 0 ? &turned : &walked, k, first[k], EDGE<Size>, Size);
    }
    return launch(add_tiles<Size>, uint64_t(tiles.map.runs) * BLOCK, BLOCK, stream, first[0], first[1],
                  const_cast<char *>(first[LAYOUT_SUM]), tiles);
}

static cudaError_t
launch_any(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    return with_size(dtype_table[add->sum].itemsize,
                     [=](auto size) { return launch_tiles<decltype(size)::value>(add, layout, at, stream); });
}

static cudaError_t
load_all(void)
{
    return load_sizes([](auto size) { return load(add_tiles<decltype(size)::value>); });
}

const struct strided_form strided_tiles = {"tiles", takes, launch_any, load_all};
