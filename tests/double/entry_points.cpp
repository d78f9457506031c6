/* The driver's functions, which the CUDA runtime gives by name. */
#include <cuda.h>

#include "machine.h"

#include <cstring>

static const struct {
    const char *name;
    void *function;
    unsigned since; /* the version of CUDA that brought it */
} entry_points[] = {
    {"cuCtxCreate", reinterpret_cast<void *>(cuCtxCreate_v4), 12050},
    {"cuCtxDestroy", reinterpret_cast<void *>(cuCtxDestroy_v2), 4000},
    {"cuCtxGetCurrent", reinterpret_cast<void *>(cuCtxGetCurrent), 4000},
    {"cuCtxSetCurrent", reinterpret_cast<void *>(cuCtxSetCurrent), 4000},
    {"cuDevicePrimaryCtxGetState", reinterpret_cast<void *>(cuDevicePrimaryCtxGetState), 7000},
    {"cuDevicePrimaryCtxRetain", reinterpret_cast<void *>(cuDevicePrimaryCtxRetain), 7000},
    {"cuPointerGetAttributes", reinterpret_cast<void *>(cuPointerGetAttributes), 7000},
    {"cuTensorMapEncodeTiled", reinterpret_cast<void *>(cuTensorMapEncodeTiled), 12000},
};

cudaError_t
cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long,
                                 cudaDriverEntryPointQueryResult *status)
{
    return cuda_call(__func__, [&](machine &) {
        if (!symbol || !function)
            return cudaErrorInvalidValue;
        *function = nullptr;
        cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
        for (const auto &entry : entry_points)
            if (std::strcmp(symbol, entry.name) == 0) {
                *function = version >= entry.since ? entry.function : nullptr;
                found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointVersionNotSufficent;
            }
        if (status)
            *status = found;
        return cudaSuccess;
    });
}
