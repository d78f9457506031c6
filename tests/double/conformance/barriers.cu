/* Barriers: after one, a thread finds what every thread of its block stored before it, and no thread passes before
 * all have come. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "../../c/tests.h"
#include "cuda/launch.cuh"

enum { THREADS = 256, BLOCKS = 5, ROUNDS = 7, N = THREADS * BLOCKS };

/* Each thread passes a value on to its left neighbour, ROUNDS times. */
__global__ static void
rotate(const unsigned *in, unsigned *out)
{
    __shared__ unsigned values[THREADS];
    const unsigned own = threadIdx.y * blockDim.x + threadIdx.x;
    unsigned value = in[blockIdx.x * THREADS + own];
    for (int round = 0; round < ROUNDS; ++round) {
        values[own] = value;
        __syncthreads();
        value = values[(own + 1) % THREADS];
        __syncthreads();
    }
    out[blockIdx.x * THREADS + own] = value;
}

/* The same through memory whose size the launch chooses. */
__global__ static void
reverse(const unsigned *in, unsigned *out)
{
    unsigned *const values = reinterpret_cast<unsigned *>(shared_memory());
    values[threadIdx.x] = in[blockIdx.x * THREADS + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * THREADS + threadIdx.x] = values[THREADS - 1 - threadIdx.x];
}

/* What run(in, out) leaves in `out` of the numbers 0, 1, 2, ... in `in`. */
template <typename Run>
static void
results_of(Run run, unsigned results[N])
{
    unsigned numbers[N];
    unsigned *in = NULL, *out = NULL;
    for (unsigned i = 0; i < N; i++)
        numbers[i] = i;
    CHECK(cudaMalloc((void **)&in, sizeof numbers) == cudaSuccess);
    CHECK(cudaMalloc((void **)&out, sizeof numbers) == cudaSuccess);
    CHECK(cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(run(in, out) == cudaSuccess);
    CHECK(cudaMemcpy(results, out, sizeof numbers, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(cudaFree(in) == cudaSuccess);
    CHECK(cudaFree(out) == cudaSuccess);
}

TEST(threads_find_what_their_neighbours_stored)
{
    unsigned results[N];
    for (unsigned width = 1; width <= THREADS; width *= 16) {
        results_of(
            [=](const unsigned *in, unsigned *out) {
                return launch_grid(rotate, dim3(BLOCKS), dim3(width, THREADS / width), 0, launch_target(NULL), in, out);
            },
            results);
        for (unsigned i = 0; i < N; i++)
            CHECK(results[i] == i / THREADS * THREADS + (i + ROUNDS) % THREADS, "width %u, %u: %u", width, i,
                  results[i]);
    }
}

TEST(shared_memory_of_a_launchs_own_size_does_as_well)
{
    unsigned results[N];
    results_of(
        [](const unsigned *in, unsigned *out) {
            return launch_grid(reverse, dim3(BLOCKS), dim3(THREADS), THREADS * sizeof(unsigned), launch_target(NULL),
                               in, out);
        },
        results);
    for (unsigned i = 0; i < N; i++)
        CHECK(results[i] == i / THREADS * THREADS + (THREADS - 1 - i % THREADS), "%u: %u", i, results[i]);
}

#if VECADD_DOUBLE
/* Undefined on a GPU: a barrier that half of a block comes to, or that all do but thread 0. */
__global__ static void
part(unsigned from, unsigned to)
{
    if (threadIdx.x >= from && threadIdx.x < to)
        __syncthreads();
}

/* How a process ends that launches it. */
static int
end_of_part(unsigned from, unsigned to)
{
    int how = 0;
    const pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        CHECK(launch_grid(part, dim3(1), dim3(THREADS), 0, launch_target(NULL), from, to) == cudaSuccess);
        CHECK(cudaDeviceSynchronize() == cudaSuccess);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &how, 0) == child);
    return how;
}

TEST(a_barrier_that_not_all_threads_come_to_ends_the_process)
{
    CHECK(end_of_part(0, THREADS) == 0);
    CHECK(end_of_part(THREADS, THREADS) == 0);
    const int half = end_of_part(0, THREADS / 2), but_one = end_of_part(1, THREADS);
    CHECK(WIFSIGNALED(half) && WTERMSIG(half) == SIGABRT, "%#x", (unsigned)half);
    CHECK(WIFSIGNALED(but_one) && WTERMSIG(but_one) == SIGABRT, "%#x", (unsigned)but_one);
}
#endif
