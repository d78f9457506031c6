/* Reads two thirds of some memory and writes the other third, a word a thread: for the link's rate in both directions
 * at once, and for the cost of uncached memory to a small kernel. */
#include "cuda/lab/limits/probe_launches.h"
#include "cuda/launch.cuh"

enum { BLOCK = 256 };

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
