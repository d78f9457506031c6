/* Kernels on the CPU, for cuda/launch.cuh: the built-in variables, and a launch that queues a loop over the grid.
 *
 * Every kernel's file includes it, once for each way to compile: <functional> would take as long as all else in it. */
#ifndef VECADD_KERNEL_ON_CPU_H
#define VECADD_KERNEL_ON_CPU_H

#include <cuda_runtime_api.h>

#define __launch_bounds__(...) /* of registers, which a CPU has no say in */

inline thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

/* As much as a block of any GPU can have. */
enum { MAX_SHARED = 227 << 10 };
alignas(128) inline thread_local unsigned char shared_memory_on_cpu[MAX_SHARED];

/* A block's: its threads run in one thread of the host, one at a time. */
#undef __shared__
#define __shared__ static thread_local

/* blocks.cpp. In a kernel: waits until every thread of the block has come here. */
void __syncthreads();

template <typename Number>
inline Number
atomicAdd(Number *address, Number value)
{
    const Number before = *address; /* one thread of the double runs at a time */
    *address = before + value;
    return before;
}

inline unsigned
atomicOr(unsigned *address, unsigned value)
{
    const unsigned before = *address; /* one thread of the double runs at a time */
    *address = before | value;
    return before;
}

inline unsigned long long
atomicMin(unsigned long long *address, unsigned long long value)
{
    const unsigned long long before = *address; /* one thread of the double runs at a time */
    *address = before < value ? before : value;
    return before;
}

inline uint4
make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

/* Whether a kernel begins when the kernel ahead of it in its stream has ended, or may begin before. */
enum class launch_order { serial, programmatic };

/* l2.cpp. What cuda/ptx.cuh reports in the double: 16 bytes were loaded with evict_last; a line of 128 bytes was
 * demoted. */
void l2_keeps_last(const void *vector);
void l2_demotes(const void *line);

/* A kernel and its arguments. */
struct kernel_call {
    virtual void run_thread() const = 0; /* the one that threadIdx and blockIdx name */
    virtual ~kernel_call() = default;
};

/* launch.cpp. Queues the kernel, and deletes `call` when it has run or is not going to. `pointers` are `count`
 * arguments, null where one is no pointer: they are compared with what is allocated when the kernel runs. */
cudaError_t double_launch(dim3 grid, dim3 block, cudaStream_t stream, launch_order order, const kernel_call *call,
                          const void *const *pointers, unsigned count);

/* launch.cpp. In a kernel: runs to their ends the kernels that this one was allowed to overtake. */
void double_wait_for_prerequisites();

/* queue.cpp. In a kernel that keeps every multiprocessor full until *open is set: no other kernel begins until then.
 * Where nothing else is left to run that somebody waits for, the kernel's time is over, and *expired is set. */
void blockade_on_cpu(const unsigned *open, unsigned *expired);

/* griddepcontrol.wait. Other kernels may run here, in variables that are this one's. */
inline void
wait_for_prerequisites_on_cpu()
{
    const uint3 variables[] = {threadIdx, blockIdx, blockDim, gridDim};
    double_wait_for_prerequisites();
    threadIdx = variables[0];
    blockIdx = variables[1];
    blockDim = variables[2];
    gridDim = variables[3];
}

template <typename Thread> struct kernel_call_of final : kernel_call {
    Thread thread;

    explicit kernel_call_of(Thread thread) : thread(thread)
    {
    }
    void
    run_thread() const override
    {
        thread();
    }
};

template <typename Argument>
inline const void *
pointer_of(const Argument &)
{
    return nullptr;
}

template <typename Argument>
inline const void *
pointer_of(Argument *const &argument)
{
    return argument;
}

template <typename Kernel, typename... Arguments>
cudaError_t
launch_on_cpu(launch_order order, Kernel *kernel, dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
              Arguments... arguments)
{
    if (shared > MAX_SHARED)
        return cudaErrorInvalidValue;
    const auto thread = [=] { kernel(arguments...); };
    const void *const pointers[] = {pointer_of(arguments)..., nullptr};
    return double_launch(grid, block, stream, order, new kernel_call_of<decltype(thread)>(thread), pointers,
                         sizeof...(arguments));
}

/* Kernels that anyone launches: in stream order. */
template <typename Kernel, typename... Arguments>
cudaError_t
launch_on_cpu(Kernel *kernel, dim3 grid, dim3 block, size_t shared, cudaStream_t stream, Arguments... arguments)
{
    return launch_on_cpu(launch_order::serial, kernel, grid, block, shared, stream, arguments...);
}

#endif
