/* What the kernels share that add an input along another axis than the sum's, a.T + b, in tiles of two axes. */
#ifndef VECADD_CUDA_TURNED_CUH
#define VECADD_CUDA_TURNED_CUH

#include <utility>

#include "cuda/index_map.cuh"
#include "cuda/same_dtype.cuh"

/* Axis 0 is the sum's innermost, axis 1 that of the turned inputs. The first input is turned, the second too or
 * contiguous along axis 0 or broadcast along it. */
struct tiles {
    index_map map;      /* over tiles, one a block: the extents and strides of axes 0 and 1 count tiles */
    uint32_t extent[2]; /* elements along these axes */
    int64_t stride[LAYOUT_OPERANDS][2];
    bool swapped; /* the first input is b */
};

/* The sum of the first input's elements and the second's. The order shows in float8 alone, whose NaNs have a's sign. */
template <unsigned Size>
__device__ inline packed<16>
add_inputs(const tiles &tiles, const packed<16> &x, const packed<16> &y)
{
    if constexpr (Size == 1) {
        const packed<16> a = tiles.swapped ? y : x, b = tiles.swapped ? x : y;
        return add_same_dtype<Size>(tiles.map.component, a, b);
    }
    return add_same_dtype<Size>(tiles.map.component, x, y);
}

__device__ inline int64_t
offset_in(const tiles &tiles, int operand, uint32_t i, uint32_t j)
{
    return i * tiles.stride[operand][0] + j * tiles.stride[operand][1];
}

/* The tile of this block: where its operands begin, and its first element along both axes. */
struct tile {
    int64_t at[LAYOUT_OPERANDS];
    uint32_t first[2];
};

__device__ inline tile
find_tile(const tiles &tiles, uint32_t width, uint32_t height)
{
    const index_map &map = tiles.map;
    const uint32_t above = divided(blockIdx.x, map.axes[0]), i = blockIdx.x - above * map.axes[0].extent;
    uint32_t outside = map.dimensions > 2 ? divided(above, map.axes[1]) : 0;
    const uint32_t j = above - outside * map.axes[1].extent;
    tile tile = {{0, 0, 0}, {i * width, j * height}};
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        tile.at[k] = i * map.axes[0].stride[k] + j * map.axes[1].stride[k];
    ROLLED
    for (int axis = 2; axis < map.dimensions; ++axis) {
        const uint32_t further = axis + 1 < map.dimensions ? divided(outside, map.axes[axis]) : 0;
        const uint32_t index = outside - further * map.axes[axis].extent;
        for (int k = 0; k < LAYOUT_OPERANDS; ++k)
            tile.at[k] += index * map.axes[axis].stride[k];
        outside = further;
    }
    return tile;
}

/* If the sum's own axis is shorter than a sector, one element a thread wastes no more bandwidth than tiles. */
enum { SECTOR = 32 };

/* How an addition is turned; `axis` 0: it is not. */
struct turning {
    int axis; /* along which the turned inputs are contiguous */
    bool second, both;
};

inline bool
is_turned(const struct strided *add, const struct layout *layout, int input)
{
    const ssize_t stride = layout->stride[input][0];
    return stride != 0 && stride != static_cast<ssize_t>(dtype_table[add->dtype[input]].itemsize);
}

inline bool
is_contiguous_along(const struct strided *add, const struct layout *layout, int input, int axis)
{
    return layout->stride[input][axis] == static_cast<ssize_t>(dtype_table[add->dtype[input]].itemsize);
}

inline turning
turning_of(const struct strided *add, const struct layout *layout)
{
    const bool first = is_turned(add, layout, 0), second = is_turned(add, layout, 1);
    turning turning = {0, !first, first && second};
    if (layout->ndim < 2 || (!first && !second) || !is_contiguous_along(add, layout, LAYOUT_SUM, 0))
        return turning;
    for (int axis = 1; axis < layout->ndim && turning.axis == 0; ++axis)
        if ((!first || is_contiguous_along(add, layout, 0, axis)) &&
            (!second || is_contiguous_along(add, layout, 1, axis)))
            turning.axis = axis;
    return turning;
}

inline void
swap_axes(struct layout *layout, int one, int other)
{
    std::swap(layout->extent[one], layout->extent[other]);
    for (int k = 0; k < LAYOUT_OPERANDS; ++k)
        std::swap(layout->stride[k][one], layout->stride[k][other]);
}

/* An addition whose first input is turned: b, where a is not. */
struct turned_addition {
    struct strided add;
    struct layout layout; /* axis 1 is the turned inputs' */
    const char *at[LAYOUT_OPERANDS];
    bool swapped, both;

    turned_addition(const struct strided *given, const struct layout *of, const char *const first[])
        : add(*given), layout(*of), at{first[0], first[1], first[LAYOUT_SUM]}
    {
        const turning turning = turning_of(given, of);
        both = turning.both;
        swapped = turning.second;
        swap_axes(&layout, 1, turning.axis);
        if (!swapped)
            return;
        std::swap(at[0], at[1]);
        std::swap(add.dtype[0], add.dtype[1]);
        std::swap(add.is_scalar[0], add.is_scalar[1]);
        std::swap(add.scalar[0], add.scalar[1]);
        std::swap(layout.stride[0], layout.stride[1]);
    }

    tiles
    in_tiles(unsigned width, unsigned height) const
    {
        tiles tiles;
        tiles.map = index_map_of(&add, &layout, at, width, height);
        tiles.swapped = swapped;
        for (int axis = 0; axis < 2; ++axis) {
            tiles.extent[axis] = static_cast<uint32_t>(layout.extent[axis]);
            for (int k = 0; k < LAYOUT_OPERANDS; ++k)
                tiles.stride[k][axis] = layout.stride[k][axis];
        }
        return tiles;
    }
};

/* The bits of the least power of two that is not below `extent`. */
inline uint32_t
bits_of(ssize_t extent)
{
    uint32_t bits = 0;
    while (ssize_t(1) << bits < extent)
        ++bits;
    return bits;
}

/* How tiles of 2^bits elements, or squares, lie along the axes: equally, or as narrow as an axis that is shorter.
 * Whether a tile inside the array is half full at least. */
struct tile_bits {
    uint32_t width, height;
    bool is_full;

    tile_bits(ssize_t across, ssize_t down, uint32_t bits, uint32_t least)
    {
        const uint32_t equal = bits / 2, first = bits_of(across), second = bits_of(down);
        const uint32_t narrow = first < second ? first : second, used = narrow < least ? least : narrow;
        width = narrow >= equal ? equal : first < second ? used : bits - used;
        height = bits - width;
        const ssize_t most[] = {ssize_t(1) << width, ssize_t(1) << height};
        is_full = 2 * (across < most[0] ? across : most[0]) * (down < most[1] ? down : most[1]) >= ssize_t(1) << bits;
    }
};

template <typename... Others>
inline cudaError_t
launch_tiles(void (*kernel)(const char *, const char *, char *, tiles, Others...), const turned_addition &turned,
             const tiles &tiles, cudaStream_t stream, typename exactly<Others>::type... others)
{
    return launch(kernel, uint64_t(tiles.map.runs) * BLOCK, BLOCK, stream, turned.at[0], turned.at[1],
                  const_cast<char *>(turned.at[LAYOUT_SUM]), tiles, others...);
}

#endif
