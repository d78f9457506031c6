/* Kernels that help to measure: one that compares memory, and two that keep a GPU busy. */
#include "cuda/lab/launches.h"
#include "cuda/lab/ptx.cuh"
#include "cuda/launch.cuh"

/* Compares an array with what it should be, in its own memory and in the order of its stream: what comes later, on
 * another stream or from another thread, is not seen. */

enum { COMPARING_BLOCK = 256 };

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
    return launch(compare<Word>, words, COMPARING_BLOCK, stream, static_cast<const Word *>(call->found),
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

/* Keeps a stream busy for a while: work queued meanwhile runs back to back, so that CUDA events around it do not time
 * the host's launches. */

__global__ static void
wait_cycles(int64_t cycles)
{
    const int64_t begin = cycle_counter();
    while (cycle_counter() - begin < cycles)
        ;
}

cudaError_t
delay_launch(unsigned cycles, cudaStream_t stream)
{
    return launch(wait_cycles, 1, 1, stream, static_cast<int64_t>(cycles));
}

/* A blockade keeps all multiprocessors full for a while: kernels of every stream have to wait. Copies between host and
 * device, and events, go on. */

enum { BLOCKADE_BLOCK = 512 }; /* divides the most threads of a multiprocessor, whatever its capability */

__global__ static void
__launch_bounds__(BLOCKADE_BLOCK) block_gpu(struct blockade_flags *flags, unsigned *here, int64_t cycles)
{
    if (threadIdx.x == 0) {
        volatile unsigned *const arrived = here + blockIdx.x;
        *arrived = 1;
#if VECADD_DOUBLE
        static_cast<void>(cycles);
        blockade_on_cpu(&flags->open, &flags->expired);
#else
        const int64_t begin = cycle_counter();
        while (!*static_cast<volatile unsigned *>(&flags->open)) {
            if (cycle_counter() - begin > cycles) {
                *static_cast<volatile unsigned *>(&flags->expired) = 1;
                __threadfence_system(); /* the host sees it before what runs in this block's place */
                break;
            }
            __nanosleep(500);
        }
#endif
    }
    __syncthreads(); /* the other threads keep their places */
}

cudaError_t
blockade_size(int device, unsigned *blocks)
{
    int multiprocessors = 0, of_each = 0;
    cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, reinterpret_cast<const void *>(block_gpu),
                                                              BLOCKADE_BLOCK, 0);
    *blocks = static_cast<unsigned>(multiprocessors * of_each);
    return error;
}

cudaError_t
blockade_launch(struct blockade_flags *flags, unsigned *here, unsigned blocks, unsigned cycles, cudaStream_t stream)
{
    return launch_grid(block_gpu, blocks, BLOCKADE_BLOCK, 0, stream, flags, here, static_cast<int64_t>(cycles));
}
