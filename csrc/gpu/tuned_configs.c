/* Which recipes a device has: those that were tuned on it, else the build's. */
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "cuda/kernels.h"
#include "gpu/device.h"
#include "gpu/launch_configs.h"
#include "gpu/state.h"

/* As nvidia-smi writes it. The driver is a part of it: another one may schedule blocks in another way. */
static int
tuned_key(int device, char key[TUNED_KEY], struct status *status)
{
    struct cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaGetDeviceProperties");
    int driver, runtime_version, length = snprintf(key, TUNED_KEY, "GPU");
    device_versions(&driver, &runtime_version);
    for (size_t i = 0; i < sizeof properties.uuid.bytes; i++) {
        const bool begins_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        length += snprintf(key + length, TUNED_KEY - (size_t)length, "%s%02x", begins_group ? "-" : "",
                           (unsigned char)properties.uuid.bytes[i]);
    }
    snprintf(key + length, TUNED_KEY - (size_t)length, " driver %d", driver);
    return 0;
}

static int
shipped(struct recipes *recipes, int device, struct status *status)
{
    int major = 0, minor = 0, l2 = 0;
    cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device);
    if (error != cudaSuccess)
        return device_status(status, error, "cudaDeviceGetAttribute");
    *recipes = recipes_shipped(10 * major + minor, (size_t)l2);
    return 0;
}

int
recipes_find(struct recipes *recipes, int device, struct status *status)
{
    char key[TUNED_KEY];
    if (shipped(recipes, device, status) < 0 || tuned_key(device, key, status) < 0)
        return -1;
    recipes_read_tuned(recipes, key);
    return 0;
}

int
device_recipes(int device, struct device_recipes *recipes, struct status *status)
{
    struct device_scope scope;
    if (device_enter(&scope, device, status) < 0)
        return -1;
    recipes->used = scope.state->recipes;
    device_leave(&scope);
    if (shipped(&recipes->shipped, device, status) < 0)
        return -1;
    return tuned_key(device, recipes->key, status);
}

int
recipe_choose_on_current_device(struct add_call *call)
{
    struct device_scope scope;
    struct status status = {0};
    if (device_enter(&scope, -1, &status) < 0)
        return status.cuda ? status.cuda : cudaErrorUnknown;
    recipe_choose(&scope.state->recipes, call);
    device_leave(&scope);
    return cudaSuccess;
}
