/* Many additions of any sizes, dtypes and alignments in one launch.
 *
 * Additions are cut into tiles, and each block adds one tile, so that short and long additions balance. A block finds
 * its tile's addition by binary search in a table. Each launch fills the table in the kernel's parameters: no memory to
 * allocate or copy to, and a stream capture can record it. 1000 additions of 10 KB took 18.3 us on an H200, 12.8 with a
 * table already in device memory, 3900 with a launch each. Tables of several sizes have a kernel each, because a launch
 * copies the whole table.
 *
 * Each block switches on its tile's component at run time, without divergence: one kernel serves all components, and
 * one launch a list of several dtypes. */
#include "cuda/components.cuh"
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/shifted.cuh"

/* Each thread keeps four vectors of each operand in flight. A block waits for its addition's pointers before it loads;
 * meanwhile the multiprocessor's other blocks have enough loads in flight. */
static constexpr unsigned BLOCK = 256, VECTORS_A_THREAD = 4, BLOCKS_A_MULTIPROCESSOR = 4;
static constexpr unsigned TILE_VECTORS = BLOCK * VECTORS_A_THREAD;
static_assert(TILE_VECTORS * 16 == BATCH_TILE_BYTES, "a block adds a tile");

static constexpr unsigned COMPONENT_BITS = 4;
static_assert(COMPONENT_COUNT <= 1 << COMPONENT_BITS && uint64_t(BATCH_MOST_BYTES) << COMPONENT_BITS <= UINT32_MAX,
              "they share a word");

/* A structure of arrays: the binary search reads 4 bytes an addition. */
template <unsigned Most> struct batch_table {
    const void *a[Most], *b[Most];
    void *c[Most];
    uint32_t first[Most];               /* the number of an addition's first tile in the launch */
    uint32_t bytes_and_component[Most]; /* the component in the low bits */
    uint32_t count;
};
static_assert(sizeof(batch_table<BATCH_MAX>) <= 32764, "kernel parameters");

/* How an addition's bytes are split: vectors, aligned on c, and edges at both ends, which threads of the first block
 * add one component each. In bytes, so that the kernel has one copy of this code for all components. */
struct tile_split {
    uint32_t head, vectors, edges; /* counted in bytes, vectors, bytes */
};

__device__ static tile_split
split_bytes(const void *c, uint32_t bytes, bool shifted)
{
    /* The two loads of a shifted vector reach up to one vector beyond it on both sides. To keep them inside the
     * operand, single threads add one vector's worth of components at each end. */
    const uint32_t margin = shifted ? 16 : 0, head = (16 - phase_of(c)) % 16 + margin;
    const uint32_t vectors = bytes < head + margin ? 0 : (bytes - head - margin) / 16;
    return {vectors ? head : 0, vectors, bytes - vectors * 16};
}

struct operands {
    const char *a, *b;
    char *c;
    enum component component;

    __device__ operands
    at(uint32_t bytes) const
    {
        return {a + bytes, b + bytes, c + bytes, component};
    }
};

__device__ static void
add_edges(const operands &from, const tile_split &split)
{
    static_assert(4 * 16 <= BLOCK, "a thread for each lane outside the vectors");
    with_component(from.component, [&](auto component) {
        using element = typename decltype(component)::element;
        uint32_t byte = threadIdx.x * sizeof(element);
        if (byte >= split.edges)
            return;
        if (byte >= split.head)
            byte += split.vectors * 16;
        const operands at = from.at(byte);
        *reinterpret_cast<element *>(at.c) = add_elements<decltype(component)>(
            *reinterpret_cast<const element *>(at.a), *reinterpret_cast<const element *>(at.b));
    });
}

/* Adds VECTORS_A_THREAD vectors, or as many as exist: `first`, first + BLOCK, first + 2 * BLOCK, ... load(operand,
 * vector) returns one vector. */
template <typename Load>
__device__ static void
add_vectors_at(const operands &from, uint32_t first, uint32_t vectors, Load load)
{
    words x[VECTORS_A_THREAD], y[VECTORS_A_THREAD];
    for (unsigned i = 0; i < VECTORS_A_THREAD; ++i)
        if (first + i * BLOCK < vectors) {
            x[i] = load(from.a, first + i * BLOCK);
            y[i] = load(from.b, first + i * BLOCK);
        }
    with_component(from.component, [&](auto component) {
        using vector = vector_of<decltype(component)>;
        for (unsigned i = 0; i < VECTORS_A_THREAD; ++i)
            x[i] = bits_as<words>(add_vectors(bits_as<vector>(x[i]), bits_as<vector>(y[i])));
    });
    for (unsigned i = 0; i < VECTORS_A_THREAD; ++i)
        if (first + i * BLOCK < vectors)
            reinterpret_cast<words *>(from.c)[first + i * BLOCK] = x[i];
}

__device__ static void
add_tile(const operands &from, uint32_t bytes, uint32_t tile)
{
    const bool shifted = phase_of(from.a) != phase_of(from.c) || phase_of(from.b) != phase_of(from.c);
    const tile_split split = split_bytes(from.c, bytes, shifted);
    const uint32_t first = tile * TILE_VECTORS + threadIdx.x;
    if (tile == 0)
        add_edges(from, split);
    if (shifted)
        add_vectors_at(from.at(split.head), first, split.vectors, [](const char *operand, uint32_t vector) {
            return align_words(load_straddle<LOADS_PLAIN>(operand, vector));
        });
    else
        add_vectors_at(from.at(split.head), first, split.vectors, [](const char *operand, uint32_t vector) {
            return reinterpret_cast<const words *>(operand)[vector];
        });
}

template <unsigned Most>
__global__ static void
__launch_bounds__(BLOCK, BLOCKS_A_MULTIPROCESSOR) batch_add(const __grid_constant__ batch_table<Most> table)
{
    const uint32_t tile = blockIdx.x;
    uint32_t segment = 0, end = table.count;
    while (end - segment > 1) {
        const uint32_t middle = (segment + end) / 2;
        if (table.first[middle] <= tile)
            segment = middle;
        else
            end = middle;
    }
    const uint32_t bytes_and_component = table.bytes_and_component[segment];
    const operands from = {static_cast<const char *>(table.a[segment]), static_cast<const char *>(table.b[segment]),
                           static_cast<char *>(table.c[segment]),
                           static_cast<enum component>(bytes_and_component & ((1u << COMPONENT_BITS) - 1))};
    add_tile(from, bytes_and_component >> COMPONENT_BITS, tile - table.first[segment]);
}

template <unsigned Most>
static cudaError_t
launch_table(const struct batch_segment *segments, size_t count, cudaStream_t stream)
{
    batch_table<Most> table;
    uint32_t tiles = 0;
    for (size_t i = 0; i < count; ++i) {
        const struct batch_segment *segment = &segments[i];
        table.a[i] = segment->a;
        table.b[i] = segment->b;
        table.c[i] = segment->c;
        table.first[i] = tiles;
        table.bytes_and_component[i] = segment->bytes << COMPONENT_BITS | segment->component;
        tiles += (segment->bytes - 1) / BATCH_TILE_BYTES + 1;
    }
    table.count = static_cast<uint32_t>(count);
    return launch_grid(batch_add<Most>, dim3(tiles), dim3(BLOCK), 0, stream, table);
}

/* Calls visit(table size) with the least size with room for `count` additions. A launch takes the host 11 us with 4 KB
 * of parameters and 22 with 32 KB. */
template <typename Visit>
static cudaError_t
with_table_of(size_t count, Visit visit)
{
    if (count <= 127)
        return visit(std::integral_constant<unsigned, 127>());
    if (count <= 255)
        return visit(std::integral_constant<unsigned, 255>());
    if (count <= 511)
        return visit(std::integral_constant<unsigned, 511>());
    return visit(std::integral_constant<unsigned, BATCH_MAX>());
}

cudaError_t
batch_launch(const struct batch_segment *segments, size_t count, cudaStream_t stream)
{
    return with_table_of(count,
                         [=](auto most) { return launch_table<decltype(most)::value>(segments, count, stream); });
}

cudaError_t
batch_load(void)
{
    cudaError_t error = cudaSuccess;
    for (size_t count = 127; count <= BATCH_MAX && error == cudaSuccess; count = 2 * count + 1)
        error = with_table_of(count, [](auto most) { return load(batch_add<decltype(most)::value>); });
    return error;
}
