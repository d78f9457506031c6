/* The only file that orders streams. */
#ifndef VECADD_STREAM_H
#define VECADD_STREAM_H

#include <stdbool.h>

#include "status.h"

/* Refuses a stream of another device than `device`: its kernels would run there, on memory of here. No CUDA call where
 * there is one device. A stream that captures passes: to ask for its device would end the capture (measured). */
int stream_check_device(int device, void *stream, struct status *status);

/* Whether work on the stream is captured into a graph at present. No CUDA call for the legacy default stream, which is
 * never captured. */
int stream_captures(void *stream, bool *captures, struct status *status);

/* Leaves in place those of `streams` that capture now, and returns how many they are, or -1 with *status set. For what
 * was planned before a capture: nothing in one can wait for a stream outside of it, which would end it, or hold it up.
 */
int stream_keep_capturing(void **streams, int count, struct status *status);

/* Makes work queued on `after` from now on wait for what `before` holds now, without a host synchronise. The same
 * stream twice is a no-op. */
int stream_join(int device, void *before, void *after, struct status *status);

/* The same, or nothing where one of the two captures or is gone: for destructors, which must not become part of a graph
 * and have nobody to tell. */
void stream_join_if_free(int device, void *before, void *after);

/* A point in a stream's work, for what has to live until it is reached. NULL where nothing needs to live on: the stream
 * captures, and what a graph uses has to live as long as the graph; or no event could be had, and the stream was waited
 * for. Waits while the stream's queue is full, so the caller holds no lock. */
void *stream_mark(int device, void *stream);

/* Whether it is reached, or can be asked no more; it is freed then. No CUDA call where CUDA is no longer usable: false.
 */
bool stream_mark_reached(void *mark);

#endif
