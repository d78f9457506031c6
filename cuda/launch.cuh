/* Kernel launches: through the CUDA runtime under nvcc; under a C++ compiler, on the tests' replacement for it
 * ("double").
 *
 * cudaLaunchKernel rather than <<<>>>, whose stubs would make the extension depend on libstdc++. Under g++ the same
 * kernel source runs on the CPU, in a loop over blocks and threads, so that sanitizers test its index arithmetic. A
 * block's threads run there one after the other, thread 0 first, each to its next barrier or its end: a missing barrier
 * shows, because a thread finds in shared memory only what it and threads before it have stored. */
#ifndef VECADD_CUDA_LAUNCH_CUH
#define VECADD_CUDA_LAUNCH_CUH

#include <cuda_runtime_api.h>
#include <stdint.h>

#include <initializer_list>

#include "cuda/facts.h"

#if VECADD_DOUBLE
#include "kernel_on_cpu.h"
#endif

enum { SHARED_WITHOUT_ASKING = 48 << 10 }; /* bytes of shared memory a block that need no cudaFuncSetAttribute */

/* Keeps T out of deduction: the kernel's parameters decide the types, the arguments convert to them. */
template <typename T> struct exactly {
    using type = T;
};

/* The target of a launch: a stream, or only a description. `programmatic`, for compute capability 9.0 and up, lets the
 * kernel begin before the preceding kernel of the stream has ended: every thread must then call wait_for_prerequisites
 * (cuda/ptx.cuh) before it loads, stores or exits. */
struct launch_target {
    cudaStream_t stream;
    struct kernel_launch *describe;
    bool programmatic;

    launch_target(cudaStream_t stream, struct kernel_launch *describe = nullptr, bool programmatic = false)
        : stream(stream), describe(describe), programmatic(programmatic)
    {
    }
};

inline void
describe_launch(struct kernel_launch *launch, const void *function, dim3 grid, dim3 block, size_t shared)
{
    if (launch->launches++ == 0)
        *launch = {function, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, 1};
}

/* Queues kernel(arguments...) on the grid, with that many bytes of shared memory a block. */
template <typename... Parameters>
inline cudaError_t
launch_grid(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared, launch_target target,
            typename exactly<Parameters>::type... arguments)
{
    const void *function = reinterpret_cast<const void *>(kernel);
    if (shared > SHARED_WITHOUT_ASKING) {
        const cudaError_t error =
            cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
        if (error != cudaSuccess)
            return error;
    }
    if (target.describe) {
        describe_launch(target.describe, function, grid, block, shared);
        return cudaSuccess;
    }
#if VECADD_DOUBLE
    const launch_order order = target.programmatic ? launch_order::programmatic : launch_order::serial;
    return launch_on_cpu(order, kernel, grid, block, shared, target.stream, arguments...);
#else
    void *pointers[] = {&arguments...};
    if (!target.programmatic)
        return cudaLaunchKernel(function, grid, block, pointers, shared, target.stream);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = target.stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelExC(&config, function, pointers);
#endif
}

/* Queues kernel(arguments...) on `threads` threads, rounded up to whole blocks; nothing for 0 threads. */
template <typename... Parameters>
inline cudaError_t
launch(void (*kernel)(Parameters...), uint64_t threads, unsigned block, launch_target target,
       typename exactly<Parameters>::type... arguments)
{
    const uint64_t blocks = (threads + block - 1) / block;
    if (blocks == 0)
        return cudaSuccess;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidConfiguration;
    return launch_grid(kernel, dim3(static_cast<unsigned>(blocks)), dim3(block), 0, target, arguments...);
}

/* This thread's number in the grid. */
__device__ inline uint64_t
thread_number()
{
    return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/* The block's dynamic shared memory. */
__device__ inline unsigned char *
shared_memory()
{
#if VECADD_DOUBLE
    return shared_memory_on_cpu;
#else
    extern __shared__ __align__(128) unsigned char memory[];
    return memory;
#endif
}

/* Loads kernels into the current device's context, until one fails. */
template <typename... Kernels>
inline cudaError_t
load(Kernels *...kernels)
{
    cudaFuncAttributes attributes;
    cudaError_t error = cudaSuccess;
    for (const void *kernel : {reinterpret_cast<const void *>(kernels)...})
        if (error == cudaSuccess)
            error = cudaFuncGetAttributes(&attributes, kernel);
    return error;
}

#endif
