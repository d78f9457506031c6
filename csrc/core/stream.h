/* The only file that orders streams. */
#ifndef VECADD_STREAM_H
#define VECADD_STREAM_H

#include "status.h"

/* Refuses a stream of another device than `device`: its kernels would run there, on memory of here. No CUDA call where
 * there is one device. A stream that captures passes: to ask for its device would end the capture (measured). */
int stream_check_device(int device, void *stream, struct status *status);

/* Makes work queued on `after` from now on wait for what `before` holds now, without a host synchronise. The same
 * stream twice is a no-op. */
int stream_join(int device, void *before, void *after, struct status *status);

#endif
