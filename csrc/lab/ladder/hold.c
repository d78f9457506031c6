#include "lab/ladder/hold.h"

#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "cuda/lab/launches.h"
#include "gpu/device.h"
#include "gpu/memory.h"

enum { SUM, OUT, COPIES };

struct hold {
    cudaStream_t stream;
    struct hold_flags *flags; /* page-locked, and so are those below */
    unsigned *here, blocks;
    void *copies[COPIES];
    size_t bytes;
};

/* The kernels write them while the host looks. */
static unsigned
now(const unsigned *flag)
{
    return *(const volatile unsigned *)flag;
}

static int
make(struct hold *hold, int device, const void *sum, struct status *status)
{
    cudaError_t error = hold_blocks(device, &hold->blocks);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&hold->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaHostAlloc((void **)&hold->flags, sizeof *hold->flags + hold->blocks * sizeof *hold->here,
                              cudaHostAllocDefault);
    for (int i = 0; i < COPIES && error == cudaSuccess; i++)
        error = cudaHostAlloc(&hold->copies[i], hold->bytes, cudaHostAllocDefault);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaHostAlloc");
    hold->here = (unsigned *)(hold->flags + 1);
    memset(hold->flags, 0, sizeof *hold->flags + hold->blocks * sizeof *hold->here);
    return device_copy_out(device, NULL, hold->copies[SUM], sum, hold->bytes, status);
}

static bool
all_here(const struct hold *hold)
{
    for (unsigned i = 0; i < hold->blocks; i++)
        if (!now(&hold->here[i]))
            return false;
    return true;
}

/* Fills the GPU. Where another process has a part of it, the time goes by before all blocks run. */
static int
fill(const struct hold *hold, unsigned cycles, struct status *status)
{
    cudaError_t error = hold_launch(hold->flags, hold->here, hold->blocks, cycles, hold->stream);
    if (error != cudaSuccess)
        return device_status(status, error, "hold_launch");
    while (!all_here(hold) && !now(&hold->flags->expired)) {
        error = cudaStreamQuery(hold->stream);
        if (error != cudaSuccess && error != cudaErrorNotReady)
            return device_status(status, error, "cudaStreamQuery");
        device_ignore(error); /* the calling thread's last error, which the call's own code may read */
    }
    return 0;
}

int
hold_begin(struct hold **hold, int device, const void *sum, size_t bytes, unsigned cycles, struct status *status)
{
    struct hold *made = *hold = calloc(1, sizeof *made);
    if (!made)
        return status_set(status, STATUS_MEMORY, "out of memory");
    made->bytes = bytes;
    const int failed = make(made, device, sum, status) < 0 || fill(made, cycles, status) < 0 ? -1 : 0;
    if (failed || now(&made->flags->expired))
        hold_end(hold);
    return failed;
}

int
hold_look(const struct hold *hold, const void *out, bool *unordered, struct status *status)
{
    cudaError_t error = cudaMemcpyAsync(hold->copies[OUT], out, hold->bytes, cudaMemcpyDeviceToHost, NULL);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaMemcpyAsync");
    do
        error = cudaStreamQuery(NULL);
    while (error == cudaErrorNotReady && !now(&hold->flags->expired));
    if (error != cudaSuccess && error != cudaErrorNotReady)
        return device_status(status, error, "cudaStreamQuery");
    device_ignore(error);
    *unordered = error == cudaSuccess && !now(&hold->flags->expired) &&
                 memcmp(hold->copies[OUT], hold->copies[SUM], hold->bytes) != 0;
    return 0;
}

void
hold_end(struct hold **hold)
{
    struct hold *held = *hold;
    *hold = NULL;
    if (!held)
        return;
    if (held->flags)
        *(volatile unsigned *)&held->flags->open = 1;
    device_ignore(cudaDeviceSynchronize());
    if (held->flags)
        device_ignore(cudaFreeHost(held->flags));
    for (int i = 0; i < COPIES; i++)
        if (held->copies[i])
            device_ignore(cudaFreeHost(held->copies[i]));
    if (held->stream)
        device_ignore(cudaStreamDestroy(held->stream));
    free(held);
}
