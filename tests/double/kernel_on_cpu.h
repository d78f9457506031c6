/* Kernels on the CPU, for cuda/launch.cuh: the built-in variables, and a launch that queues a loop over the grid. */
#ifndef VECADD_KERNEL_ON_CPU_H
#define VECADD_KERNEL_ON_CPU_H

#include <cuda_runtime_api.h>

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

inline thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

inline unsigned
atomicOr(unsigned *address, unsigned value)
{
    return std::exchange(*address, *address | value); /* one thread of the double runs at a time */
}

inline uint4
make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

/* launch.cpp. Queues run(first), which runs every block, beginning with that one. `pointers` are the arguments that
 * point to memory: they are held against what is allocated when the kernel runs. */
cudaError_t double_launch(dim3 grid, dim3 block, cudaStream_t stream, std::vector<const void *> pointers,
                          std::function<void(unsigned first)> run);

template <typename Kernel, typename... Arguments>
cudaError_t
launch_on_cpu(Kernel *kernel, dim3 grid, dim3 block, cudaStream_t stream, Arguments... arguments)
{
    std::vector<const void *> pointers;
    const auto note = [&pointers](auto argument) {
        if constexpr (std::is_pointer_v<decltype(argument)>)
            pointers.push_back(argument);
    };
    (note(arguments), ...);

    return double_launch(grid, block, stream, std::move(pointers), [=](unsigned first) {
        gridDim = {grid.x, 1, 1};
        blockDim = {block.x, 1, 1};
        for (unsigned k = 0; k < grid.x; ++k) {
            blockIdx.x = k < grid.x - first ? first + k : first + k - grid.x;
            for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x)
                kernel(arguments...);
        }
    });
}

#endif
