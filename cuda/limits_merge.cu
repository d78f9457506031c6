/* Reads two thirds of a memory and writes the third: what a link carries when it is asked for both at once. */
#include "launch.cuh"
#include "probe_launches.h"

enum { BLOCK = 512 };

__global__ static void
merge(const uint4 *from, uint4 *to, uint64_t vectors)
{
    const uint64_t i = thread_number();
    if (i < vectors) {
        const uint4 x = from[i], y = from[i + vectors];
        to[i] = make_uint4(x.x | y.x, x.y | y.y, x.z | y.z, x.w | y.w);
    }
}

cudaError_t
limits_merge_launch(void *memory, size_t bytes, cudaStream_t stream)
{
    const uint64_t vectors = bytes / (3 * sizeof(uint4));
    uint4 *from = static_cast<uint4 *>(memory);
    return launch(merge, vectors, BLOCK, stream, static_cast<const uint4 *>(from), from + 2 * vectors, vectors);
}
