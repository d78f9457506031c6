/* Orders streams: no other file does. */
#ifndef VECADD_GPU_STREAM_H
#define VECADD_GPU_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/kept_stream.h"
#include "base/status.h"

/* Refuses a stream of another device than `device`: its kernels would run there, on this device's memory. No CUDA call
 * where there is one device. A capturing stream passes: asking for its device would end the capture (measured). */
int stream_check_device(int device, void *stream, struct status *status);

/* Whether the device's stream is capturing. No CUDA call for the legacy default stream, which is never captured. */
int stream_captures(int device, void *stream, bool *captures, struct status *status);

/* Whether any of the streams captures, so that ordering work between them extends the capture. */
int stream_any_captures(int device, void *stream, void *const *others, size_t count, bool *captures,
                        struct status *status);

/* Where one of `others` captures and *stream does not, the two change places: the work becomes part of the graph, and
 * no stream is led into a capture that its owner did not begin. For work without a stream of the caller's. No CUDA call
 * without others. Returns 0, or -1 with *status set. */
int stream_lead(int device, void **stream, void **others, size_t count, struct status *status);

/* A stream that was given in a call may not be used after it: its owner may have destroyed it by then, a call with its
 * handle ends the process (seen on an H100), and nothing can be asked beforehand. Only these may: the legacy default
 * stream, vecadd's own, and those whose owner is kept (base/kept_stream.h).
 *
 * Nor may STREAM_PER_THREAD, the per-thread default stream's handle, which names another stream in each thread. */
#define STREAM_PER_THREAD ((void *)2)

/* Whether it is one of the first two, whose owner need not be kept. No CUDA call, no wait. */
bool stream_is_lasting(int device, const void *stream);

/* What may be used after the call in place of a stream whose owner is not kept. */
enum stream_stand_in {
    STREAM_LEGACY, /* the legacy default stream, whose order includes this one's and each thread's default stream */
    STREAM_NONE,   /* nothing is ordered after it, but what waits for the whole device */
    STREAM_GRAPH   /* it captures, and asking for its kind would end the capture */
};
int stream_stand_in(int device, void *stream, enum stream_stand_in *stand_in, struct status *status);

static inline void *
stream_of_all_threads(void *stream)
{
    return stream == STREAM_PER_THREAD ? NULL : stream;
}

/* Where memory that a call needs on `stream` is used after the call. */
struct stream_home {
    void *stream;             /* in whose order it is used and given back */
    void *allocation;         /* on which it is allocated, in this call */
    struct kept_stream *kept; /* what keeps `stream`; NULL: nothing has to */
    bool loose;               /* work that nothing is ordered after may use it (STREAM_NONE) */
};

/* `kept` is what keeps the stream; `lasting`: nothing has to keep it. Without either the home is
 *   - for a blocking stream, the legacy default stream: each waits for the other by itself. Memory is allocated on the
 *     blocking stream, since the legacy default stream cannot be used while a blocking stream captures;
 *   - for other streams, a stream of vecadd's own, which the caller orders by joins; it belongs to the device's primary
 *     context, and in another context the legacy default stream takes its place;
 *   - the stream itself while it captures: the memory belongs to the graph.
 * Returns 0, or -1 with *status set. */
int stream_home(int device, void *stream, struct kept_stream *kept, bool lasting, struct stream_home *home,
                struct status *status);

/* Makes work queued on `after` from now on wait for what is queued on `before` now, without a host synchronise. A
 * stream joined with itself is a no-op. STATUS_CAPTURE where `before` captures and `after` is a stream that other
 * threads use too, the legacy default stream or vecadd's own: the capture goes on. */
int stream_join(int device, void *before, void *after, struct status *status);

/* Around work on `stream` that uses memory of others, the operands' streams. stream_join_in makes it wait for what is
 * queued on each of them, stream_join_back makes each of them wait for it. In a capture, streams outside it are
 * skipped: waiting for one would end the capture, and arrays have to be ready before it. Return 0, or -1 with *status
 * set. */
struct stream_joins {
    int device;
    void *stream;
    void *const *others;
    size_t count;
};
int stream_join_in(const struct stream_joins *joins, bool *in_capture, struct status *status);
int stream_join_back(const struct stream_joins *joins, bool in_capture, struct status *status);

/* The stream on which to allocate and free memory for such work: one of `others` that captures, else `stream`. The
 * graph has to own the memory, but `stream` becomes part of the capture only when the work is queued, and a free on it
 * would be outside of the joins, which ends the capture. */
int stream_of_memory(int device, void *stream, void *const *others, size_t count, void **found, struct status *status);

/* stream_join for another library that is to work on an array: `consumer` waits for the array's home stream. A consumer
 * that captures does not wait for a stream outside, as in stream_join_in; where the array `is_new`, made by this
 * very call, the host does. */
int stream_join_consumer(int device, void *home, void *consumer, bool is_new, struct status *status);

/* stream_join for destructors, which must not become part of a graph and cannot report an error. False where either
 * stream cannot be used while a stream captures: the caller tries again later. */
bool stream_join_if_free(int device, void *before, void *after);

/* Whether nothing may be queued on the device's stream now, because it captures, or because it is the legacy default
 * stream and some blocking stream of the device captures. */
bool stream_is_busy(int device, void *stream);

/* What is known of the work on a stream, for objects that have to live until it is done. */
enum stream_marked {
    STREAM_MARKED,   /* *mark is an event after the work */
    STREAM_DONE,     /* there was no event, so the stream was waited for; or the device is lost */
    STREAM_CAPTURED, /* the stream captures: what a graph uses has to live as long as the graph */
    STREAM_UNMARKED, /* could neither be marked nor waited for, and may still run: try again later */
};

/* Waits while the stream's queue is full, so the caller has no lock. */
enum stream_marked stream_mark(int device, void *stream, void **mark);

/* Whether the GPU has reached the mark, which is then freed. A lost device counts as having reached it; any other
 * failed query gives false, and so does a CUDA that is no longer usable, without a call. May wait where it frees. */
bool stream_mark_reached(int device, void *mark);

#endif
