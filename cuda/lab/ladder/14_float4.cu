// float4: one 16-byte load a thread in place of four 4-byte ones.
//
//   after    float2_unroll2
//   changes  a thread owns one 16-byte vector; the n % V components left over go one to a thread of the same launch
//            (tail 0). The documents' ways: a branch for the last thread (1, document 002), a launch of 32 threads for
//            them alone (2, document 000), none, for an n that is a multiple (3, document 001)
//   expects  4x fewer load instructions, 64 KiB in flight an SM against naive's 16: 26 % faster at 2^28 float32 on
//            an H200. The tail is a few elements of millions, whatever adds it; a launch of its own costs what a launch
//            costs, some 1.5 us behind another: a third more where all of the addition takes 4
//   from     founding documents 000, 001, 002
//   try      vecadd bench ladder --rungs naive,float4
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256, TAIL_BLOCK = 32 }; /* more than the components of a vector */
enum { TAIL_THREADS, TAIL_BRANCH, TAIL_LAUNCH, TAIL_NONE };

static const char *const tails[] = {"threads", "branch", "launch", "none", nullptr};

template <typename Component>
__global__ static void
float4_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
           uint64_t n)
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

/* The last thread adds what is left over: no thread has less than a vector but that one. */
template <typename Component>
__global__ static void
float4_branch_add(const typename Component::element *a, const typename Component::element *b,
                  typename Component::element *c, uint64_t n)
{
    using vector = vector_of<Component>;
    const uint64_t i = thread_number(), first = i * vector::size;
    if (first + vector::size <= n) {
        const vector x = reinterpret_cast<const vector *>(a)[i], y = reinterpret_cast<const vector *>(b)[i];
        reinterpret_cast<vector *>(c)[i] = add_vectors<Component>(x, y);
        return;
    }
    for (unsigned k = 0; k < vector::size; ++k) /* not up to n: the compiler would unroll that to 64 loads */
        if (first + k < n)
            c[first + k] = add_elements<Component>(a[first + k], b[first + k]);
}

/* Whole vectors alone. */
template <typename Component>
__global__ static void
float4_whole_add(const typename Component::element *a, const typename Component::element *b,
                 typename Component::element *c, uint64_t n)
{
    using vector = vector_of<Component>;
    const uint64_t i = thread_number();
    if (i < n / vector::size) {
        const vector x = reinterpret_cast<const vector *>(a)[i], y = reinterpret_cast<const vector *>(b)[i];
        reinterpret_cast<vector *>(c)[i] = add_vectors<Component>(x, y);
    }
}

/* The components from `first` on, fewer than a block has threads. */
template <typename Component>
__global__ static void
float4_tail_add(const typename Component::element *a, const typename Component::element *b,
                typename Component::element *c, uint64_t n, uint64_t first)
{
    const uint64_t i = first + threadIdx.x;
    if (i < n)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
launch_by_threads(const struct rung_call *call)
{
    const auto threads = [call](auto component) {
        const uint64_t size = vector_size(component);
        return call->n / size + call->n % size;
    };
    return launch_threads<ALL_COMPONENTS>(call, BLOCK, threads,
                                          [](auto component) { return float4_add<decltype(component)>; });
}

static int
launch_branch(const struct rung_call *call)
{
    return launch_threads<ALL_COMPONENTS>(
        call, BLOCK, [call](auto component) { return ceil_div(call->n, vector_size(component)); },
        [](auto component) { return float4_branch_add<decltype(component)>; });
}

/* Whole vectors, and behind them, where `tail` is true, what is left over; else nothing may be. */
static int
launch_whole(const struct rung_call *call, bool tail)
{
    return with_component_of<ALL_COMPONENTS>(call, [=](auto component) -> int {
        using element = typename decltype(component)::element;
        const uint64_t size = vector_size(component), left = call->n % size;
        const element *a = static_cast<const element *>(call->a), *b = static_cast<const element *>(call->b);
        element *c = static_cast<element *>(call->c);
        if (left && !tail)
            return cudaErrorInvalidValue;
        const cudaError_t error = launch(float4_whole_add<decltype(component)>, call->n / size, block_of(call, BLOCK),
                                         target_of(call), a, b, c, call->n);
        if (error != cudaSuccess || left == 0)
            return error;
        return launch_grid(float4_tail_add<decltype(component)>, dim3(1), dim3(TAIL_BLOCK), 0, target_of(call), a, b, c,
                           call->n, call->n - left);
    });
}

static int
float4_launch(const struct rung_call *call)
{
    switch (call->params[0]) {
    case TAIL_THREADS:
        return launch_by_threads(call);
    case TAIL_BRANCH:
        return launch_branch(call);
    default:
        return launch_whole(call, call->params[0] == TAIL_LAUNCH);
    }
}

extern "C" const struct rung rung_float4 = {
    .name = "float4",
    .kind = RUNG_DEVICE,
    .after = "float2_unroll2",
    .changes = "one 16-byte vector a thread",
    .tested = "double",
    .components = ALL_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.128",
    .headline = true,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 16,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 16,
    .params =
        {{"tail",
          "what adds the components after the last vector: 0 a thread each, 1 the last thread, in a branch, 2 a launch "
          "of 32 threads, 3 nothing: n must be a multiple",
          0, TAIL_THREADS, TAIL_NONE, tails}},
    .launch = float4_launch,
    .run = nullptr,
};
