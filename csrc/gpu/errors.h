/* What a cudaError_t means to a caller, and the CUDA versions that some messages name. */
#ifndef VECADD_GPU_ERRORS_H
#define VECADD_GPU_ERRORS_H

#include <stdbool.h>

#include "base/status.h"

/* Versions in CUDA's form, 13000 for 13.0; driver is 0 without one. Never fails; initialises nothing. */
void device_versions(int *driver, int *runtime);

/* Whether the device runs nothing any more, for the rest of the process. */
bool device_is_lost(int cuda_error);

/* Sets *status by the one table of what each cudaError_t means. `call` names the CUDA function. Always returns -1. */
int device_status(struct status *status, int cuda_error, const char *call);

/* 0 for cudaSuccess, else device_status. */
static inline int
cuda_result(struct status *status, int cuda_error, const char *call)
{
    return cuda_error == 0 ? 0 : device_status(status, cuda_error, call);
}

/* Calls a function of the CUDA runtime: 0, or -1 with a *status that names it. */
#define CUDA_CALL(status, function, ...) cuda_result(status, (int)function(__VA_ARGS__), #function)

/* For a call whose failure changes nothing: clears the thread's last error, which torch and others would take for
 * theirs. */
void device_ignore(int cuda_error);

#endif
