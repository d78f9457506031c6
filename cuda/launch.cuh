/* How a kernel is launched: through the CUDA runtime under nvcc, on the tests' double of it under a C++ compiler.
 *
 * cudaLaunchKernel rather than <<<>>>, whose stubs would make the extension depend on libstdc++. Under g++ the same
 * kernel source runs on the CPU, a loop over blocks and threads, so that its index arithmetic is tested under the
 * sanitizers; kernels with barriers or shared memory cannot run that way. */
#ifndef VECADD_LAUNCH_CUH
#define VECADD_LAUNCH_CUH

#include <cuda_runtime_api.h>
#include <stdint.h>

#if VECADD_DOUBLE
#include "kernel_on_cpu.h"
#endif

/* Keeps T out of deduction: the kernel's parameters decide the types, the arguments convert to them. */
template <typename T> struct exactly {
    using type = T;
};

/* Queues kernel(arguments...) on `threads` threads, rounded up to whole blocks. No thread: nothing is queued. */
template <typename... Parameters>
inline cudaError_t
launch(void (*kernel)(Parameters...), uint64_t threads, unsigned block, cudaStream_t stream,
       typename exactly<Parameters>::type... arguments)
{
    const uint64_t blocks = (threads + block - 1) / block;
    if (blocks == 0)
        return cudaSuccess;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    const dim3 grid(static_cast<unsigned>(blocks));
#if VECADD_DOUBLE
    return launch_on_cpu(kernel, grid, dim3(block), stream, arguments...);
#else
    void *pointers[] = {&arguments...};
    return cudaLaunchKernel(reinterpret_cast<const void *>(kernel), grid, dim3(block), pointers, 0, stream);
#endif
}

/* This thread's number in the grid. */
__device__ inline uint64_t
thread_number()
{
    return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/* Loads a kernel into the current device's context. */
template <typename Kernel>
inline cudaError_t
load(Kernel *kernel)
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(kernel));
}

#endif
