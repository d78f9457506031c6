/* What the driver says about a pointer. */
#include <cuda.h>

#include "machine.h"

#include <cstring>

/* Memory of a capture's own is not known before its graph runs. */
static block_ptr
known_at(machine &m, const void *address)
{
    const block_ptr found = block_at(m, address);
    return found && found->of_graph && !found->allocated ? nullptr : found;
}

cudaError_t
cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *address)
{
    return cuda_call(__func__, [&](machine &m) {
        if (!attributes)
            return cudaErrorInvalidValue;
        const block_ptr found = known_at(m, address);
        void *const pointer = const_cast<void *>(address);
        *attributes = {};
        attributes->type = !found                                ? cudaMemoryTypeUnregistered
                           : found->on_device()                  ? cudaMemoryTypeDevice
                           : found->kind == memory_kind::managed ? cudaMemoryTypeManaged
                                                                 : cudaMemoryTypeHost;
        attributes->device = found ? found->device : cudaInvalidDeviceId;
        attributes->devicePointer = found ? pointer : nullptr;
        attributes->hostPointer = found && !found->on_device() ? pointer : nullptr;
        return cudaSuccess;
    });
}

/* Page-locked memory alone has an address for the device, and here as under unified addressing it is the host's. */
cudaError_t
cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    return cuda_call(__func__, [&](machine &m) {
        const block_ptr found = block_at(m, host);
        if (!device || !host || flags != 0 || !found || found->on_device() || found->kind == memory_kind::managed)
            return cudaErrorInvalidValue;
        *device = host;
        return cudaSuccess;
    });
}

/* The range of a pointer that is not known is left as the caller had it: so does the real driver. */
template <typename T>
static CUresult
put(void *to, T value)
{
    std::memcpy(to, &value, sizeof value);
    return CUDA_SUCCESS;
}

static CUresult
attribute_of(const block_ptr &found, CUpointer_attribute attribute, CUdeviceptr address, void *to)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put<unsigned>(to, !found                                                      ? 0
                                 : found->on_device() || found->kind == memory_kind::managed ? CU_MEMORYTYPE_DEVICE
                                                                                             : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return put<int>(to, found ? found->device : cudaInvalidDeviceId);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return put<CUdeviceptr>(to, found ? address : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return found ? put(to, reinterpret_cast<CUdeviceptr>(found->start)) : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return found ? put(to, found->bytes) : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return put<unsigned>(to, found && found->kind == memory_kind::managed);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult
cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr address)
{
    return static_cast<CUresult>(cuda_call(__func__, [&](machine &m) {
        const block_ptr found = known_at(m, reinterpret_cast<void *>(address));
        CUresult result = CUDA_SUCCESS;
        for (unsigned i = 0; i < count && result == CUDA_SUCCESS; ++i)
            result = attribute_of(found, attributes[i], address, values[i]);
        return static_cast<cudaError_t>(result);
    }));
}
