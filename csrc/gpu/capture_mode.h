/* Calls that must not end another thread's capture.
 *
 * While any thread captures in global mode, which is PyTorch's, CUDA ends the capture where a thread in the default
 * mode queries an event, waits, allocates or frees, even on a stream that takes no part in it. In relaxed mode the same
 * calls succeed and the capture goes on (all measured on an H200, driver 580). Not every call may be made so:
 * cudaDeviceSynchronize, and whatever waits for the stream that captures, end a capture in every mode. An exchange
 * takes 37 ns. */
#ifndef VECADD_GPU_CAPTURE_MODE_H
#define VECADD_GPU_CAPTURE_MODE_H

#include <stdbool.h>

#include <cuda_runtime_api.h>

/* Puts the calling thread into relaxed mode and gives the mode that it was in, for capture_mode_restore. May be nested.
 */
enum cudaStreamCaptureMode capture_mode_relax(void);
void capture_mode_restore(enum cudaStreamCaptureMode before);

/* Whether a call failed because a stream captures. */
bool capture_is_why(cudaError_t error);

#endif
