/* Many threads that add to one element. */
#include "cuda/lab/rung.cuh"

/* Those that the hardware adds atomically. */
enum { ATOMIC_COMPONENTS = 1 << COMPONENT_F32 | 1 << COMPONENT_F64 | 1 << COMPONENT_I32 };

// race: all threads of a block add to every element, without synchronising. Wrong on purpose.
//
//   after    single_block
//   changes  each of T threads walks all n: c[i] += a[i] + b[i]. Threads read c before others have written it, and
//            their additions are lost.
//   expects  a failed check: c should be T * (a + b), and a warp adds once for its 32 threads. One thread at a time,
//            as on a CPU, it is right: only a GPU shows what this rung is for.
//   from     founding document 004
//   try      vecadd bench ladder --rungs race,atomic --sizes 2^12

template <typename Component>
__global__ static void
race_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
         uint64_t n)
{
    for (uint64_t i = 0; i < n; ++i)
        c[i] = add_elements<Component>(c[i], add_elements<Component>(a[i], b[i]));
}

static int
race_launch(const struct rung_call *call)
{
    return launch_blocks<ATOMIC_COMPONENTS>(call, dim3(1), dim3(block_of(call)),
                                            [](auto component) { return race_add<decltype(component)>; });
}

extern "C" const struct rung rung_race = {
    .name = "race",
    .after = "single_block",
    .changes = "every thread adds to every element: updates are lost",
    .components = ATOMIC_COMPONENTS,
    .sum = SUM_RACED,
    .bytes_per_element = 16,
    .loads_in_flight = 3,
    .blocks = 1,
    .launch = race_launch,
};

// atomic: race with atomic additions: right, and slow.
//
//   after    race
//   changes  atomicAdd in place of c[i] +=: no addition is lost, and c is T * (a + b), in whatever order they came,
//            because every thread adds the same number
//   expects  the additions to one address run one after the other in the L2, 1.7 ns each on an H200: 433 ns an
//            element for T = 256, a hundred thousand times what one plain addition takes. Atomic float32 additions in
//            global memory take subnormal numbers for zero (REDG.E.ADD.F32.FTZ).
//   from     founding document 004
//   try      vecadd bench ladder --rungs race,atomic --sizes 2^12

/* The type that the hardware adds atomically. */
template <typename Component> struct number_of;
template <> struct number_of<f32_component> {
    using type = float;
};
template <> struct number_of<f64_component> {
    using type = double;
};
template <> struct number_of<i32_component> {
    using type = unsigned;
};

template <typename Component>
__global__ static void
atomic_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
           uint64_t n)
{
    using number = typename number_of<Component>::type;
    for (uint64_t i = 0; i < n; ++i)
        atomicAdd(reinterpret_cast<number *>(c + i), bits_as<number>(add_elements<Component>(a[i], b[i])));
}

static int
atomic_launch(const struct rung_call *call)
{
    return launch_blocks<ATOMIC_COMPONENTS>(call, dim3(1), dim3(block_of(call)),
                                            [](auto component) { return atomic_add<decltype(component)>; });
}

extern "C" const struct rung rung_atomic = {
    .name = "atomic",
    .after = "race",
    .changes = "atomicAdd: every update counts",
    .components = ATOMIC_COMPONENTS,
    .sum = SUM_ADDED_BY_EACH_THREAD,
    .bytes_per_element = 16,
    .blocks = 1,
    .launch = atomic_launch,
};
