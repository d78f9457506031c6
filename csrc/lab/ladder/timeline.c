#include "lab/ladder/timeline.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "base/util.h"
#include "gpu/device.h"

const char *const timeline_what_name[TIMELINE_WHATS] = {
    [TIMELINE_TO_DEVICE] = "to_device", [TIMELINE_KERNEL] = "kernel", [TIMELINE_TO_HOST] = "to_host",
    [TIMELINE_ALLOCATE] = "allocate",   [TIMELINE_FREE] = "free",
};

struct timeline {
    struct timeline_entry *entries;
    cudaEvent_t *events; /* two an entry; NULL: not made yet */
    size_t room;
    atomic_size_t count; /* entries begun; more than `room` if the rung announced too few */
    cudaEvent_t origin;  /* done before the first entry begins */
    double host_origin;  /* the host's clock at `origin` */
    atomic_int error;    /* the first cudaError_t of cudaEventRecord */
};

struct timeline *
timeline_new(void)
{
    return calloc(1, sizeof(struct timeline));
}

void
timeline_free(struct timeline *timeline)
{
    if (!timeline)
        return;
    free(timeline->entries);
    free(timeline);
}

size_t
timeline_entries(const struct timeline *timeline, const struct timeline_entry **entries)
{
    *entries = timeline->entries;
    return atomic_load(&timeline->count);
}

static int
take_origin(struct timeline *timeline, struct status *status)
{
    if (CUDA_CALL(status, cudaEventCreate, &timeline->origin) < 0)
        return -1;
    if (CUDA_CALL(status, cudaEventRecord, timeline->origin, NULL) < 0)
        return -1;
    if (CUDA_CALL(status, cudaEventSynchronize, timeline->origin) < 0)
        return -1;
    timeline->host_origin = now_seconds();
    return 0;
}

int
timeline_open(struct timeline *timeline, size_t steps, struct status *status)
{
    if (!timeline)
        return 0;
    timeline->entries = calloc(steps + 1, sizeof *timeline->entries);
    timeline->events = calloc(2 * steps + 1, sizeof *timeline->events);
    if (!timeline->entries || !timeline->events)
        return status_set(status, STATUS_MEMORY, "there is no memory for a timeline of %zu steps", steps);
    for (; timeline->room < steps; timeline->room++)
        for (size_t i = 0; i < 2; i++) {
            cudaError_t error = cudaEventCreate(&timeline->events[2 * timeline->room + i]);
            if (error == cudaSuccess)
                continue;
            timeline->events[2 * timeline->room + i] = NULL;
            timeline->room++;
            return device_status(status, error, "cudaEventCreate");
        }
    return take_origin(timeline, status);
}

/* timeline_close reports the first one, in another thread perhaps. */
static void
keep_error(struct timeline *timeline, cudaError_t error)
{
    int none = cudaSuccess;
    if (error != cudaSuccess)
        atomic_compare_exchange_strong(&timeline->error, &none, (int)error);
    device_ignore(error);
}

size_t
timeline_begin(struct timeline *timeline, enum timeline_what what, int number, void *stream, size_t chunk)
{
    if (!timeline)
        return 0;
    const size_t at = atomic_fetch_add(&timeline->count, 1);
    if (at >= timeline->room)
        return at;
    struct timeline_entry *entry = &timeline->entries[at];
    *entry = (struct timeline_entry){.what = what, .stream = number, .chunk = chunk};
    if (number == TIMELINE_HOST)
        entry->begin = now_seconds() - timeline->host_origin;
    else
        keep_error(timeline, cudaEventRecord(timeline->events[2 * at], stream));
    return at;
}

void
timeline_end(struct timeline *timeline, size_t at, void *stream)
{
    if (!timeline || at >= timeline->room)
        return;
    if (timeline->entries[at].stream == TIMELINE_HOST)
        timeline->entries[at].end = now_seconds() - timeline->host_origin;
    else
        keep_error(timeline, cudaEventRecord(timeline->events[2 * at + 1], stream));
}

/* Sets the seconds of every entry, the earliest at 0. */
static int
read_events(struct timeline *timeline, struct status *status)
{
    const size_t count = atomic_load(&timeline->count);
    if (atomic_load(&timeline->error) != cudaSuccess)
        return device_status(status, atomic_load(&timeline->error), "cudaEventRecord");
    if (count > timeline->room)
        return status_set(status, STATUS_CUDA, "a timeline of %zu steps has no room for %zu", timeline->room, count);
    double first = 0;
    for (size_t i = 0; i < count; i++) {
        struct timeline_entry *entry = &timeline->entries[i];
        if (entry->stream != TIMELINE_HOST) {
            float begin = 0, end = 0;
            cudaError_t error = cudaEventElapsedTime(&begin, timeline->origin, timeline->events[2 * i]);
            if (error == cudaSuccess)
                error = cudaEventElapsedTime(&end, timeline->origin, timeline->events[2 * i + 1]);
            if (error != cudaSuccess)
                return device_status(status, error, "cudaEventElapsedTime");
            entry->begin = begin / 1e3;
            entry->end = end / 1e3;
        }
        if (i == 0 || entry->begin < first)
            first = entry->begin;
    }
    for (size_t i = 0; i < count; i++) {
        timeline->entries[i].begin -= first;
        timeline->entries[i].end -= first;
    }
    return 0;
}

int
timeline_close(struct timeline *timeline, bool read, struct status *status)
{
    if (!timeline)
        return 0;
    const int result = read ? read_events(timeline, status) : 0;
    for (size_t i = 0; i < 2 * timeline->room; i++)
        if (timeline->events[i])
            device_ignore(cudaEventDestroy(timeline->events[i]));
    if (timeline->origin)
        device_ignore(cudaEventDestroy(timeline->origin));
    free(timeline->events);
    timeline->events = NULL;
    timeline->origin = NULL;
    return result;
}
