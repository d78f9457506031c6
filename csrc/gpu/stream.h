/* The only file that orders streams. */
#ifndef VECADD_GPU_STREAM_H
#define VECADD_GPU_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Refuses a stream of another device than `device`: its kernels would run there, on memory of here. No CUDA call where
 * there is one device. A stream that captures passes: to ask for its device would end the capture (measured). */
int stream_check_device(int device, void *stream, struct status *status);

/* Whether work on the stream is captured into a graph at present. No CUDA call for the legacy default stream, which is
 * never captured. */
int stream_captures(void *stream, bool *captures, struct status *status);

/* The per-thread default stream's handle, cudaStreamPerThread, names another stream in each thread: only the thread
 * that was given it may use it, at once. What is kept for later, or for another thread, is kept by one of these.
 *
 * stream_of_all_threads gives in its place the legacy default stream, behind whose work nothing has to be queued to
 * come after every thread's; it cannot be used while a blocking stream captures. stream_home gives a stream of our own,
 * which always can, and which the caller orders by joins; in a capture of the per-thread stream, where memory is the
 * graph's, it gives that stream itself. Both give any other stream back as it is. stream_home returns 0, or -1 with
 * *status set. */
#define STREAM_PER_THREAD ((void *)2)

static inline void *
stream_of_all_threads(void *stream)
{
    return stream == STREAM_PER_THREAD ? NULL : stream;
}

int stream_home(int device, void *stream, void **home, struct status *status);

/* Makes work queued on `after` from now on wait for what `before` holds now, without a host synchronise. The same
 * stream twice is a no-op. */
int stream_join(int device, void *before, void *after, struct status *status);

/* Queues work, which `context` describes; true in *queued once something of it is queued. Returns 0, or -1 with *status
 * set. */
typedef int stream_work(const void *context, bool *queued, struct status *status);

/* Has work on `stream` come after what each of `others`, the operands' streams, holds, and each of them wait for the
 * work. What is queued of it is waited for where a step fails: half a set of joins orders nothing, and the operands'
 * owners may free them at once. In a capture a stream that is not part of it is passed over: to wait for it would end
 * the capture, and arrays are to be ready for one. Returns 0, or -1 with *status set. */
int stream_queue_between(int device, void *stream, void *const *others, size_t count, stream_work *work,
                         const void *context, struct status *status);

/* stream_join for destructors, which must not become part of a graph and cannot report an error. False where one of the
 * two cannot be used as long as a stream captures: the caller tries again later. A stream that is gone is passed over.
 */
bool stream_join_if_free(int device, void *before, void *after);

/* Whether nothing may be queued on the stream as long as some stream captures: it captures itself, or it is the legacy
 * default stream and a blocking stream captures. */
bool stream_is_busy(void *stream);

/* What is known of the work that a stream holds, for what has to live until it is done. */
enum stream_marked {
    STREAM_MARKED,   /* *mark is a point behind it */
    STREAM_DONE,     /* no event could be had, and the stream was waited for; or the device is lost */
    STREAM_CAPTURED, /* the stream captures: what a graph uses has to live as long as the graph */
    STREAM_UNMARKED, /* it may be under way, and could neither be marked nor waited for: to be tried again later */
};

/* Waits while the stream's queue is full, so the caller holds no lock. */
enum stream_marked stream_mark(int device, void *stream, void **mark);

/* Whether the GPU has reached the mark, which is freed then. An error of the question is no answer: only a device that
 * is lost runs nothing any more. No CUDA call where CUDA is no longer usable: false. May wait where it frees. */
bool stream_mark_reached(int device, void *mark);

#endif
