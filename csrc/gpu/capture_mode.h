/* Calls that must not end another thread's capture.
 *
 * While any thread captures in global mode, which PyTorch uses, CUDA ends that capture when a thread in the default
 * mode queries an event, waits, allocates or frees, even on a stream outside the capture. In relaxed mode these calls
 * succeed and the capture goes on (all measured on an H200, driver 580). Two kinds of call end a capture in every mode:
 * cudaDeviceSynchronize, and any wait for the capturing stream. An exchange of modes takes 37 ns. */
#ifndef VECADD_GPU_CAPTURE_MODE_H
#define VECADD_GPU_CAPTURE_MODE_H

#include <stdbool.h>

#include <cuda_runtime_api.h>

/* Puts the calling thread into relaxed mode and returns its previous mode, for capture_mode_restore. May be nested. */
enum cudaStreamCaptureMode capture_mode_relax(void);
void capture_mode_restore(enum cudaStreamCaptureMode before);

/* Whether a call failed because a stream captures. */
bool capture_is_why(cudaError_t error);

#endif
