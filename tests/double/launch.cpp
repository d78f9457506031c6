#include "kernel_on_cpu.h"
#include "machine.h"

#include <algorithm>
#include <iterator>

/* The managed memory that the pointers point to: from the launch until a wait for it, the host may not touch it. That
 * is the rule where the host and the device may not use managed memory at once; where they may, this is only stricter.
 */
static std::vector<block_ptr>
take_from_host(machine &m, const std::vector<const void *> &pointers)
{
    std::vector<block_ptr> taken;
    for (const void *pointer : pointers) {
        const block_ptr found = block_at(m, pointer);
        if (!found || found->kind != memory_kind::managed)
            continue;
        ++found->kernels;
        found->pages->allow(false);
        taken.push_back(found);
    }
    return taken;
}

/* Runs every block, beginning with one that the double draws: none may rely on another's having run. */
static void
run_grid(machine &m, dim3 grid, dim3 block, const kernel_call &call)
{
    const unsigned blocks = grid.x * grid.y * grid.z, first = m.below(blocks);
    gridDim = {grid.x, grid.y, grid.z};
    blockDim = {block.x, block.y, block.z};
    for (unsigned k = 0; k < blocks; ++k) {
        const unsigned number = k < blocks - first ? first + k : first + k - blocks;
        blockIdx = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
        run_block(call);
    }
}

cudaError_t
double_launch(dim3 grid, dim3 block, cudaStream_t handle, launch_order order, const kernel_call *owned,
              const void *const *arguments, unsigned count)
{
    const std::shared_ptr<const kernel_call> call(owned);
    std::vector<const void *> pointers;
    std::copy_if(arguments, arguments + count, std::back_inserter(pointers),
                 [](const void *pointer) { return pointer; });
    const bool programmatic = order == launch_order::programmatic;
    return cuda_call(programmatic ? "cudaLaunchKernelExC" : "cudaLaunchKernel", [&](machine &m) {
        stream_ptr stream;
        const cudaError_t unusable = usable_stream(m, handle, stream);
        if (unusable != cudaSuccess)
            return unusable;
        const uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z, threads = uint64_t(block.x) * block.y * block.z;
        if (blocks == 0 || blocks > INT32_MAX || grid.y > 65535 || grid.z > 65535)
            return cudaErrorInvalidValue;
        if (threads == 0 || threads > MAX_THREADS_A_BLOCK || block.z > 64)
            return cudaErrorInvalidValue;
        const int device = stream->device; /* whatever the current device is: the real runtime does not mind either */
        const std::vector<block_ptr> managed = take_from_host(m, pointers);
        const auto kernel = [=, &m] {
            bool allowed = m.sticky == cudaSuccess;
            for (const void *pointer : pointers)
                allowed = allowed && may_touch(m, pointer, device);
            if (allowed) {
                open_memory(m, device);
                for (const void *pointer : pointers)
                    if (const block_ptr found = block_at(m, pointer); found && found->on_device())
                        open_memory(m, found->device);
                for (const block_ptr &block : managed)
                    block->pages->allow(true);
                run_grid(m, grid, block, *call);
            }
            for (const block_ptr &block : managed)
                --block->kernels; /* close_memory gives the pages back to the host */
        };
        enqueue(m, stream, kernel, nullptr, programmatic ? work_kind::programmatic : work_kind::kernel);
        return cudaSuccess;
    });
}

void
double_wait_for_prerequisites()
{
    finish_prerequisites(the_machine());
}

/* What every kernel takes: there is no compiler to ask. */
enum { REGISTERS_A_THREAD = 32 };

cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function)
{
    return cuda_call(__func__, [&](machine &) {
        if (!attributes || !function)
            return cudaErrorInvalidDeviceFunction;
        *attributes = {};
        attributes->maxThreadsPerBlock = MAX_THREADS_A_BLOCK;
        attributes->numRegs = REGISTERS_A_THREAD;
        return cudaSuccess;
    });
}

cudaError_t
cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value)
{
    return cuda_call(__func__, [&](machine &) {
        if (!function)
            return cudaErrorInvalidDeviceFunction;
        const bool known = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize;
        return known && value >= 0 && value <= MAX_SHARED ? cudaSuccess : cudaErrorInvalidValue;
    });
}

/* As many blocks as find room for their threads, their registers and their shared memory, of which each takes
 * RESERVED_SHARED more than it asks for. */
cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads, size_t shared)
{
    return cuda_call(__func__, [&](machine &) {
        if (!function)
            return cudaErrorInvalidDeviceFunction;
        if (!blocks || threads <= 0)
            return cudaErrorInvalidValue;
        const size_t rounded = (static_cast<size_t>(threads) + 31) / 32 * 32;
        const size_t rooms[] = {MAX_BLOCKS_A_MULTIPROCESSOR, MAX_THREADS_A_MULTIPROCESSOR / rounded,
                                REGISTERS_A_MULTIPROCESSOR / (rounded * REGISTERS_A_THREAD),
                                SHARED_A_MULTIPROCESSOR / (shared + RESERVED_SHARED)};
        const bool launches = threads <= MAX_THREADS_A_BLOCK && shared <= MAX_SHARED;
        *blocks = launches ? static_cast<int>(*std::min_element(std::begin(rooms), std::end(rooms))) : 0;
        return cudaSuccess;
    });
}
