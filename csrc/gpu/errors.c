/* The meaning of each CUDA error. */
#include "gpu/errors.h"

#include <cuda_runtime_api.h>

static const struct error_row {
    cudaError_t error;
    enum status_code code;
    const char *sentence;
} error_table[] = {
    {cudaErrorMemoryAllocation, STATUS_MEMORY, "there is not enough memory; free arrays or add smaller ones"},
    {cudaErrorInitializationError, STATUS_FORKED,
     "CUDA did not start; in a process forked from one that used CUDA it cannot: use multiprocessing's 'spawn' start "
     "method"},
    {cudaErrorNoDevice, STATUS_NO_GPU, "the driver sees no GPU; host arrays are added without one"},
    {cudaErrorInvalidDevice, STATUS_VALUE, "there is no such device"},
    {cudaErrorInvalidResourceHandle, STATUS_VALUE,
     "the stream is not one that this device knows: it is destroyed or belongs to another device"},
    {cudaErrorInvalidValue, STATUS_CUDA, "a value was not accepted"},
    {cudaErrorCudartUnloading, STATUS_CUDA, "the process is exiting"},
    {cudaErrorNoKernelImageForDevice, STATUS_CUDA,
     "this build has no code for this GPU: compute capability 7.5 and up"},
    {cudaErrorDevicesUnavailable, STATUS_CUDA, "the GPU is in use by another process, exclusively, or is not usable"},
    {cudaErrorSystemNotReady, STATUS_CUDA, "the GPU is not ready; a service that it needs may not be running"},
    {cudaErrorSystemDriverMismatch, STATUS_CUDA, "libcuda and the kernel driver are of different versions"},
    {cudaErrorUnknown, STATUS_CUDA, "the GPU or its driver does not work; the system's log may say why"},
    {cudaErrorStreamCaptureUnsupported, STATUS_CAPTURE, "this cannot be done while a stream captures"},
    {cudaErrorStreamCaptureInvalidated, STATUS_CAPTURE, "the stream's capture has ended by an error before this call"},
    {cudaErrorStreamCaptureImplicit, STATUS_CAPTURE,
     "the legacy default stream cannot be used while a blocking stream captures"},
    {cudaErrorECCUncorrectable, STATUS_DEVICE_LOST, "the GPU's memory had an error that could not be corrected"},
    {cudaErrorNvlinkUncorrectable, STATUS_DEVICE_LOST, "the GPU's link had an error that could not be corrected"},
    {cudaErrorContained, STATUS_DEVICE_LOST, "the GPU had an error that could not be corrected"},
    {cudaErrorIllegalAddress, STATUS_DEVICE_LOST, "a kernel touched memory that is not its own, or was freed"},
    {cudaErrorLaunchTimeout, STATUS_DEVICE_LOST, "a kernel ran for longer than this GPU's display allows"},
    {cudaErrorContextIsDestroyed, STATUS_DEVICE_LOST, "the device was reset by other code"},
    {cudaErrorAssert, STATUS_DEVICE_LOST, "an assertion failed in a kernel"},
    {cudaErrorHardwareStackError, STATUS_DEVICE_LOST, "a kernel overran its stack"},
    {cudaErrorIllegalInstruction, STATUS_DEVICE_LOST, "a kernel has an illegal instruction"},
    {cudaErrorMisalignedAddress, STATUS_DEVICE_LOST, "a kernel used a misaligned address"},
    {cudaErrorInvalidAddressSpace, STATUS_DEVICE_LOST, "a kernel used an address of the wrong kind"},
    {cudaErrorInvalidPc, STATUS_DEVICE_LOST, "a kernel jumped to no code"},
    {cudaErrorLaunchFailure, STATUS_DEVICE_LOST, "a kernel failed"},
    {cudaErrorTensorMemoryLeak, STATUS_DEVICE_LOST, "a kernel left tensor memory allocated"},
};

void
device_versions(int *driver, int *runtime_version)
{
    if (cudaDriverGetVersion(driver) != cudaSuccess) {
        *driver = 0;
        cudaGetLastError();
    }
    if (cudaRuntimeGetVersion(runtime_version) != cudaSuccess) {
        *runtime_version = CUDART_VERSION;
        cudaGetLastError();
    }
}

static int
insufficient_driver(struct status *status)
{
    int driver, runtime_version;
    device_versions(&driver, &runtime_version);
    if (driver == 0)
        return status_set(status, STATUS_NO_GPU,
                          "there is no NVIDIA driver on this machine; host arrays are added without one");
    return status_set(status, STATUS_DRIVER_TOO_OLD,
                      "the NVIDIA driver is too old: it supports CUDA %d.%d, this build of vecadd needs %d.%d; update "
                      "the driver",
                      driver / 1000, driver % 1000 / 10, runtime_version / 1000, runtime_version % 1000 / 10);
}

static const struct error_row *
row_of(int cuda_error)
{
    for (size_t i = 0; i < sizeof error_table / sizeof *error_table; i++)
        if ((int)error_table[i].error == cuda_error)
            return &error_table[i];
    return NULL;
}

bool
device_is_lost(int cuda_error)
{
    const struct error_row *row = row_of(cuda_error);
    return row && row->code == STATUS_DEVICE_LOST;
}

int
device_status(struct status *status, int cuda_error, const char *call)
{
    const struct error_row *row = row_of(cuda_error);
    const enum status_code code = row ? row->code : STATUS_CUDA;
    const char *sentence = row ? row->sentence : cudaGetErrorString(cuda_error);
    if (cuda_error == cudaErrorInsufficientDriver)
        insufficient_driver(status);
    else
        status_set(status, code, "%s%s (%s: %s, %d)",
                   code == STATUS_DEVICE_LOST ? "no device call of this process works any more: " : "", sentence, call,
                   cudaGetErrorName(cuda_error), cuda_error);
    status->cuda = cuda_error;
    cudaGetLastError(); /* cleared, as it is reported here: torch and others must not take it for theirs */
    return -1;
}

void
device_ignore(int cuda_error)
{
    if (cuda_error != cudaSuccess)
        cudaGetLastError();
}
