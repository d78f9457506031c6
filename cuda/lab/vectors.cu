/* Vectors of 8 and 16 bytes. */
#include "cuda/lab/rung.cuh"
#include "cuda/lab/unrolled.cuh"

// float2: one 8-byte load a thread in place of two 4-byte ones.
//
//   after    unroll4
//   changes  a thread owns one 8-byte vector; the n % V components left over go one to a thread of the same launch
//   expects  32 KiB in flight an SM, as unroll2 has, by half of its instructions
//   from     founding document 003
//   try      vecadd bench ladder --rungs unroll2,float2,float4

template <typename Component>
__global__ static void
float2_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
           uint64_t n)
{
    using vector = vector_of<Component, 8>;
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
float2_launch(const struct rung_call *call)
{
    return launch_vectors<LADDER_COMPONENTS, 8>(call, [](auto component) { return float2_add<decltype(component)>; });
}

extern "C" const struct rung rung_float2 = {
    .name = "float2",
    .after = "unroll4",
    .changes = "one 8-byte vector a thread",
    .components = LADDER_COMPONENTS,
    .bytes_per_load = 8,
    .alignment = 8,
    .launch = float2_launch,
};

// float2_unroll2: two 8-byte vectors of each input in flight.
//
//   after    float2
//   changes  a grid-stride loop over vectors, unrolled by two
//   expects  64 KiB in flight an SM, as float4 has
//   from     founding document 003
//   try      vecadd bench ladder --rungs float2,float2_unroll2,float4

extern "C" const struct rung rung_float2_unroll2 = {
    .name = "float2_unroll2",
    .after = "float2",
    .changes = "two 8-byte vectors of each input in flight",
    .components = LADDER_COMPONENTS,
    .bytes_per_load = 8,
    .loads_in_flight = 4,
    .alignment = 8,
    .launch = launch_unrolled<8, 2>,
};

// float4: one 16-byte load a thread in place of four 4-byte ones.
//
//   after    float2_unroll2
//   changes  a thread owns one 16-byte vector; the n % V components left over go one to a thread of the same launch
//            (tail 0). The documents' ways: a branch for the last thread (1, document 002), a launch of 32 threads for
//            them alone (2, document 000), none, for an n that is a multiple (3, document 001)
//   expects  4x fewer load instructions, 64 KiB in flight an SM against naive's 16: 26 % faster at 2^28 float32 on
//            an H200. The tail is a few elements of millions, whatever adds it; a launch of its own costs what a launch
//            costs, some 1.5 us after another: a third more where all of the addition takes 4
//   from     founding documents 000, 001, 002
//   try      vecadd bench ladder --rungs naive,float4

enum { TAIL_BLOCK = 32 }; /* more than the components of a vector */
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
    return launch_vectors<ALL_COMPONENTS, 16>(call, [](auto component) { return float4_add<decltype(component)>; });
}

static int
launch_branch(const struct rung_call *call)
{
    return launch_threads<ALL_COMPONENTS>(
        call, [call](auto component) { return ceil_div(call->n, vector_of<decltype(component)>::size); },
        [](auto component) { return float4_branch_add<decltype(component)>; });
}

/* Adds whole vectors and then, if `tail`, the elements left over; without `tail` there must be none. */
static int
launch_whole(const struct rung_call *call, bool tail)
{
    return with_component_of<ALL_COMPONENTS>(call, [=](auto component) -> int {
        using element = typename decltype(component)::element;
        const uint64_t size = vector_of<decltype(component)>::size, left = call->n % size;
        const element *a = static_cast<const element *>(call->a), *b = static_cast<const element *>(call->b);
        element *c = static_cast<element *>(call->c);
        if (left && !tail)
            return cudaErrorInvalidValue;
        const cudaError_t error = launch(float4_whole_add<decltype(component)>, call->n / size, block_of(call),
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
    .after = "float2_unroll2",
    .changes = "one 16-byte vector a thread",
    .headline = true,
    .bytes_per_load = 16,
    .alignment = 16,
    .params =
        {{"tail",
          "what adds the components after the last vector: 0 a thread each, 1 the last thread, in a branch, 2 a launch "
          "of 32 threads, 3 nothing: n must be a multiple",
          0, TAIL_THREADS, TAIL_NONE, tails}},
    .launch = float4_launch,
};

// float4_float2: 16-byte vectors, then an 8-byte one, then components.
//
//   after    float4
//   changes  the tail: at most one 8-byte vector; the components after it go one to a thread
//   expects  nothing: the tail is less than 16 bytes, one warp's work
//   from     founding document 002
//   try      vecadd bench ladder --rungs float4,float4_float2 --sizes 10,1000003

template <typename Component>
__global__ static void
float4_float2_add(const typename Component::element *a, const typename Component::element *b,
                  typename Component::element *c, uint64_t n)
{
    using vector = vector_of<Component>;
    using half = vector_of<Component, 8>;
    const uint64_t i = thread_number(), vectors = n / vector::size, halves = n / half::size;
    if (i < vectors) {
        const vector x = reinterpret_cast<const vector *>(a)[i], y = reinterpret_cast<const vector *>(b)[i];
        reinterpret_cast<vector *>(c)[i] = add_vectors<Component>(x, y);
    } else if (i == vectors && halves % 2) {
        const half x = reinterpret_cast<const half *>(a)[halves - 1], y = reinterpret_cast<const half *>(b)[halves - 1];
        reinterpret_cast<half *>(c)[halves - 1] = add_vectors<Component>(x, y);
    } else {
        const uint64_t tail = halves * half::size + (i - vectors - halves % 2);
        if (tail < n)
            c[tail] = add_elements<Component>(a[tail], b[tail]);
    }
}

static int
float4_float2_launch(const struct rung_call *call)
{
    return launch_vectors<LADDER_COMPONENTS, 16>(call,
                                                 [](auto component) { return float4_float2_add<decltype(component)>; });
}

extern "C" const struct rung rung_float4_float2 = {
    .name = "float4_float2",
    .after = "float4",
    .changes = "a tail of one 8-byte vector, then scalars",
    .components = LADDER_COMPONENTS,
    .bytes_per_load = 16,
    .alignment = 16,
    .launch = float4_float2_launch,
};

// float4_arg: vectors in, components out: a and b are pointers to 16-byte vectors, c is one to components.
//
//   after    float4_float2
//   changes  a vector's sums are stored one by one. The document compares the thread's number with n and reads up to 12
//            bytes past the end where n % 4 is not 0; here the last thread reads the remaining components one by one.
//   expects  float4's loads, and 4x its store instructions, each of which touches 16 sectors for the 4 that it fills:
//            slower than float4 where the L2 cannot merge the stores
//   from     founding document 002
//   try      vecadd bench ladder --rungs float4,float4_arg

template <typename Component> struct elements_of {
    typename Component::element at[vector_of<Component>::size];
};

template <typename Component>
__global__ static void
float4_arg_add(const vector_of<Component> *a, const vector_of<Component> *b, typename Component::element *c, uint64_t n)
{
    const unsigned size = vector_of<Component>::size;
    const uint64_t i = thread_number(), first = i * size;
    if (first + size <= n) {
        const vector_of<Component>
            x = a[i],
            y = b[i]; /* copies: added in place, the vectors would be loaded component by component */
        const auto sum = bits_as<elements_of<Component>>(add_vectors<Component>(x, y));
        for (unsigned k = 0; k < size; ++k)
            c[first + k] = sum.at[k];
        return;
    }
    const typename Component::element *x = reinterpret_cast<const typename Component::element *>(a);
    const typename Component::element *y = reinterpret_cast<const typename Component::element *>(b);
    for (unsigned k = 0; k < size; ++k) /* not up to n: the compiler would unroll that to 64 loads */
        if (first + k < n)
            c[first + k] = add_elements<Component>(x[first + k], y[first + k]);
}

static int
float4_arg_launch(const struct rung_call *call)
{
    return with_component_of<LADDER_COMPONENTS>(call, [call](auto component) -> int {
        using vector = vector_of<decltype(component)>;
        return launch(float4_arg_add<decltype(component)>, ceil_div(call->n, vector::size), block_of(call),
                      target_of(call), static_cast<const vector *>(call->a), static_cast<const vector *>(call->b),
                      static_cast<typename decltype(component)::element *>(call->c), call->n);
    });
}

extern "C" const struct rung rung_float4_arg = {
    .name = "float4_arg",
    .after = "float4_float2",
    .changes = "vectors loaded, scalars stored",
    .components = LADDER_COMPONENTS,
    .bytes_per_load = 16,
    .alignment = 16,
    .launch = float4_arg_launch,
};

// float4_unroll2: two 16-byte vectors of each input in flight.
//
//   after    float4_arg
//   changes  wide loads first, then modest unrolling
//   expects  128 KiB of loads in flight an SM, where 19 fill an H200, for 16 registers more: nothing over float4 at
//   full
//            size
//   from     founding document 003, in words
//   try      vecadd bench ladder --rungs float4,float4_unroll2

extern "C" const struct rung rung_float4_unroll2 = {
    .name = "float4_unroll2",
    .after = "float4_arg",
    .changes = "two 16-byte vectors of each input in flight",
    .components = LADDER_COMPONENTS,
    .bytes_per_load = 16,
    .loads_in_flight = 4,
    .alignment = 16,
    .launch = launch_unrolled<16, 2>,
};

// chunked: one addition as several launches.
//
//   after    float4
//   changes  const __restrict__, and a launch for every 2^22 components (chunk), in order on one stream
//   expects  each launch drains before the next one fills the GPU: some microseconds a chunk, much beside the 15 us
//            that 2^22 float32 take on an H200. The chunk that one launch leaves in the L2 is of no use to the next
//            launch, which reads other components.
//   from     founding document 000, whose launches are between copies, on three buffers that serve again and again:
//            its own experiment is the transfer rung chunks_reused, whose kernel this is
//   try      vecadd bench ladder --rungs float4,chunked

enum { CHUNK = 1 << 22 };

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
            error = launch(chunked_add<decltype(component)>, count / size + count % size, block_of(call),
                           target_of(call), a + at, b + at, c + at, count);
        }
        return error;
    });
}

extern "C" const struct rung rung_chunked = {
    .name = "chunked",
    .after = "float4",
    .changes = "a launch for every 2^22 elements",
    .bytes_per_load = 16,
    .load = "LDG.E.128.CONSTANT",
    .alignment = 16,
    .params = {{"chunk", "elements a launch", 1024, CHUNK, 1 << 30}},
    .launch = chunked_launch,
};
