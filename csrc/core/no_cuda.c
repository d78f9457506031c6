/* device.h, graph.h, memory.h, stream.h, strided.h, transfer.h and the device half of probes.h, without CUDA. */
#include "bare.h"
#include "batch.h"
#include "device.h"
#include "graph.h"
#include "memory.h"
#include "probes.h"
#include "stream.h"
#include "strided.h"
#include "transfer.h"

/* The signatures are the headers'; here no argument is looked at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int
no_cuda(struct status *status)
{
    return status_set(status, STATUS_NO_CUDA_BUILD,
                      "this vecadd was built with VECADD_CUDA=0, for the host only: install it again without that "
                      "variable to use GPUs");
}

void
device_versions(int *driver, int *runtime_version)
{
    *driver = 0;
    *runtime_version = 0;
}

int
device_count(int *count, struct status *status)
{
    return no_cuda(status);
}

int
device_facts(int device, struct device_facts *facts, struct status *status)
{
    return no_cuda(status);
}

int
device_routes_key(int device, char *key, size_t size)
{
    return -1;
}

const char *
strided_form_name(const struct strided *add, const void *a, const void *b, const void *c)
{
    return NULL;
}

int
device_start(int device, struct status *status)
{
    return no_cuda(status);
}

bool
device_is_started(int device)
{
    return true;
}

int
device_current(int *device, struct status *status)
{
    return no_cuda(status);
}

int
device_make_current(int device, int *previous, struct status *status)
{
    return no_cuda(status);
}

void
device_make_current_again(int previous, int device)
{
}

int
device_check_ordinal(int device, struct status *status)
{
    return no_cuda(status);
}

int
device_check_pointer(const void *pointer, size_t bytes, const char *what, int *device, struct status *status)
{
    return no_cuda(status);
}

int
device_check_pointer_near(const void *pointer, size_t bytes, const char *what, struct device_range *known, int *device,
                          struct status *status)
{
    return no_cuda(status);
}

int
device_recipes(int device, struct device_recipes *recipes, struct status *status)
{
    return no_cuda(status);
}

int
device_add(const struct plan *plan, struct status *status)
{
    return no_cuda(status);
}

int
device_add_many(const struct device_batch *batch, struct status *status)
{
    return no_cuda(status);
}

int
device_status(struct status *status, int cuda_error, const char *call)
{
    return no_cuda(status);
}

int
device_allocate(int device, void *stream, size_t bytes, void **memory, struct status *status)
{
    return no_cuda(status);
}

void
device_release(int device, void *stream, void *memory, size_t bytes)
{
}

void
device_free(int device, void *stream, void *memory)
{
}

int
pinned_allocate(size_t bytes, void **memory, struct status *status)
{
    return no_cuda(status);
}

void
pinned_release(void *memory, size_t bytes)
{
}

int
device_copy_in(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return no_cuda(status);
}

int
device_copy_out(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return no_cuda(status);
}

int
device_copy(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return no_cuda(status);
}

int
device_fill(int device, void *stream, void *target, int byte, size_t bytes, struct status *status)
{
    return no_cuda(status);
}

void
device_pools_trim(void)
{
}

void
device_held_add(size_t bytes)
{
}

void
device_held_remove(size_t bytes)
{
}

struct memory_counts
memory_counts(void)
{
    return (struct memory_counts){0};
}

int
stream_check_device(int device, void *stream, struct status *status)
{
    return no_cuda(status);
}

int
stream_captures(void *stream, bool *captures, struct status *status)
{
    return no_cuda(status);
}

int
stream_home(int device, void *stream, void **home, struct status *status)
{
    return no_cuda(status);
}

int
stream_join(int device, void *before, void *after, struct status *status)
{
    return no_cuda(status);
}

bool
stream_join_if_free(int device, void *before, void *after)
{
    return true;
}

bool
stream_is_busy(void *stream)
{
    return false;
}

enum stream_marked
stream_mark(int device, void *stream, void **mark)
{
    *mark = NULL;
    return STREAM_DONE;
}

bool
stream_mark_reached(int device, void *mark)
{
    return true;
}

int
transfer_add(const struct plan *plan, unsigned *fp_flags, struct status *status)
{
    *fp_flags = 0;
    return no_cuda(status);
}

int
hybrid_add(const struct plan *plan, unsigned *fp_flags, struct status *status)
{
    *fp_flags = 0;
    return no_cuda(status);
}

void
transfer_set_zero_copy(size_t most_bytes)
{
}

bool
transfer_memory_pinned(const void *memory, size_t bytes)
{
    return false;
}

size_t
transfer_release(void)
{
    return 0;
}

struct transfer_counts
transfer_counts(void)
{
    return (struct transfer_counts){0};
}

int
limits_device(int device, size_t bytes, int rounds, struct memory_rates *rates, struct status *status)
{
    return no_cuda(status);
}

int
limits_l2(int device, size_t bytes, int rounds, struct memory_rates *rates, struct status *status)
{
    return no_cuda(status);
}

int
limits_latency(int device, int rounds, struct memory_latency *latency, struct status *status)
{
    return no_cuda(status);
}

int
limits_launch(int device, int rounds, struct launch_limits *limits, struct status *status)
{
    return no_cuda(status);
}

int
limits_link(int device, size_t bytes, int rounds, struct link_limits *limits, struct status *status)
{
    return no_cuda(status);
}

int
limits_copies(int device, size_t most, struct copy_limits *limits, struct status *status)
{
    (void)device, (void)most, (void)limits;
    return no_cuda(status);
}

int
limits_allocation(int device, size_t most, struct allocation_limits *limits, struct status *status)
{
    (void)device, (void)most, (void)limits;
    return no_cuda(status);
}

int
limits_mapped(int device, size_t most, struct mapped_limits *limits, struct status *status)
{
    (void)device, (void)most, (void)limits;
    return no_cuda(status);
}

int
limits_managed(int device, size_t most, struct managed_limits *limits, struct status *status)
{
    (void)device, (void)most, (void)limits;
    return no_cuda(status);
}

int
limits_crew(int device, int threads, size_t bytes, struct crew_limits *limits, struct status *status)
{
    (void)device, (void)threads, (void)bytes, (void)limits;
    return no_cuda(status);
}

int
graph_of_plan(struct graph **graph, const struct plan *plan, struct status *status)
{
    return no_cuda(status);
}

int
graph_of_batch(struct graph **graph, const struct device_batch *batch, struct status *status)
{
    return no_cuda(status);
}

int
graph_run(struct graph *graph, struct status *status)
{
    return no_cuda(status);
}

void
graph_close(struct graph *graph)
{
}

int
bare_launches(const struct plan *plan, enum bare_way way, int calls, double *seconds, struct status *status)
{
    return no_cuda(status);
}
