/* Device memory that takes a GPU a while to fill, so that work which does not wait for the fill is seen. */
#ifndef VECADD_LARGE_MEMORY_H
#define VECADD_LARGE_MEMORY_H

#include <cuda_runtime_api.h>

#include "../../c/check.h"

enum { BYTES = 32 << 20 };

static unsigned char *
device_memory(void)
{
    unsigned char *memory = NULL;
    CHECK(cudaMalloc((void **)&memory, BYTES) == cudaSuccess);
    return memory;
}

static unsigned char
last_byte(const unsigned char *device)
{
    unsigned char value = 0;
    CHECK(cudaMemcpy(&value, device + BYTES - 1, 1, cudaMemcpyDeviceToHost) == cudaSuccess);
    return value;
}

#endif
