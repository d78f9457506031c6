/* When each copy and kernel of a transfer rung began and ended, by CUDA events on the stream that it ran on.
 *
 * A rung with a timeline opens it before its clock starts, records each step as it queues it, and closes it when all
 * streams are drained. Every function here does nothing for a NULL timeline: none is wanted. */
#ifndef VECADD_LAB_LADDER_TIMELINE_H
#define VECADD_LAB_LADDER_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

enum timeline_what {
    TIMELINE_TO_DEVICE,
    TIMELINE_KERNEL,
    TIMELINE_TO_HOST,
    TIMELINE_ALLOCATE, /* these two by the host's clock */
    TIMELINE_FREE,
    TIMELINE_WHATS
};

extern const char *const timeline_what_name[TIMELINE_WHATS]; /* "to_device", ... */

enum { TIMELINE_HOST = -1 }; /* the stream number of entries that the host's clock has timed */

struct timeline_entry {
    enum timeline_what what;
    int stream; /* 0, 1, ... in the rung's own order, or TIMELINE_HOST */
    size_t chunk;
    double begin, end; /* seconds from the first entry's begin */
};

struct timeline;

/* An empty timeline, the caller's to free; NULL where there is no memory. Makes no CUDA call. */
struct timeline *timeline_new(void);
void timeline_free(struct timeline *timeline);

/* The entries in the order in which they were begun, until the timeline is freed; after timeline_close. */
size_t timeline_entries(const struct timeline *timeline, const struct timeline_entry **entries);

/* Makes the events of `steps` entries on the current device, and records the time from which all entries count. */
int timeline_open(struct timeline *timeline, size_t steps, struct status *status);

/* Called before and after a step is queued on `stream` (cudaStream_t), the rung's stream number `number`; any thread
 * may call them. timeline_close reports their failures. `begin` returns the entry to pass to `end`. */
size_t timeline_begin(struct timeline *timeline, enum timeline_what what, int number, void *stream, size_t chunk);
void timeline_end(struct timeline *timeline, size_t entry, void *stream);

/* Called before and after a step that the host makes and waits for. */
static inline size_t
timeline_begin_host(struct timeline *timeline, enum timeline_what what)
{
    return timeline_begin(timeline, what, TIMELINE_HOST, NULL, 0);
}

static inline void
timeline_end_host(struct timeline *timeline, size_t entry)
{
    timeline_end(timeline, entry, NULL);
}

/* Destroys the events; with `read`, after a run that succeeded, reads them first. All streams are drained. Returns 0,
 * or -1 with *status set where an event was not recorded or could not be read. Call it after a failed open too. */
int timeline_close(struct timeline *timeline, bool read, struct status *status);

#endif
