#include "gpu/capture_mode.h"

enum cudaStreamCaptureMode
capture_mode_relax(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess)
        return mode;
    cudaGetLastError();
    return cudaStreamCaptureModeRelaxed; /* nothing was changed, so nothing is to be restored */
}

void
capture_mode_restore(enum cudaStreamCaptureMode before)
{
    for (int attempt = 0; attempt < 2 && before != cudaStreamCaptureModeRelaxed; attempt++) {
        enum cudaStreamCaptureMode mode = before;
        if (cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess)
            return;
        cudaGetLastError(); /* what fails for a moment: the caller must not be left in another mode */
    }
}

bool
capture_is_why(cudaError_t error)
{
    return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
}
