/* What the tests of device memory do as the product's callers do. */
#ifndef VECADD_DEVICE_MEMORY_H
#define VECADD_DEVICE_MEMORY_H

#include "gpu/device.h"
#include "gpu/memory.h"

/* Gives what device_allocate made back, and takes it off the count. */
static inline void
release_memory(int device, void *stream, void *memory, size_t bytes)
{
    if (memory)
        device_in_use_remove(bytes);
    device_free(device, stream, memory);
}

/* device_check_pointer_near where nothing is known yet. */
static inline int
check_pointer(const void *pointer, size_t bytes, const char *what, int *device, struct status *status)
{
    struct device_range unknown = {0};
    return device_check_pointer_near(pointer, bytes, what, &unknown, device, status);
}

#endif
