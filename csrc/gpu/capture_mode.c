#include "gpu/capture_mode.h"

enum cudaStreamCaptureMode
capture_mode_relax(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess)
        return mode;
    cudaGetLastError();
    return cudaStreamCaptureModeRelaxed; /* the mode is unchanged: nothing to restore */
}

void
capture_mode_restore(enum cudaStreamCaptureMode before)
{
    for (int attempt = 0; attempt < 2 && before != cudaStreamCaptureModeRelaxed; attempt++) {
        enum cudaStreamCaptureMode mode = before;
        if (cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess)
            return;
        cudaGetLastError(); /* the failure may be temporary: try again, to leave the caller in its own mode */
    }
}

bool
capture_is_why(cudaError_t error)
{
    return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
}
