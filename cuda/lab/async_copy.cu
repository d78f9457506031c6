/* Copies into shared memory that each thread orders for itself, from compute capability 8.0 on. */
#include "cuda/lab/ptx.cuh"
#include "cuda/lab/rung.cuh"

// async_copy: copies into shared memory that run while the thread adds what came before.
//
//   after    float4_unroll2
//   changes  cp.async in a ring of 2 or 3 stages (stages), by pieces of 16, 8 or 4 bytes: the widest up to bytes that
//            a, b and c are aligned to. 16-byte ones go past the L1 (cg) unless through_l1 is 1 (ca). A thread reads
//            what it copied itself, so that no barrier is needed.
//   expects  bytes in flight that cost no register: 2 stages of 2 * 16 bytes at 2048 threads are 128 KiB an SM, and
//            bounded by shared memory. Where float4 has enough in flight already, no more than float4.
//   from     founding document 003
//   try      vecadd bench ladder --rungs float4,async_copy

enum { FLOAT32_COMPONENT = 1 << COMPONENT_F32 }; /* each further one would cost 8 kernels, and copies see only bytes */

template <typename Component, unsigned Bytes, bool ThroughL1, unsigned Stages>
__global__ static void
async_copy_add(const typename Component::element *a, const typename Component::element *b,
               typename Component::element *c, uint64_t n)
{
    using piece = vector_of<Component, Bytes>;
    const piece *x = reinterpret_cast<const piece *>(a), *y = reinterpret_cast<const piece *>(b);
    const uint64_t pieces = n / piece::size, thread = thread_number();
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    piece *mine = reinterpret_cast<piece *>(shared_memory()) + threadIdx.x;
    const auto slot = [mine](unsigned stage, unsigned input) { return mine + (2 * stage + input) * blockDim.x; };
    /* Commits a group even where there is nothing to copy, so that the number of groups is that of stages. */
    const auto fetch = [=](unsigned stage, uint64_t i) {
        if (i < pieces) {
            copy_async<Bytes, ThroughL1>(slot(stage, 0), x + i);
            copy_async<Bytes, ThroughL1>(slot(stage, 1), y + i);
        }
        copy_async_commit();
    };

    const unsigned ahead = Stages - 1;
    for (unsigned stage = 0; stage < ahead; ++stage)
        fetch(stage, thread + stage * stride);
    unsigned stage = 0;
    for (uint64_t i = thread; i < pieces; i += stride) {
        fetch((stage + ahead) % Stages, i + ahead * stride);
        copy_async_wait<ahead>();
        reinterpret_cast<piece *>(c)[i] = add_vectors<Component>(*slot(stage, 0), *slot(stage, 1));
        stage = (stage + 1) % Stages;
    }
    const uint64_t tail = pieces * piece::size + thread;
    if (tail < n)
        c[tail] = add_elements<Component>(a[tail], b[tail]);
}

template <unsigned Bytes, bool ThroughL1>
static auto
kernel_for(int stages)
{
    return stages == 2 ? async_copy_add<f32_component, Bytes, ThroughL1, 2>
                       : async_copy_add<f32_component, Bytes, ThroughL1, 3>;
}

static int
async_copy_launch(const struct rung_call *call)
{
    const unsigned stages = call->params[0], through_l1 = call->params[1], most = call->params[2];
    if (call->component != COMPONENT_F32)
        return cudaErrorInvalidValue;
    if (call->n == 0)
        return cudaSuccess;
    const uintptr_t place = reinterpret_cast<uintptr_t>(call->a) | reinterpret_cast<uintptr_t>(call->b) |
                            reinterpret_cast<uintptr_t>(call->c);
    const unsigned bytes = most >= 16 && place % 16 == 0 ? 16 : most >= 8 && place % 8 == 0 ? 8 : 4;
    const auto kernel = bytes == 4   ? kernel_for<4, true>(stages)
                        : bytes == 8 ? kernel_for<8, true>(stages)
                        : through_l1 ? kernel_for<16, true>(stages)
                                     : kernel_for<16, false>(stages);
    uint64_t threads;
    const cudaError_t error = resident_threads(call->n, &threads);
    if (error != cudaSuccess)
        return error;
    const unsigned block = block_of(call);
    return launch_grid(kernel, dim3(ceil_div(threads, block)), dim3(block), 2 * stages * block * bytes, target_of(call),
                       static_cast<const uint32_t *>(call->a), static_cast<const uint32_t *>(call->b),
                       static_cast<uint32_t *>(call->c), call->n);
}

extern "C" const struct rung rung_async_copy = {
    .name = "async_copy",
    .after = "float4_unroll2",
    .changes = "cp.async into shared memory, a ring of stages",
    .components = FLOAT32_COMPONENT,
    .bytes_per_load = 16,
    .load = "LDGSTS.E.BYPASS.128",
    .loads_in_flight = 4,
    .min_cc = 80,
    .params = {{"stages", "stages of the ring", 2, 2, 3},
               {"through_l1", "1: through the L1 (ca), 0: past it (cg), for pieces of 16 bytes", 0, 0, 1},
               {"bytes", "of a piece at most: 16, 8 or 4", 4, 16, 16}},
    .launch = async_copy_launch,
};
