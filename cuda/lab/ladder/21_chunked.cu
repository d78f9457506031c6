// chunked: one addition as several launches.
//
//   after    float4
//   changes  const __restrict__, and a launch for every 2^22 components (chunk), in order on one stream
//   expects  each launch drains before the next one fills the GPU: some microseconds a chunk, much beside the 15 us
//            that 2^22 float32 take on an H200. The chunk that one launch leaves in the L2 is of no use to the next
//            launch, which reads other components.
//   from     founding document 000, whose launches stand between copies, on three buffers that serve again and again:
//            its own experiment is the transfer rung chunks_reused, whose kernel this is
//   try      vecadd bench ladder --rungs float4,chunked
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256, CHUNK = 1 << 22 };

template <typename Component>
__global__ static void
chunked_add(const typename Component::element *__restrict__ a, const typename Component::element *__restrict__ b,
            typename Component::element *__restrict__ c, uint64_t n)
{
    using vector = vector_of<Component>;
    const uint64_t i = thread_number(), vectors = n / vector::size;
    if (i < vectors) {
        const vector x = reinterpret_cast<const vector *>(a)[i], y = reinterpret_cast<const vector *>(b)[i];
        reinterpret_cast<vector *>(c)[i] = add_vectors<Component>(x, y);
        return;
    }
    const uint64_t tail = vectors * vector::size + (i - vectors);
    if (tail < n)
        c[tail] = add_elements<Component>(a[tail], b[tail]);
}

static int
chunked_launch(const struct rung_call *call)
{
    return with_component_of<ALL_COMPONENTS>(call, [=](auto component) -> int {
        using element = typename decltype(component)::element;
        constexpr uint64_t size = vector_of<decltype(component)>::size;
        const uint64_t chunk = static_cast<uint64_t>(call->params[0]) / size * size; /* its vectors are aligned */
        const element *a = static_cast<const element *>(call->a), *b = static_cast<const element *>(call->b);
        element *c = static_cast<element *>(call->c);
        cudaError_t error = cudaSuccess;
        for (uint64_t at = 0; at < call->n && error == cudaSuccess; at += chunk) {
            const uint64_t count = call->n - at < chunk ? call->n - at : chunk;
            error = launch(chunked_add<decltype(component)>, count / size + count % size, block_of(call, BLOCK),
                           target_of(call), a + at, b + at, c + at, count);
        }
        return error;
    });
}

extern "C" const struct rung rung_chunked = {
    .name = "chunked",
    .kind = RUNG_DEVICE,
    .after = "float4",
    .changes = "a launch for every 2^22 elements",
    .tested = "double",
    .components = ALL_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.128.CONSTANT",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 16,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 16,
    .params = {{"chunk", "elements a launch", 1024, CHUNK, 1 << 30}},
    .launch = chunked_launch,
    .run = nullptr,
};
