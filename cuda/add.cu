/* tuned: one 16-byte vector a thread, for any alignment and length.
 *
 * Vectors are aligned on c. An operand whose address has another remainder modulo 16 is read by two aligned loads and a
 * shift that is the same for the whole grid: no loss on an H200 where scalar loads cost 30 %. The lanes before the
 * first and after the last vector go one to a thread of the same launch. */
#include "kernels.h"
#include "lanes.cuh"
#include "launch.cuh"

/* How n lanes are shared out. The first `vectors` threads take a vector each, the next `edges` a lane each. */
struct split {
    uint64_t head; /* lanes before the first vector */
    uint64_t vectors;
    uint64_t edges; /* lanes outside the vectors, at both ends */
};

template <typename Lane>
__device__ static vector_of<Lane>
load(const typename Lane::element *first, uint64_t vector)
{
    return reinterpret_cast<const vector_of<Lane> *>(first)[vector];
}

/* Bytes past the last 16-byte boundary. */
__host__ __device__ static unsigned
phase_of(const void *pointer)
{
    return reinterpret_cast<uintptr_t>(pointer) % 16;
}

struct alignas(16) words {
    uint32_t word[4];
};

/* The two aligned vectors that hold a misaligned one; twice the same where `first` is aligned. */
struct straddle {
    words low, high;
    unsigned phase;
};

__device__ static straddle
load_straddle(const void *first, uint64_t vector)
{
    const unsigned phase = phase_of(first);
    const words *from = reinterpret_cast<const words *>(static_cast<const char *>(first) - phase) + vector;
    return {from[0], from[phase != 0], phase};
}

template <typename Lane>
__device__ static vector_of<Lane>
align(const straddle &s)
{
    uint32_t w[8];
    for (int i = 0; i < 4; ++i) {
        w[i] = s.low.word[i];
        w[i + 4] = s.high.word[i];
    }
    /* Moves by a constant: an array indexed at run time would live in local memory. */
    if (s.phase & 8)
        for (int i = 0; i < 6; ++i)
            w[i] = w[i + 2];
    if (s.phase & 4)
        for (int i = 0; i < 5; ++i)
            w[i] = w[i + 1];
    words aligned;
    for (int i = 0; i < 4; ++i)
        aligned.word[i] = funnel_shift(w[i], w[i + 1], s.phase % 4 * 8);
    return bits_as<vector_of<Lane>>(aligned);
}

template <typename Lane>
__device__ static unsigned
vector_flags(const vector_of<Lane> &a, const vector_of<Lane> &b, const vector_of<Lane> &sum)
{
    unsigned flags = 0;
    for (unsigned i = 0; i < sizeof sum.units / sizeof sum.units[0]; ++i)
        flags |= Lane::flags(a.units[i], b.units[i], sum.units[i]);
    return flags;
}

template <typename Lane, bool Shifted, bool Flags>
__global__ static void
tuned(const typename Lane::element *a, const typename Lane::element *b, typename Lane::element *c, split split,
      unsigned *fp_flags)
{
    const uint64_t thread = thread_number();
    unsigned flags = 0;
    if (thread < split.vectors) {
        vector_of<Lane> x, y;
        if constexpr (Shifted) {
            const straddle near_x = load_straddle(a + split.head, thread),
                           near_y = load_straddle(b + split.head, thread);
            x = align<Lane>(near_x);
            y = align<Lane>(near_y);
        } else {
            x = load<Lane>(a + split.head, thread);
            y = load<Lane>(b + split.head, thread);
        }
        const vector_of<Lane> sum = add_vectors<Lane>(x, y);
        reinterpret_cast<vector_of<Lane> *>(c + split.head)[thread] = sum;
        if constexpr (Flags)
            flags = vector_flags<Lane>(x, y, sum);
    } else if (thread - split.vectors < split.edges) {
        uint64_t i = thread - split.vectors;
        if (i >= split.head)
            i += split.vectors * vector_of<Lane>::size;
        const typename Lane::element x = a[i], y = b[i], sum = add_elements<Lane>(x, y);
        c[i] = sum;
        if constexpr (Flags)
            flags = Lane::flags(x, y, sum);
    }
    if constexpr (Flags)
        if (flags)
            atomicOr(fp_flags, flags);
}

template <typename Lane>
static auto
tuned_for(bool shifted, bool flags)
{
    if constexpr (Lane::raises_flags)
        if (flags)
            return shifted ? tuned<Lane, true, true> : tuned<Lane, false, true>;
    return shifted ? tuned<Lane, true, false> : tuned<Lane, false, false>;
}

/* Threads a block by the bytes that move, on an H200 with rotating buffers: from 50 MB on 768 is ahead (16.4 us against
 * 16.7 at 2^22 float32, 731 against 734 at 2^28), up to 13 MB 256 is (7.87 against 7.90). */
static unsigned
block_for(size_t bytes)
{
    return bytes < (size_t)32 << 20 ? 256 : 768;
}

template <typename Lane>
static cudaError_t
launch_tuned(const struct add_call *call)
{
    using element = typename Lane::element;
    const size_t size = sizeof(element), vector = vector_of<Lane>::size;
    const bool shifted = phase_of(call->a) != phase_of(call->c) || phase_of(call->b) != phase_of(call->c);
    /* The two loads of a shifted vector reach up to a vector beyond it on both sides; a vector's worth of lanes at each
     * end keeps them inside the operand. */
    const size_t margin = shifted ? vector : 0;

    split split;
    split.head = (16 - phase_of(call->c)) % 16 / size + margin;
    split.vectors = call->n < split.head + margin ? 0 : (call->n - split.head - margin) / vector;
    split.edges = call->n - split.vectors * vector;
    return launch(tuned_for<Lane>(shifted, call->fp_flags), split.vectors + split.edges, block_for(3 * size * call->n),
                  launch_target(call->stream, call->describe), static_cast<const element *>(call->a),
                  static_cast<const element *>(call->b), static_cast<element *>(call->c), split, call->fp_flags);
}

cudaError_t
add_launch(const struct add_call *call)
{
    return with_lane(call->lane, [call](auto lane) { return launch_tuned<decltype(lane)>(call); });
}

cudaError_t
add_load(void)
{
    cudaError_t error = cudaSuccess;
    for (int lane = 0; lane < LANE_COUNT; ++lane)
        for (int form = 0; form < 4 && error == cudaSuccess; ++form)
            error = with_lane(static_cast<enum lane>(lane),
                              [form](auto each) { return load(tuned_for<decltype(each)>(form & 1, form & 2)); });
    return error;
}
