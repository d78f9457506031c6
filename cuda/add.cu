/* tuned: one 16-byte vector a thread, two in sums of 4 to 16 MiB, for any alignment and length.
 *
 * Vectors are aligned on c. If an operand's address has another remainder modulo 16, each thread reads it by two
 * aligned loads and a shift that is the same for the whole grid: no loss on an H200, where scalar loads cost 30 %. The
 * components before the first and after the last vector go to one thread each, in the same launch.
 *
 * Large operands are loaded with evict_last: 721 us instead of 731 at 2^28 float32 on an H200. The L2 would then keep
 * these lines at the cost of the caller's other data (later work on 45 MB is 12 % slower). So the threads that
 * load the end of the inputs demote its lines; demoting all of the inputs would cost 5 %. */
#include "cuda/components.cuh"
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/shifted.cuh"

static constexpr unsigned USUAL_BLOCK = 256, WARP = 32;

/* The most vectors of a small addition, and those up to which blocks of 128 threads are quicker than of 256. */
static constexpr uint64_t SMALL = 1 << 17, SMALLEST = 1 << 12;

/* The vectors of additions in which a thread takes two, a block apart: where that makes one wave of blocks of two. An
 * H200, whose multiprocessors run 8.65 MB of them at once: 8 MiB an operand took 0.98 of the time, alone and in a row,
 * 4 MiB 1.00 and 0.99, 12 MiB 1.01 and 1.00. An H100: 0.98 and 0.97 at 8 MiB. */
static constexpr uint64_t PAIRS = 1 << 18, PAIRS_MOST = 1 << 19;

/* As in shifted.cuh, and what is demoted. */
struct tuned_split : split {
    uint64_t demote_from; /* the first vector whose lines are demoted */
};

template <typename Component>
__device__ static unsigned
vector_flags(const vector_of<Component> &a, const vector_of<Component> &b, const vector_of<Component> &sum)
{
    unsigned flags = 0;
    for (unsigned i = 0; i < sizeof sum.units / sizeof sum.units[0]; ++i)
        flags |= Component::flags(a.units[i], b.units[i], sum.units[i]);
    return flags;
}

/* Demotes the cache line of an address, if all of it is inside the operand. */
__device__ static void
demote_around(const void *address, const void *operand, const void *end)
{
    const uintptr_t line = reinterpret_cast<uintptr_t>(address) / L2_LINE * L2_LINE;
    if (line >= reinterpret_cast<uintptr_t>(operand) && line + L2_LINE <= reinterpret_cast<uintptr_t>(end))
        demote_line(reinterpret_cast<const void *>(line));
}

/* Demotes the lines that this thread's warp loaded from an operand. Eight threads share a line, and the last of them
 * demotes it. If two warps share a line, both demote it, because either may be the later one. */
template <typename Component, bool Shifted>
__device__ static void
demote(const typename Component::element *first, const tuned_split &split, uint64_t vector)
{
    const typename Component::element *operand = first - split.head;
    const void *end = operand + split.vectors * vector_of<Component>::size + split.edges;
    const words *low = low_words(first, vector);
    const bool ends_line = reinterpret_cast<uintptr_t>(low + 1) % L2_LINE == 0;
    const bool ends_warp = threadIdx.x % WARP == WARP - 1 || vector + 1 == split.vectors;
    if (ends_line || (!Shifted && ends_warp))
        demote_around(low, operand, end);
    if (Shifted && ends_warp)
        demote_around(low + (phase_of(first) != 0), operand, end);
}

template <typename Component, bool Shifted, enum add_loads Loads, bool Flags>
__global__ static void
tuned(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
      tuned_split split, unsigned *fp_flags)
{
    wait_for_prerequisites();
    const uint64_t thread = thread_number();
    unsigned flags = 0;
    if (thread < split.vectors) {
        vector_of<Component> x, y;
        if constexpr (Shifted) {
            const straddle near_x = load_straddle<Loads>(a, thread), near_y = load_straddle<Loads>(b, thread);
            x = align<Component>(near_x);
            y = align<Component>(near_y);
        } else {
            x = bits_as<vector_of<Component>>(load_words<Loads>(reinterpret_cast<const words *>(a) + thread));
            y = bits_as<vector_of<Component>>(load_words<Loads>(reinterpret_cast<const words *>(b) + thread));
        }
        const vector_of<Component> sum = add_vectors<Component>(x, y);
        reinterpret_cast<vector_of<Component> *>(c)[thread] = sum;
        if constexpr (Flags)
            flags = vector_flags<Component>(x, y, sum);
        if constexpr (Loads == LOADS_EVICT_LAST)
            if (thread >= split.demote_from) {
                demote<Component, Shifted>(a, split, thread);
                demote<Component, Shifted>(b, split, thread);
            }
    } else if (thread - split.vectors < split.edges) {
        const int64_t i = edge_at<Component>(split, thread - split.vectors);
        const typename Component::element x = a[i], y = b[i], sum = add_elements<Component>(x, y);
        c[i] = sum;
        if constexpr (Flags)
            flags = Component::flags(x, y, sum);
    }
    if constexpr (Flags)
        if (flags)
            atomicOr(fp_flags, flags);
}

/* tuned for small, aligned operands. In back-to-back launches an addition of 2^10 to 2^16 elements takes about 1 us, so
 * what a block does before its loads counts: a known number of threads, 32-bit numbers and predicated loads save 2 to
 * 5 % of tuned's time, which is level with Triton's kernel (H200). */

/* Adds the component outside of the vectors, if there is one of that number. */
template <typename Component>
__device__ static void
add_edge(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
         const small_split &split, uint32_t edge)
{
    if (edge >= split.edges)
        return;
    const int64_t i = edge_at<Component>(split, edge);
    c[i] = add_elements<Component>(a[i], b[i]);
}

template <typename Component, unsigned Block>
__global__ static void
__launch_bounds__(Block) tuned_small(const typename Component::element *a, const typename Component::element *b,
                                     typename Component::element *c, small_split split)
{
    using vector = vector_of<Component>;
    wait_for_prerequisites();
    const uint32_t thread = blockIdx.x * Block + threadIdx.x;
    const bool inside = thread < split.vectors;
    const words x = load_if(inside, reinterpret_cast<const words *>(a) + thread),
                y = load_if(inside, reinterpret_cast<const words *>(b) + thread);
    if (inside) {
        reinterpret_cast<vector *>(c)[thread] = add_vectors<Component>(bits_as<vector>(x), bits_as<vector>(y));
        return;
    }
    add_edge<Component>(a, b, c, split, thread - split.vectors);
}

/* tuned_small with two vectors a thread, a block apart: half of the blocks, and each warp's loads stay side by side.
 * Two neighbouring vectors took 1.02 to 1.16 of the time of one. */
template <typename Component>
__global__ static void
__launch_bounds__(USUAL_BLOCK) tuned_pairs(const typename Component::element *a, const typename Component::element *b,
                                           typename Component::element *c, small_split split)
{
    using vector = vector_of<Component>;
    wait_for_prerequisites();
    const uint32_t first = blockIdx.x * 2 * USUAL_BLOCK + threadIdx.x, second = first + USUAL_BLOCK;
    const words *const all_a = reinterpret_cast<const words *>(a), *const all_b = reinterpret_cast<const words *>(b);
    const words x = load_if(first < split.vectors, all_a + first), y = load_if(first < split.vectors, all_b + first),
                z = load_if(second < split.vectors, all_a + second),
                w = load_if(second < split.vectors, all_b + second);
    if (first < split.vectors)
        reinterpret_cast<vector *>(c)[first] = add_vectors<Component>(bits_as<vector>(x), bits_as<vector>(y));
    else
        add_edge<Component>(a, b, c, split, first - split.vectors);
    if (second < split.vectors)
        reinterpret_cast<vector *>(c)[second] = add_vectors<Component>(bits_as<vector>(z), bits_as<vector>(w));
    else
        add_edge<Component>(a, b, c, split, second - split.vectors);
}

template <typename Component>
static auto
tuned_for(bool shifted, enum add_loads loads, bool flags)
{
    if constexpr (Component::raises_flags)
        if (flags)
            return tuned<Component, false, LOADS_PLAIN, true>;
    if (loads == LOADS_EVICT_LAST)
        return shifted ? tuned<Component, true, LOADS_EVICT_LAST, false>
                       : tuned<Component, false, LOADS_EVICT_LAST, false>;
    return shifted ? tuned<Component, true, LOADS_PLAIN, false> : tuned<Component, false, LOADS_PLAIN, false>;
}

/* The first vector to demote: a warp's first vector, because demote() relies on whole warps. */
static uint64_t
demoted_from(uint64_t vectors, size_t bytes)
{
    const uint64_t last = bytes / 16;
    if (bytes == 0)
        return UINT64_MAX;
    return vectors <= last ? 0 : (vectors - last) / WARP * WARP;
}

template <typename Component>
static cudaError_t
launch_tuned(const struct add_call *call)
{
    using element = typename Component::element;
    const bool shifted = phase_of(call->a) != phase_of(call->c) || phase_of(call->b) != phase_of(call->c);
    tuned_split split = {split_components<Component>(call->c, call->n, shifted), 0};
    /* No kernel does shifted vectors with flags: calls with flags wait for the host link, and their operands are
     * vecadd's own buffers. */
    if (shifted && Component::raises_flags && call->fp_flags)
        split = {{0, 0, call->n}, 0};
    split.demote_from = demoted_from(split.vectors, call->demoted);
    const unsigned block = call->block ? call->block : USUAL_BLOCK;
    if (block % WARP != 0)
        return cudaErrorInvalidConfiguration; /* demote() relies on whole warps */
    const launch_target target(call->stream, call->describe, call->programmatic);
    const element *const a = static_cast<const element *>(call->a) + split.head;
    const element *const b = static_cast<const element *>(call->b) + split.head;
    element *const c = static_cast<element *>(call->c) + split.head;
    const uint64_t threads = split.vectors + split.edges;
    const bool plain = !shifted && call->loads == LOADS_PLAIN && !call->fp_flags && block == USUAL_BLOCK;
    if (plain && split.vectors >= PAIRS && split.vectors <= PAIRS_MOST)
        return launch(tuned_pairs<Component>, (threads + 1) / 2, USUAL_BLOCK, target, a, b, c, small(split));
    if (plain && split.vectors <= SMALL) {
        if (split.vectors <= SMALLEST)
            return launch(tuned_small<Component, 128>, threads, 128, target, a, b, c, small(split));
        return launch(tuned_small<Component, 256>, threads, 256, target, a, b, c, small(split));
    }
    return launch(tuned_for<Component>(shifted, call->loads, call->fp_flags), threads, block, target, a, b, c, split,
                  call->fp_flags);
}

cudaError_t
add_launch(const struct add_call *call)
{
    return with_component(call->component, [call](auto component) { return launch_tuned<decltype(component)>(call); });
}

cudaError_t
add_load(void)
{
    return load_components([](auto component) {
        using type = decltype(component);
        const cudaError_t error =
            load(tuned_small<type, 128>, tuned_small<type, 256>, tuned_pairs<type>,
                 tuned<type, false, LOADS_PLAIN, false>, tuned<type, true, LOADS_PLAIN, false>,
                 tuned<type, false, LOADS_EVICT_LAST, false>, tuned<type, true, LOADS_EVICT_LAST, false>);
        if constexpr (type::raises_flags)
            if (error == cudaSuccess)
                return load(tuned<type, false, LOADS_PLAIN, true>);
        return error;
    });
}
