/* The only file that orders streams. */
#ifndef VECADD_STREAM_H
#define VECADD_STREAM_H

#include "status.h"

/* Makes work queued on `after` from now on wait for what `before` holds now, without a host synchronise. The same
 * stream twice is a no-op. */
int stream_join(int device, void *before, void *after, struct status *status);

#endif
