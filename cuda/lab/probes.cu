/* The kernels of the probes, which share no code with the kernels that they are compared with. */
#include "cuda/lab/launches.h"
#include "cuda/lab/ptx.cuh"
#include "cuda/launch.cuh"

/* How fast memory can be read alone and written alone: the limits that the adders are compared with. Shares no code
 * with the adders. */

/* Four independent loads in flight a thread. */
enum { UNROLL = 4, READING_BLOCK = 512 };

/* Threads a block, where nothing else is said. */
enum { BLOCK = 256 };

__global__ static void
read_only(const uint4 *memory, uint64_t vectors, unsigned *sink)
{
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    uint4 found[UNROLL] = {};
    for (uint64_t i = thread_number(); i < vectors; i += UNROLL * stride)
        for (int k = 0; k < UNROLL; ++k)
            if (i + k * stride < vectors) {
                const uint4 v = memory[i + k * stride];
                found[k].x |= v.x;
                found[k].y |= v.y;
                found[k].z |= v.z;
                found[k].w |= v.w;
            }
    unsigned any = 0;
    for (int k = 0; k < UNROLL; ++k)
        any |= found[k].x | found[k].y | found[k].z | found[k].w;
    /* The memory is zero, so that nothing is written, but the compiler cannot know that and keeps the reads. */
    if (any)
        *sink = any;
}

__global__ static void
write_only(uint4 *memory, uint64_t vectors, unsigned value)
{
    const uint64_t i = thread_number();
    if (i < vectors)
        memory[i] = make_uint4(value, value, value, value);
}

__global__ static void
copy_only(const uint4 *from, uint4 *to, uint64_t vectors)
{
    const uint64_t i = thread_number();
    if (i < vectors)
        to[i] = from[i];
}

__global__ static void
read_again(const uint4 *memory, uint64_t vectors, unsigned times, unsigned *sink)
{
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    uint4 any = {};
    for (unsigned time = 0; time < times; ++time)
        for (int k = 0; k < UNROLL; ++k)
            if (thread_number() + k * stride < vectors) {
                const uint4 v = load_past_l1(memory + thread_number() + k * stride);
                any.x |= v.x;
                any.y |= v.y;
                any.z |= v.z;
                any.w |= v.w;
            }
    if (any.x | any.y | any.z | any.w)
        *sink = any.x | any.y | any.z | any.w;
}

/* Each pass writes another thread's vectors: of stores to one address the assembler keeps one in sixteen, volatile or
 * not. */
__global__ static void
write_again(uint4 *memory, uint64_t vectors, unsigned times, uint64_t shift)
{
    uint64_t i = thread_number();
    if (i < vectors)
        for (unsigned time = 0; time < times; ++time) {
            store_past_l1(memory + i, make_uint4(0, 0, 0, 0));
            i += shift;
            if (i >= vectors)
                i -= vectors;
        }
}

cudaError_t
limits_read_launch(const void *memory, size_t bytes, unsigned *sink, cudaStream_t stream)
{
    const uint64_t vectors = bytes / sizeof(uint4);
    return launch(read_only, (vectors + UNROLL - 1) / UNROLL, READING_BLOCK, stream, static_cast<const uint4 *>(memory),
                  vectors, sink);
}

cudaError_t
limits_write_launch(void *memory, size_t bytes, unsigned value, cudaStream_t stream)
{
    const uint64_t vectors = bytes / sizeof(uint4);
    return launch(write_only, vectors, READING_BLOCK, stream, static_cast<uint4 *>(memory), vectors, value);
}

cudaError_t
limits_copy_launch(void *memory, size_t bytes, cudaStream_t stream)
{
    const uint64_t vectors = bytes / (2 * sizeof(uint4));
    uint4 *from = static_cast<uint4 *>(memory);
    return launch(copy_only, vectors, READING_BLOCK, stream, static_cast<const uint4 *>(from), from + vectors, vectors);
}

cudaError_t
limits_read_again_launch(const void *memory, size_t bytes, unsigned times, unsigned *sink, cudaStream_t stream)
{
    const uint64_t vectors = bytes / sizeof(uint4);
    return launch(read_again, (vectors + UNROLL - 1) / UNROLL, READING_BLOCK, stream,
                  static_cast<const uint4 *>(memory), vectors, times, sink);
}

cudaError_t
limits_write_again_launch(void *memory, size_t bytes, unsigned times, cudaStream_t stream)
{
    const uint64_t vectors = bytes / sizeof(uint4);
    return launch(write_again, vectors, READING_BLOCK, stream, static_cast<uint4 *>(memory), vectors, times,
                  vectors / times);
}

/* Latency probes: one thread follows a chain of pointers; also the rate of atomic additions to one address. */

using link = const void *;

/* A step is one load: each link is the address of the next. */
template <bool PastL1>
__global__ static void
chase(const void *start, unsigned steps, link *sink)
{
    link at = start;
    for (unsigned step = 0; step < steps; ++step)
        if constexpr (PastL1)
            at = load_past_l1(static_cast<const link *>(at));
        else
            at = *static_cast<const link *>(at);
    *sink = at;
}

__global__ static void
chain(char *memory, unsigned links, unsigned distance)
{
    const uint64_t i = thread_number();
    if (i < links)
        *reinterpret_cast<link *>(memory + i * distance) = memory + (i + 1) % links * distance;
}

/* A block goes through two arrays side by side, as an addition does: each round waits for the one before. The words'
 * values do not matter, but the next address depends on them. */
__global__ static void
stream(const unsigned *a, const unsigned *b, unsigned rounds, unsigned *sink)
{
    uint64_t at = thread_number();
    for (unsigned round = 0; round < rounds; ++round) {
        const unsigned found = a[at] ^ b[at];
        at += blockDim.x + (found == 0x5bd1e995u);
    }
    *sink = static_cast<unsigned>(at);
}

__global__ static void
add_to_one(float *sink, unsigned times)
{
    for (unsigned time = 0; time < times; ++time)
        atomicAdd(sink, 0.0f);
}

cudaError_t
limits_chain_launch(void *memory, unsigned links, unsigned distance, cudaStream_t stream)
{
    return launch(chain, links, 256, stream, static_cast<char *>(memory), links, distance);
}

cudaError_t
limits_chase_launch(const void *start, unsigned steps, int past_l1, void *sink, cudaStream_t stream)
{
    return launch(past_l1 ? chase<true> : chase<false>, 1, 1, stream, start, steps, static_cast<link *>(sink));
}

cudaError_t
limits_stream_launch(const void *a, const void *b, unsigned rounds, void *sink, cudaStream_t into)
{
    return launch(stream, LIMITS_STREAM_THREADS, LIMITS_STREAM_THREADS, into, static_cast<const unsigned *>(a),
                  static_cast<const unsigned *>(b), rounds, static_cast<unsigned *>(sink));
}

cudaError_t
limits_atomic_launch(void *sink, unsigned times, cudaStream_t stream)
{
    return launch(add_to_one, LIMITS_ATOMIC_THREADS, LIMITS_ATOMIC_THREADS, stream, static_cast<float *>(sink), times);
}

/* A kernel that does nothing: its time is that of the launch. */

__global__ static void
empty()
{
}

cudaError_t
limits_empty_launch(unsigned blocks, unsigned threads, unsigned shared, cudaStream_t stream)
{
    return launch_grid(empty, dim3(blocks), dim3(threads), shared, stream);
}

/* Idle kernels that let the next kernel begin early, or do not: their time is that from one programmatic launch to the
 * next. */

template <bool Triggers>
__global__ static void
idle_in_turn(int64_t cycles)
{
    wait_for_prerequisites();
    if (Triggers)
        trigger_dependents();
    if (cycles) {
        const int64_t begin = cycle_counter();
        while (cycle_counter() - begin < cycles)
            ;
    }
}

cudaError_t
limits_programmatic_launch(unsigned blocks, unsigned threads, int triggers, unsigned cycles, cudaStream_t stream)
{
    return launch(triggers ? idle_in_turn<true> : idle_in_turn<false>, static_cast<uint64_t>(blocks) * threads, threads,
                  launch_target(stream, nullptr, true), static_cast<int64_t>(cycles));
}

/* A launch over a table of jobs that the host has just written: each block reads one job and does nothing with it. */

__global__ static void
look_up(const struct limits_job *jobs, uint64_t *sink)
{
    const struct limits_job job = jobs[blockIdx.x];
    /* No job is all ones, but the compiler cannot know that and keeps the reads. */
    if ((job.from & job.to & job.count) == UINT64_MAX)
        *sink = job.flags;
}

cudaError_t
limits_table_launch(const struct limits_job *jobs, unsigned count, unsigned threads, uint64_t *sink,
                    cudaStream_t stream)
{
    return launch_grid(look_up, dim3(count), dim3(threads), 0, stream, jobs, sink);
}

/* Reads memory with a given number of bytes in flight on each multiprocessor: the rate and the latency of DRAM under
 * load. */

/* A thread issues Loads independent loads, waits for all of them, and only then goes on: Loads of them are always in
 * flight. The memory is zero, but the compiler cannot know that: the next addresses depend on what was found. */
template <unsigned Loads>
__global__ static void
__launch_bounds__(LIMITS_LOADED_THREADS) loaded(const uint4 *memory, unsigned rounds, uint64_t *sink)
{
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    uint64_t at = thread_number();
    for (unsigned round = 0; round < rounds; ++round) {
        unsigned any = 0;
        uint4 found[Loads];
        for (unsigned k = 0; k < Loads; ++k)
            found[k] = memory[at + k * stride];
        for (unsigned k = 0; k < Loads; ++k)
            any |= found[k].x | found[k].y | found[k].z | found[k].w;
        at += Loads * stride + (any == 0x5bd1e995u);
    }
    if (at == UINT64_MAX)
        *sink = at;
}

cudaError_t
limits_loaded_launch(const void *memory, const struct limits_load *load, uint64_t *sink, cudaStream_t stream)
{
    const auto kernel = load->loads == 1 ? loaded<1> : load->loads == 2 ? loaded<2> : loaded<4>;
    return launch_grid(kernel, dim3(load->blocks), dim3(load->threads), 0, stream, static_cast<const uint4 *>(memory),
                       load->rounds, sink);
}

/* Reads two thirds of some memory and writes the other third, a word a thread: for the link's rate in both directions
 * at once, and for the cost of uncached memory to a small kernel. */

__global__ static void
merge(const unsigned *from, unsigned *to, uint64_t words)
{
    const uint64_t i = thread_number();
    if (i < words)
        to[i] = from[i] | from[i + words];
}

cudaError_t
limits_merge_launch(void *memory, size_t bytes, cudaStream_t stream)
{
    const uint64_t words = bytes / (3 * sizeof(unsigned));
    unsigned *from = static_cast<unsigned *>(memory);
    return launch(merge, words, BLOCK, stream, static_cast<const unsigned *>(from), from + 2 * words, words);
}

/* The patterns of a memory test, a word a thread, and a copy between two places that any GPU may have. */

__global__ static void
write_pattern(uint64_t *memory, uint64_t words, struct pattern pattern)
{
    const uint64_t i = thread_number();
    if (i < words)
        memory[i] = pattern_word(pattern, i);
}

__global__ static void
check_pattern(const uint64_t *memory, uint64_t words, struct pattern pattern, struct pattern_found *found)
{
    const uint64_t i = thread_number();
    if (i >= words)
        return;
    const uint64_t word = memory[i];
    if (word == pattern_word(pattern, i))
        return;
    const unsigned long long slot = atomicAdd(&found->count, 1ull);
    if (slot < PATTERN_KEPT) {
        found->wrong[slot].index = i;
        found->wrong[slot].found = word;
    }
}

__global__ static void
copy_words(const uint4 *from, uint4 *to, uint64_t vectors)
{
    const uint64_t i = thread_number();
    if (i < vectors)
        to[i] = from[i];
}

cudaError_t
limits_pattern_write_launch(uint64_t *memory, size_t words, const struct pattern *pattern, cudaStream_t stream)
{
    return launch(write_pattern, words, BLOCK, stream, memory, words, *pattern);
}

cudaError_t
limits_pattern_check_launch(const uint64_t *memory, size_t words, const struct pattern *pattern,
                            struct pattern_found *found, cudaStream_t stream)
{
    return launch(check_pattern, words, BLOCK, stream, memory, words, *pattern, found);
}

cudaError_t
limits_copy_words_launch(const void *from, void *to, size_t bytes, cudaStream_t stream)
{
    const uint64_t vectors = bytes / sizeof(uint4);
    return launch(copy_words, vectors, BLOCK, stream, static_cast<const uint4 *>(from), static_cast<uint4 *>(to),
                  vectors);
}
