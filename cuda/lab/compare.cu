/* Compares an array with what it should hold where it lies, in the order of its stream: what comes later, on another
 * stream or from another thread, is not seen. */
#include "cuda/kernels.h"
#include "cuda/launch.cuh"

enum { BLOCK = 256 };

template <typename Word>
__global__ static void
compare(const Word *found, const Word *right, const Word *before, const Word *last, Word poison, uint64_t words,
        struct comparison *counts)
{
    const uint64_t i = thread_number();
    if (i >= words)
        return;
    const Word word = found[i];
    if (word == (right ? right[i] : poison))
        return;
    atomicAdd(&counts->wrong, 1ULL);
    atomicMin(&counts->first, static_cast<unsigned long long>(i));
    if (word == poison)
        atomicAdd(&counts->unwritten, 1ULL);
    if (before && word == before[i])
        atomicAdd(&counts->before, 1ULL);
    if (last && word == last[i])
        atomicAdd(&counts->last, 1ULL);
}

template <typename Word>
static cudaError_t
compare_words(const struct compare_call *call, cudaStream_t stream)
{
    Word poison = 0;
    for (unsigned i = 0; i < sizeof(Word); i++)
        poison = static_cast<Word>(poison << 4 << 4 | call->poison);
    const uint64_t words = call->bytes / sizeof(Word);
    return launch(compare<Word>, words, BLOCK, stream, static_cast<const Word *>(call->found),
                  static_cast<const Word *>(call->right), static_cast<const Word *>(call->before),
                  static_cast<const Word *>(call->last), poison, words, call->counts);
}

cudaError_t
compare_launch(const struct compare_call *call, cudaStream_t stream)
{
    switch (call->word) {
    case 1:
        return compare_words<uint8_t>(call, stream);
    case 2:
        return compare_words<uint16_t>(call, stream);
    case 4:
        return compare_words<uint32_t>(call, stream);
    case 8:
        return compare_words<uint64_t>(call, stream);
    }
    return cudaErrorInvalidValue;
}
