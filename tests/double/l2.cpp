/* What kernels asked the L2 to keep. It is a double of their requests alone: nothing is evicted here. */
#include "double.h"
#include "kernel_on_cpu.h"
#include "machine.h"

static constexpr uintptr_t LINE = 128;
static constexpr size_t MOST_PERSISTING = L2_BYTES * 5 / 8; /* the share that an H200 gives */

cudaError_t
cudaDeviceSetLimit(cudaLimit limit, size_t bytes)
{
    return cuda_call(__func__, [&](machine &m) {
        if (limit != cudaLimitPersistingL2CacheSize)
            return cudaErrorUnsupportedLimit;
        if (bytes > MOST_PERSISTING)
            return cudaErrorInvalidValue;
        m.persisting[current_device()] = bytes;
        return cudaSuccess;
    });
}

cudaError_t
cudaDeviceGetLimit(size_t *bytes, cudaLimit limit)
{
    return cuda_call(__func__, [&](machine &m) {
        if (limit != cudaLimitPersistingL2CacheSize)
            return cudaErrorUnsupportedLimit;
        if (!bytes)
            return cudaErrorInvalidValue;
        *bytes = m.persisting[current_device()];
        return cudaSuccess;
    });
}

/* The lines go back to those that are kept as any other; what is set aside stays so. */
cudaError_t
cudaCtxResetPersistingL2Cache(void)
{
    return cuda_call(__func__, [&](machine &) { return cudaSuccess; });
}

int
double_persisting(int device, size_t bytes)
{
    const int before = double_current_device(device);
    const cudaError_t error = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, bytes);
    double_current_device(before);
    return error;
}

/* Under the machine's lock: kernels run inside the call that waits for them. */
void
l2_keeps_last(const void *vector)
{
    the_machine().evict_last[reinterpret_cast<uintptr_t>(vector) / LINE] = true;
}

void
l2_demotes(const void *line)
{
    machine &m = the_machine();
    const uintptr_t at = reinterpret_cast<uintptr_t>(line);
    const block_ptr found = block_at(m, line);
    if (at % LINE != 0)
        fault("%p is demoted and is not the begin of a line of the L2", line);
    else if (!found || at + LINE > reinterpret_cast<uintptr_t>(found->start) + found->bytes)
        fault("%p is demoted and is not a whole line of one allocation", line);
    else
        m.evict_last[at / LINE] = false;
}
