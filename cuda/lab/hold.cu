/* Keeps all multiprocessors full for a while: what needs one, the kernel of any stream, has to wait. Copies between the
 * host and the device, and events, go on. */
#include "cuda/kernels.h"
#include "cuda/launch.cuh"
#include "cuda/ptx.cuh"

enum { BLOCK = 512 }; /* divides the threads that a multiprocessor of any capability holds */

__global__ static void
__launch_bounds__(BLOCK) hold(struct hold_flags *flags, unsigned *here, int64_t cycles)
{
    if (threadIdx.x == 0) {
        volatile unsigned *const arrived = here + blockIdx.x;
        *arrived = 1;
#if VECADD_DOUBLE
        static_cast<void>(cycles);
        hold_on_cpu(&flags->open, &flags->expired);
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
hold_blocks(int device, unsigned *blocks)
{
    int multiprocessors = 0, of_each = 0;
    cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, reinterpret_cast<const void *>(hold), BLOCK, 0);
    *blocks = static_cast<unsigned>(multiprocessors * of_each);
    return error;
}

cudaError_t
hold_launch(struct hold_flags *flags, unsigned *here, unsigned blocks, unsigned cycles, cudaStream_t stream)
{
    return launch_grid(hold, blocks, BLOCK, 0, stream, flags, here, static_cast<int64_t>(cycles));
}
