#include "kernel_on_cpu.h"
#include "machine.h"

cudaError_t
double_launch(dim3 grid, dim3 block, cudaStream_t handle, std::vector<const void *> pointers,
              std::function<void(unsigned first)> run)
{
    return cuda_call("cudaLaunchKernel", [&](machine &m) {
        const stream_ptr stream = stream_of(m, handle);
        if (!stream)
            return cudaErrorInvalidResourceHandle;
        if (grid.x == 0 || grid.x > INT32_MAX || block.x == 0 || block.x > 1024)
            return cudaErrorInvalidValue;
        const int device = stream->device; /* whatever the current device is: the real runtime does not mind either */
        enqueue(m, stream, [&m, device, grid, pointers = std::move(pointers), run = std::move(run)] {
            if (m.sticky != cudaSuccess)
                return;
            for (const void *pointer : pointers)
                if (pointer && !may_touch(m, pointer, device))
                    return;
            open_memory(m, device);
            run(m.below(grid.x));
        });
        return cudaSuccess;
    });
}

cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function)
{
    return cuda_call(__func__, [&](machine &) {
        if (!attributes || !function)
            return cudaErrorInvalidDeviceFunction;
        *attributes = {};
        attributes->maxThreadsPerBlock = 1024;
        return cudaSuccess;
    });
}
