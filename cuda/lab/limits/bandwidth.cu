/* How fast memory can be read alone and written alone: the limits that the adders are compared with. Shares no code
 * with the adders. */
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/ptx.cuh"

/* Four independent loads in flight a thread. */
enum { UNROLL = 4, BLOCK = 512 };

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
    return launch(read_only, (vectors + UNROLL - 1) / UNROLL, BLOCK, stream, static_cast<const uint4 *>(memory),
                  vectors, sink);
}

cudaError_t
limits_write_launch(void *memory, size_t bytes, unsigned value, cudaStream_t stream)
{
    const uint64_t vectors = bytes / sizeof(uint4);
    return launch(write_only, vectors, BLOCK, stream, static_cast<uint4 *>(memory), vectors, value);
}

cudaError_t
limits_copy_launch(void *memory, size_t bytes, cudaStream_t stream)
{
    const uint64_t vectors = bytes / (2 * sizeof(uint4));
    uint4 *from = static_cast<uint4 *>(memory);
    return launch(copy_only, vectors, BLOCK, stream, static_cast<const uint4 *>(from), from + vectors, vectors);
}

cudaError_t
limits_read_again_launch(const void *memory, size_t bytes, unsigned times, unsigned *sink, cudaStream_t stream)
{
    const uint64_t vectors = bytes / sizeof(uint4);
    return launch(read_again, (vectors + UNROLL - 1) / UNROLL, BLOCK, stream, static_cast<const uint4 *>(memory),
                  vectors, times, sink);
}

cudaError_t
limits_write_again_launch(void *memory, size_t bytes, unsigned times, cudaStream_t stream)
{
    const uint64_t vectors = bytes / sizeof(uint4);
    return launch(write_again, vectors, BLOCK, stream, static_cast<uint4 *>(memory), vectors, times, vectors / times);
}
