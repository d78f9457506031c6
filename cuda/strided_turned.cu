/* Additions along another axis than the sum's, a.T + b and a.T + b.T, in tiles of two axes: in vectors where they are
 * aligned (tiles), else element by element (turned). */
#include <utility>

#include "cuda/elements.cuh"

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
__device__ static packed
add_inputs(const tiles &tiles, const packed &x, const packed &y)
{
    if constexpr (Size == 1) {
        const packed a = tiles.swapped ? y : x, b = tiles.swapped ? x : y;
        return add_same_dtype<Size>(tiles.map.component, a, b);
    }
    return add_same_dtype<Size>(tiles.map.component, x, y);
}

__device__ static int64_t
offset_in(const tiles &tiles, int operand, uint32_t i, uint32_t j)
{
    return i * tiles.stride[operand][0] + j * tiles.stride[operand][1];
}

/* The tile of this block: where its operands begin, and its first element along both axes. */
struct tile {
    int64_t at[LAYOUT_OPERANDS];
    uint32_t first[2];
};

__device__ static tile
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

static bool
is_turned(const struct strided *add, const struct layout *layout, int input)
{
    const ssize_t stride = layout->stride[input][0];
    return stride != 0 && stride != static_cast<ssize_t>(dtype_table[add->dtype[input]].itemsize);
}

static bool
is_contiguous_along(const struct strided *add, const struct layout *layout, int input, int axis)
{
    return layout->stride[input][axis] == static_cast<ssize_t>(dtype_table[add->dtype[input]].itemsize);
}

static turning
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

static void
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
static uint32_t
bits_of(ssize_t extent)
{
    uint32_t bits = 0;
    while (ssize_t(1) << bits < extent)
        ++bits;
    return bits;
}

/* How tiles of 2^bits elements, or squares, are placed along the axes: equally, or as narrow as an axis that is
 * shorter. Whether a tile inside the array is half full at least. */
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
static cudaError_t
launch_over_tiles(void (*kernel)(const char *, const char *, char *, tiles, Others...), const turned_addition &turned,
                  const tiles &tiles, cudaStream_t stream, typename exactly<Others>::type... others)
{
    return launch(kernel, uint64_t(tiles.map.runs) * BLOCK, BLOCK, stream, turned.at[0], turned.at[1],
                  const_cast<char *>(turned.at[LAYOUT_SUM]), tiles, others...);
}

/* --- In vectors. */

/* Additions of one dtype along another axis than the sum's, a.T + b and a.T + b.T, whose vectors are aligned.
 *
 * Element by element, a warp would load 32 sectors for 32 elements of a turned input. Here a thread loads a small
 * square of it, as vectors along its contiguous axis, and transposes the square in registers. If both inputs are
 * turned, it adds first and transposes the sum. No shared memory, no barrier. */

/* Elements along a square's edge: one vector's, 8 at most, because a thread has two squares in registers. */
template <unsigned Size> static constexpr unsigned EDGE = Size == 1 ? 8 : 16 / Size;

template <unsigned Size>
__device__ static void
load_square(packed (&rows)[EDGE<Size>], const char *from, int64_t stride)
{
    UNROLLED
    for (unsigned i = 0; i < EDGE<Size>; ++i)
        rows[i] = load_packed(from + i * stride, EDGE<Size> * Size, true);
}

/* Loads a square of the input that is contiguous along axis 0 or broadcast along it. */
template <unsigned Size>
__device__ static void
load_straight(packed (&rows)[EDGE<Size>], const char *from, const tiles &tiles)
{
    if (tiles.stride[1][0] != 0)
        return load_square<Size>(rows, from, tiles.stride[1][1]);
    UNROLLED
    for (unsigned j = 0; j < EDGE<Size>; ++j)
        rows[j] = load_same_dtype<Size, EDGE<Size>>(from + j * tiles.stride[1][1], tiles.map.sides[1], EDGE<Size>);
}

template <unsigned Size>
__device__ static void
transpose(packed (&rows)[EDGE<Size>])
{
    using element = element_of_size<Size>;
    packed columns[EDGE<Size>];
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
add_squares(packed (&x)[EDGE<Size>], const packed (&y)[EDGE<Size>], const tiles &tiles)
{
    UNROLLED
    for (unsigned i = 0; i < EDGE<Size>; ++i)
        x[i] = add_inputs<Size>(tiles, x[i], y[i]);
}

/* How a block's squares are placed: 2^across by 2^down of them, a thread each; of a warp, 2^(5 - near) by 2^near. */
struct squares {
    uint32_t across, down, near;
};

template <unsigned Size, bool Both>
__global__ static void
add_tiles(const char *a, const char *b, char *c, const __grid_constant__ tiles tiles, squares squares)
{
    const uint32_t lanes = 5 - squares.near, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t warps = squares.across - lanes; /* 2^warps of them side by side */
    const uint32_t own[] = {
        ((lane >> squares.near) + ((warp & ((1u << warps) - 1)) << lanes)) * EDGE<Size>,
        ((lane & ((1u << squares.near) - 1)) + (warp >> warps << squares.near)) * EDGE<Size>,
    };
    const tile tile = find_tile(tiles, EDGE<Size> << squares.across, EDGE<Size> << squares.down);
    const uint32_t first[] = {tile.first[0] + own[0], tile.first[1] + own[1]};
    if (first[0] >= tiles.extent[0] || first[1] >= tiles.extent[1])
        return;
    a += tile.at[0] + offset_in(tiles, 0, own[0], own[1]);
    b = input_of(tiles.map, 1, b) + tile.at[1] + offset_in(tiles, 1, own[0], own[1]);
    c += tile.at[LAYOUT_SUM] + offset_in(tiles, LAYOUT_SUM, own[0], own[1]);

    const uint32_t left[] = {tiles.extent[0] - first[0], tiles.extent[1] - first[1]};
    if (left[0] >= EDGE<Size> && left[1] >= EDGE<Size>) {
        packed x[EDGE<Size>], y[EDGE<Size>];
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
        const packed x = load_same_dtype<Size, 1>(a + offset_in(tiles, 0, i, j), tiles.map.sides[0], 1),
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
takes_tiles(const struct strided *add, const struct layout *layout, const char *const at[])
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
launch_tiles(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    const turned_addition turned(add, layout, at);
    return with_size(dtype_table[add->sum].itemsize, [&](auto size) {
        constexpr unsigned SIZE = decltype(size)::value;
        const tile_bits bits = bits_of_squares(turned.layout, EDGE<SIZE>);
        /* A warp's accesses are 8 squares wide along the axis of most of them, 4 along the other. */
        const uint32_t wished = turned.both ? 3 : 2, most = bits.height, least = bits.width < 5 ? 5 - bits.width : 0;
        const squares squares = {bits.width, bits.height, wished < least ? least : wished > most ? most : wished};
        return launch_over_tiles(turned.both ? add_tiles<SIZE, true> : add_tiles<SIZE, false>, turned,
                                 turned.in_tiles(EDGE<SIZE> << bits.width, EDGE<SIZE> << bits.height), stream, squares);
    });
}

static cudaError_t
load_tiles(void)
{
    return load_sizes([](auto size) {
        return load(add_tiles<decltype(size)::value, false>, add_tiles<decltype(size)::value, true>);
    });
}

const struct strided_form strided_tiles = {"tiles", takes_tiles, launch_tiles, load_tiles};

/* --- Element by element. */

/* Additions along another axis than the sum's, a.T + b, at any alignment, on short axes and of two dtypes: what
 * the tiles of vectors leave.
 *
 * A block adds a tile of 2048 elements, or of 1024. Each access is of one element, and neighbours in a warp are
 * neighbours in memory: the turned inputs are loaded along their own axis and go through shared memory. Tiles of 64 by
 * 32 float32 are nearly as fast as vectors (102 us for 2^25 on an H200, and 98), where elements that
 * a warp loads from 32 rows take 218. Where an axis is short, as the three channels of an image, tiles are as narrow as
 * it is. */

static constexpr unsigned BANKS = 32, MOST_PARTS = 2, A_THREAD = 4, TILE_BITS = 10, LEAST_BITS = 2;
static_assert(1 << TILE_BITS == A_THREAD * BLOCK && BLOCK >> (TILE_BITS - LEAST_BITS) == 1, "whole rows of threads");

/* A tile has one or two parts along axis 0, of 2^width by 2^height elements each, A_THREAD a thread. From one row to
 * the next in shared memory are `pitch` elements, so that a warp that stores columns meets few banks twice. */
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
    packed vector[VECTORS];
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

/* Of A_THREAD elements, each `step` after the one before, how many are below `left`. */
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
    a += tile.at[0];
    b = input_of(tiles.map, 1, b) + tile.at[1];
    c += tile.at[LAYOUT_SUM];

    /* Turned, a thread's elements are along axis 0, `across` apart; straight, along axis 1, `down` apart. */
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
takes_turned(const struct strided *add, const struct layout *layout, const char *const at[])
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
launch_turned(const struct strided *add, const struct layout *layout, const char *const at[], cudaStream_t stream)
{
    const turned_addition turned(add, layout, at);
    const tile_bits bits = bits_of_elements(turned.layout);
    const uint32_t gap = BANKS >> bits.height;
    const bool mixed = add->dtype[0] != add->sum || add->dtype[1] != add->sum;
    const uint32_t width = parts_of(mixed) << bits.width;
    const tile_shape shape = {bits.width, bits.height, width + (gap > 1 ? gap : 1)};
    return with_kernel(dtype_table[add->sum].itemsize, mixed, [&](auto kernel) {
        return launch_over_tiles(kernel, turned, turned.in_tiles(width, 1u << bits.height), stream, shape, turned.both);
    });
}

static cudaError_t
load_turned(void)
{
    return load_sizes([](auto size) {
        const auto load_one = [](auto kernel) { return load(kernel); };
        const cudaError_t error = with_kernel(decltype(size)::value, false, load_one);
        return error == cudaSuccess ? with_kernel(decltype(size)::value, true, load_one) : error;
    });
}

const struct strided_form strided_turned = {"turned", takes_turned, launch_turned, load_turned};
