#include <stdint.h>

#include "gpu/device.h"
#include "gpu/state.h"

struct range {
    unsigned type; /* CUmemorytype, 0 for memory that the driver does not know */
    int device;
    CUdeviceptr begin;
    size_t bytes;
};

static CUresult
range_of(device_pointer_attributes *attributes, uintptr_t at, struct range *range)
{
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {&range->type, &range->device, &range->begin, &range->bytes};
    *range = (struct range){.device = -1};
    return attributes(sizeof names / sizeof *names, names, values, at);
}

bool
device_knows_pointer(const void *pointer)
{
    struct status ignored;
    device_pointer_attributes *const attributes = device_attributes_of_pointers(&ignored);
    struct range range;
    return attributes && range_of(attributes, (uintptr_t)pointer, &range) == CUDA_SUCCESS && range.type != 0;
}

int
device_check_pointer_near(const void *pointer, size_t bytes, const char *what, struct device_range *known, int *device,
                          struct status *status)
{
    if (device_range_holds(known, (uintptr_t)pointer, bytes)) {
        *device = known->device;
        return 0;
    }
    device_pointer_attributes *const attributes = device_attributes_of_pointers(status);
    if (!attributes)
        return -1;
    if (!pointer)
        return status_set(status, STATUS_VALUE, "%s: the pointer is null, for %zu bytes", what, bytes);
    const uintptr_t begin = (uintptr_t)pointer;
    if (bytes > UINTPTR_MAX - begin)
        return status_set(status, STATUS_VALUE, "%s: %zu bytes from %p pass the end of the address space", what, bytes,
                          pointer);

    for (uintptr_t at = begin; at - begin < bytes;) {
        struct range range;
        CUresult error = range_of(attributes, at, &range);
        if (error != CUDA_SUCCESS)
            return device_status(status, (int)error, "cuPointerGetAttributes");
        bool is_known = range.type != 0 && at - range.begin < range.bytes;
        if (!is_known && at == begin)
            return status_set(status, STATUS_VALUE,
                              "%s: %p is not memory that CUDA knows: it is ordinary host memory or has been freed",
                              what, pointer);
        if (!is_known || (at != begin && range.device != *device))
            return status_set(status, STATUS_VALUE,
                              "%s: %zu bytes from %p do not fit: its allocation ends after %zu bytes", what, bytes,
                              pointer, (size_t)(at - begin));
        if (at == begin)
            known->begin = range.begin;
        known->device = *device = range.device;
        known->end = at = range.begin + range.bytes;
    }
    return 0;
}
