// bulk_copy: one thread orders a block's operands, and the copy engine brings them.
//
//   after    async_copy
//   changes  two cp.async.bulk a block, 16 bytes times the block size each, that complete on a barrier in shared
//            memory for which all threads wait. Bulk copies take 16-byte aligned addresses and sizes: the components
//            after the last vector, and all components where a, b or c is misaligned, are added from global memory as
//            in naive.
//   expects  the same bytes in flight as float4, ordered by 2 instructions a block in place of 2 a thread; 4 KiB a
//            copy is above the 2 KiB from which the document prefers bulk copies. No gain where the memory is the
//            limit.
//   from     founding document 003
//   try      vecadd bench ladder --rungs async_copy,bulk_copy
#include "cuda/lab/ladder/rung.cuh"
#include "cuda/ptx.cuh"

enum { BLOCK = 256, TILES_AT = 128 }; /* bytes of shared memory before the tiles, for the barrier */

template <typename Component>
__global__ static void
bulk_copy_add(const typename Component::element *a, const typename Component::element *b,
              typename Component::element *c, uint64_t n, bool bulk)
{
    using vector = vector_of<Component>;
    const uint64_t tile = static_cast<uint64_t>(blockDim.x) * vector::size, first = blockIdx.x * tile;
    const uint64_t end = n - first < tile ? n : first + tile;
    const unsigned vectors = bulk ? static_cast<unsigned>((end - first) / vector::size) : 0;
    uint64_t *barrier = reinterpret_cast<uint64_t *>(shared_memory());
    vector *x = reinterpret_cast<vector *>(shared_memory() + TILES_AT), *y = x + blockDim.x;

    if (threadIdx.x == 0)
        barrier_init(barrier, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned bytes = vectors * sizeof(vector);
        barrier_expect(barrier, 2 * bytes);
        if (bytes) {
            copy_bulk(x, a + first, bytes, barrier);
            copy_bulk(y, b + first, bytes, barrier);
        }
    }
    barrier_wait(barrier, 0);
    if (threadIdx.x < vectors)
        reinterpret_cast<vector *>(c + first)[threadIdx.x] = add_vectors<Component>(x[threadIdx.x], y[threadIdx.x]);
    for (uint64_t i = first + vectors * vector::size + threadIdx.x; i < end; i += blockDim.x)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
bulk_copy_launch(const struct rung_call *call)
{
    const unsigned block = block_of(call, BLOCK);
    const uintptr_t place = reinterpret_cast<uintptr_t>(call->a) | reinterpret_cast<uintptr_t>(call->b) |
                            reinterpret_cast<uintptr_t>(call->c);
    if (call->n == 0)
        return cudaSuccess;
    return with_component_of<LADDER_COMPONENTS>(call, [=](auto component) -> int {
        using element = typename decltype(component)::element;
        using vector = vector_of<decltype(component)>;
        const uint64_t blocks = ceil_div(call->n, block * static_cast<uint64_t>(vector::size));
        if (blocks > INT32_MAX)
            return cudaErrorInvalidConfiguration;
        return launch_grid(bulk_copy_add<decltype(component)>, dim3(blocks), dim3(block),
                           TILES_AT + 2 * block * sizeof(vector), target_of(call),
                           static_cast<const element *>(call->a), static_cast<const element *>(call->b),
                           static_cast<element *>(call->c), call->n, place % 16 == 0 && call->params[0]);
    });
}

extern "C" const struct rung rung_bulk_copy = {
    .name = "bulk_copy",
    .kind = RUNG_DEVICE,
    .after = "async_copy",
    .changes = "two bulk copies a block, ordered by one thread",
    .tested = "gpu",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "UBLKCP.S.G",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 16,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 90,
    .alignment = 0,
    .params = {{"bulk", "1: bulk copies where addresses allow them, 0: none, as where they do not", 0, 1, 1}},
    .launch = bulk_copy_launch,
    .run = nullptr,
};
