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
        const uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z, threads = uint64_t(block.x) * block.y * block.z;
        if (blocks == 0 || blocks > INT32_MAX || grid.y > 65535 || grid.z > 65535)
            return cudaErrorInvalidValue;
        if (threads == 0 || threads > 1024 || block.z > 64)
            return cudaErrorInvalidValue;
        const int device = stream->device; /* whatever the current device is: the real runtime does not mind either */
        enqueue(m, stream, [&m, device, blocks, pointers = std::move(pointers), run = std::move(run)] {
            if (m.sticky != cudaSuccess)
                return;
            for (const void *pointer : pointers)
                if (pointer && !may_touch(m, pointer, device))
                    return;
            open_memory(m, device);
            run(m.below(static_cast<unsigned>(blocks)));
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
