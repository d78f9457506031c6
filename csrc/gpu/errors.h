/* What a cudaError_t means to a caller, and the versions that some of them are about. */
#ifndef VECADD_GPU_ERRORS_H
#define VECADD_GPU_ERRORS_H

#include <stdbool.h>

#include "base/status.h"

/* Versions as CUDA counts them, 13000 for 13.0; driver is 0 where there is none. Never fails; initialises nothing. */
void device_versions(int *driver, int *runtime);

/* Whether nothing runs on the device any more, and nothing ever will. */
bool device_is_lost(int cuda_error);

/* Sets *status from a cudaError_t: the one table of what each means. `call` names the CUDA function. Always returns -1.
 */
int device_status(struct status *status, int cuda_error, const char *call);

/* For a call whose failure changes nothing: takes its cudaError_t out of the thread's last error, where torch and
 * others would take it for theirs. */
void device_ignore(int cuda_error);

#endif
