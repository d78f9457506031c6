/* The patterns of a memory test, a word a thread, and a copy between two places that any GPU may have. */
#include "cuda/lab/limits/probe_launches.h"
#include "cuda/launch.cuh"

enum { BLOCK = 256 };

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
