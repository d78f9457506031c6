/* Which launch configs a device uses: those tuned on it, else the build's. */
#include "gpu/tuned_configs.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "cuda/kernels.h"
#include "gpu/errors.h"

/* The UUID as nvidia-smi writes it, and the driver, because another driver may schedule blocks differently. */
int
device_key(int device, char key[DEVICE_KEY], struct status *status)
{
    struct cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaGetDeviceProperties");
    int driver, runtime_version, length = snprintf(key, DEVICE_KEY, "GPU");
    device_versions(&driver, &runtime_version);
    for (size_t i = 0; i < sizeof properties.uuid.bytes; i++) {
        const bool begins_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        length += snprintf(key + length, DEVICE_KEY - (size_t)length, "%s%02x", begins_group ? "-" : "",
                           (unsigned char)properties.uuid.bytes[i]);
    }
    snprintf(key + length, DEVICE_KEY - (size_t)length, " driver %d", driver);
    return 0;
}

int
launch_configs_of_build(struct launch_configs *launch_configs, int device, struct status *status)
{
    int major = 0, minor = 0, l2 = 0;
    cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaDeviceGetAttribute");
    *launch_configs = launch_configs_shipped(10 * major + minor, (size_t)l2);
    return 0;
}

int
launch_configs_find(struct launch_configs *launch_configs, int device, struct status *status)
{
    char key[DEVICE_KEY];
    if (launch_configs_of_build(launch_configs, device, status) < 0 || device_key(device, key, status) < 0)
        return -1;
    launch_configs_read_tuned(launch_configs, key);
    return 0;
}
