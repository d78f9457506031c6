// chunked: one addition as several launches.
//
//   after    restrict
//   changes  a launch for every 2^22 components (chunk), in order on one stream
//   expects  each launch drains before the next one fills the GPU: some microseconds a chunk, little against 14 us for
//            2^22 float32 on an H200. The chunk that one launch leaves in the L2 is of no use to the next launch, which
//            reads other components.
//   from     founding document 000
//   try      vecadd bench ladder --rungs restrict,chunked
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256, CHUNK = 1 << 22 };

template <typename Component>
__global__ static void
chunked_add(const typename Component::element *__restrict__ a, const typename Component::element *__restrict__ b,
            typename Component::element *__restrict__ c, uint64_t n)
{
    const uint64_t i = thread_number();
    if (i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
chunked_launch(const struct rung_call *call)
{
    const uint64_t chunk = static_cast<uint64_t>(call->params[0]);
    return with_component_of<LADDER_COMPONENTS>(call, [=](auto component) -> int {
        using element = typename decltype(component)::element;
        const element *a = static_cast<const element *>(call->a), *b = static_cast<const element *>(call->b);
        element *c = static_cast<element *>(call->c);
        cudaError_t error = cudaSuccess;
        for (uint64_t at = 0; at < call->n && error == cudaSuccess; at += chunk) {
            const uint64_t count = call->n - at < chunk ? call->n - at : chunk;
            error = launch(chunked_add<decltype(component)>, count, block_of(call, BLOCK), target_of(call), a + at,
                           b + at, c + at, count);
        }
        return error;
    });
}

extern "C" const struct rung rung_chunked = {
    .name = "chunked",
    .kind = RUNG_DEVICE,
    .after = "restrict",
    .changes = "a launch for every 2^22 elements",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.CONSTANT",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 4,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 0,
    .params = {{"chunk", "elements a launch", 1024, CHUNK, 1 << 30}},
    .launch = chunked_launch,
    .run = nullptr,
};
