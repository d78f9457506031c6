/* The only file that orders streams. */
#ifndef VECADD_STREAM_H
#define VECADD_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "status.h"

/* Refuses a stream of another device than `device`: its kernels would run there, on memory of here. No CUDA call where
 * there is one device. A stream that captures passes: to ask for its device would end the capture (measured). */
int stream_check_device(int device, void *stream, struct status *status);

/* Whether work on the stream is captured into a graph at present. No CUDA call for the legacy default stream, which is
 * never captured. */
int stream_captures(void *stream, bool *captures, struct status *status);

/* Makes work queued on `after` from now on wait for what `before` holds now, without a host synchronise. The same
 * stream twice is a no-op. */
int stream_join(int device, void *before, void *after, struct status *status);

/* Whether work on `stream` that is ordered with that on `others` becomes part of a capture. No CUDA call where there
 * are no others. */
int stream_any_captures(void *stream, void *const *others, size_t count, bool *captures, struct status *status);

/* Has an addition on `stream` come after what an operand's stream `other` holds; or has that wait for the addition. In
 * a capture a stream that is not part of it is passed over: to wait for it would end the capture, and arrays are to be
 * ready for one. */
int stream_come_after(int device, void *stream, void *other, bool in_capture, struct status *status);
int stream_come_before(int device, void *stream, void *other, bool in_capture, struct status *status);

/* stream_join, or nothing where one of the two captures or is gone: for destructors, which must not become part of a
 * graph and have nobody to tell. */
void stream_join_if_free(int device, void *before, void *after);

/* A point in a stream's work, for what has to live until it is reached. NULL where nothing needs to live on: the stream
 * captures, and what a graph uses has to live as long as the graph; or no event could be had, and the stream was waited
 * for. Waits while the stream's queue is full, so the caller holds no lock. */
void *stream_mark(int device, void *stream);

/* Whether it is reached, or can be asked no more; it is freed then. No CUDA call where CUDA is no longer usable: false.
 */
bool stream_mark_reached(void *mark);

#endif
