/* This folder in a build without CUDA: its functions fail with a status that says so, or do nothing. */
#include "cuda/strided_form.h"
#include "gpu/batch.h"
#include "gpu/buffer.h"
#include "gpu/device.h"
#include "gpu/graph.h"
#include "gpu/link.h"
#include "gpu/memory.h"
#include "gpu/stream.h"

/* The headers define the parameters; none is used here. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

void
device_versions(int *driver, int *runtime_version)
{
    *driver = 0;
    *runtime_version = 0;
}

int
device_count(int *count, struct status *status)
{
    return status_no_cuda(status);
}

int
device_facts(int device, struct device_facts *facts, struct status *status)
{
    return status_no_cuda(status);
}

double
device_link_rate(int device)
{
    return 0;
}

const char *
strided_form_name(const struct strided *add, const void *a, const void *b, const void *c)
{
    return NULL;
}

void
device_on_first_use(device_hook *hook)
{
}

int
device_start(int device, struct status *status)
{
    return status_no_cuda(status);
}

bool
device_is_started(int device)
{
    return true;
}

int
device_current(int *device, struct status *status)
{
    return status_no_cuda(status);
}

int
device_make_current(int device, struct device_before *before, struct status *status)
{
    return status_no_cuda(status);
}

void
device_make_current_again(const struct device_before *before)
{
}

int
device_check_ordinal(int device, struct status *status)
{
    return status_no_cuda(status);
}

bool
device_knows_pointer(const void *pointer)
{
    (void)pointer;
    return false;
}

int
device_check_pointer_near(const void *pointer, size_t bytes, const char *what, struct device_range *known, int *device,
                          struct status *status)
{
    return status_no_cuda(status);
}

int
device_launch_configs(int device, struct device_launch_configs *launch_configs, struct status *status)
{
    return status_no_cuda(status);
}

int
device_add(const struct plan *plan, struct status *status)
{
    return status_no_cuda(status);
}

int
device_add_batch(const struct device_batch *batch, struct status *status)
{
    return status_no_cuda(status);
}

int
device_status(struct status *status, int cuda_error, const char *call)
{
    return status_no_cuda(status);
}

int
device_allocate(int device, void *stream, size_t bytes, void **memory, struct status *status)
{
    return status_no_cuda(status);
}

void
device_free(int device, void *stream, void *memory)
{
}

int
pinned_allocate(size_t bytes, void **memory, struct status *status)
{
    return status_no_cuda(status);
}

void
pinned_release(void *memory, size_t bytes)
{
}

int
device_copy_in(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return status_no_cuda(status);
}

int
device_copy_out(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return status_no_cuda(status);
}

int
device_copy(int device, void *stream, void *target, const void *source, size_t bytes, struct status *status)
{
    return status_no_cuda(status);
}

int
device_fill(int device, void *stream, void *target, int byte, size_t bytes, struct status *status)
{
    return status_no_cuda(status);
}

void
device_pools_trim(void)
{
}

bool
device_park(int device, struct parked_memory *parked)
{
    return false;
}

void
device_parked_release(void)
{
}

bool
device_wait(int device)
{
    return true;
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
    return status_no_cuda(status);
}

int
stream_captures(int device, void *stream, bool *captures, struct status *status)
{
    return status_no_cuda(status);
}

int
stream_any_captures(int device, void *stream, void *const *others, size_t count, bool *captures, struct status *status)
{
    return status_no_cuda(status);
}

int
stream_lead(int device, void **stream, void **others, size_t count, struct status *status)
{
    return status_no_cuda(status);
}

int
stream_of_memory(int device, void *stream, void *const *others, size_t count, void **found, struct status *status)
{
    return status_no_cuda(status);
}

int
stream_join_consumer(int device, void *home, void *consumer, bool is_new, struct status *status)
{
    return status_no_cuda(status);
}

bool
stream_is_lasting(int device, const void *stream)
{
    return true;
}

int
stream_stand_in(int device, void *stream, enum stream_stand_in *stand_in, struct status *status)
{
    return status_no_cuda(status);
}

int
stream_home(int device, void *stream, struct kept_stream *kept, bool lasting, struct stream_home *home,
            struct status *status)
{
    return status_no_cuda(status);
}

int
stream_join(int device, void *before, void *after, struct status *status)
{
    return status_no_cuda(status);
}

bool
stream_join_if_free(int device, void *before, void *after)
{
    return true;
}

bool
stream_is_busy(int device, void *stream)
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
graph_of_plan(struct graph **graph, const struct plan *plan, struct status *status)
{
    return status_no_cuda(status);
}

int
graph_of_batch(struct graph **graph, const struct device_batch *batch, struct status *status)
{
    return status_no_cuda(status);
}

int
graph_run(struct graph *graph, struct status *status)
{
    return status_no_cuda(status);
}

void
graph_close(struct graph *graph)
{
}

struct device_buffer *
device_buffer_make(int device, const struct stream_home *home, size_t bytes, struct status *status)
{
    status_no_cuda(status);
    return NULL;
}

struct device_buffer *
device_buffer_reuse(int device, void *stream, size_t bytes)
{
    return NULL;
}

void *
device_buffer_memory(const struct device_buffer *block)
{
    return NULL;
}

void *
device_buffer_home(const struct device_buffer *block)
{
    return NULL;
}

struct kept_stream *
device_buffer_home_kept(const struct device_buffer *block)
{
    return NULL;
}

void
device_buffer_loosen(struct device_buffer *block)
{
}

int
device_buffer_move(struct device_buffer *block, struct status *status)
{
    return status_no_cuda(status);
}

bool
device_buffer_moved(const struct device_buffer *block)
{
    return false;
}

void
device_buffer_hold(struct device_buffer *block)
{
}

void
device_buffer_drop(struct device_buffer *block)
{
}

bool
device_buffer_drop_at_once(struct device_buffer *block)
{
    return true;
}

void
device_buffers_release(void)
{
}

void
device_buffer_drop_after(struct device_drop *drop)
{
}

bool
device_buffer_drop_later(struct device_drop *drop)
{
    return true;
}

bool
device_buffers_wait(void)
{
    return false;
}

void
device_buffers_settle(void)
{
}
