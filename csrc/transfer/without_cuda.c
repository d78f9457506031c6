/* A build without CUDA: this file takes the place of the others of its folder, and of csrc/gpu. Each function fails
 * with a status that says so, or does nothing. */
#include "cuda/facts.h"
#include "gpu/add.h"
#include "gpu/buffer.h"
#include "gpu/device.h"
#include "gpu/graph.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "transfer/transfer.h"

/* The headers name the parameters; these functions read few of them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* clang-format off */
#define FAILS(name, ...) int name(__VA_ARGS__) { return status_no_cuda(status); }
#define DOES_NOTHING(name, ...) void name(__VA_ARGS__) {}
#define GIVES(type, value, name, ...) type name(__VA_ARGS__) { return value; }

/* csrc/gpu */
void device_versions(int *driver, int *runtime_version) { *driver = *runtime_version = 0; }
FAILS(device_count, int *count, struct status *status)
FAILS(device_facts, int device, struct device_facts *facts, struct status *status)
GIVES(double, 0, device_link_rate, int device)
GIVES(const char *, NULL, strided_form_name, const struct strided *add, const void *a, const void *b, const void *c)
DOES_NOTHING(device_on_first_use, device_hook *hook)
FAILS(device_start, int device, struct status *status)
GIVES(bool, true, device_is_started, int device)
FAILS(device_current, int *device, struct status *status)
FAILS(device_make_current, int device, struct device_before *before, struct status *status)
DOES_NOTHING(device_make_current_again, const struct device_before *before)
FAILS(device_check_ordinal, int device, struct status *status)
GIVES(bool, false, device_knows_pointer, const void *pointer)
FAILS(device_check_pointer_near, const void *pointer, size_t bytes, const char *what, struct device_range *known,
      int *device, struct status *status)
FAILS(device_launch_configs, int device, struct device_launch_configs *launch_configs, struct status *status)
FAILS(device_add, const struct device_work *work, struct status *status)
FAILS(device_status, struct status *status, int cuda_error, const char *call)
FAILS(pinned_allocate, size_t bytes, void **memory, struct status *status)
DOES_NOTHING(pinned_release, void *memory, size_t bytes)
FAILS(device_copy, int device, void *stream, enum device_copy_way way, void *target, const void *source, size_t bytes,
      struct status *status)
FAILS(device_fill, int device, void *stream, void *target, int byte, size_t bytes, struct status *status)
DOES_NOTHING(device_pools_trim, void)
GIVES(bool, true, device_wait, int device)
GIVES(struct memory_counts, (struct memory_counts){0}, memory_counts, void)
FAILS(stream_check_device, int device, void *stream, struct status *status)
FAILS(stream_captures, int device, void *stream, bool *captures, struct status *status)
FAILS(stream_lead, int device, void **stream, void **others, size_t count, struct status *status)
FAILS(stream_of_memory, int device, void *stream, void *const *others, size_t count, void **found,
      struct status *status)
FAILS(stream_join_consumer, int device, void *home, void *consumer, bool is_new, struct status *status)
GIVES(bool, true, stream_is_lasting, int device, const void *stream)
FAILS(stream_stand_in, int device, void *stream, enum stream_stand_in *stand_in, struct status *status)
FAILS(stream_home, int device, void *stream, struct kept_stream *kept, bool lasting, struct stream_home *home,
      struct status *status)
FAILS(stream_join, int device, void *before, void *after, struct status *status)
GIVES(enum stream_marked, (*mark = NULL, STREAM_DONE), stream_mark, int device, void *stream, void **mark)
GIVES(bool, true, stream_mark_reached, int device, void *mark)
FAILS(graph_open, struct graph **graph, const struct device_work *work, struct status *status)
FAILS(graph_run, struct graph *graph, struct status *status)
DOES_NOTHING(graph_close, struct graph *graph)
GIVES(struct device_buffer *, (status_no_cuda(status), NULL), device_buffer_make, int device,
      const struct stream_home *home, size_t bytes, struct status *status)
GIVES(struct device_buffer *, NULL, device_buffer_reuse, int device, void *stream, size_t bytes)
GIVES(void *, NULL, device_buffer_memory, const struct device_buffer *block)
GIVES(void *, NULL, device_buffer_home, const struct device_buffer *block)
GIVES(struct kept_stream *, NULL, device_buffer_home_kept, const struct device_buffer *block)
DOES_NOTHING(device_buffer_loosen, struct device_buffer *block)
FAILS(device_buffer_move, struct device_buffer *block, struct status *status)
DOES_NOTHING(device_buffer_retain, struct device_buffer *block)
DOES_NOTHING(device_buffer_drop, struct device_buffer *block)
GIVES(bool, true, device_buffer_drop_at_once, struct device_buffer *block)
DOES_NOTHING(device_buffers_release, void)
DOES_NOTHING(device_buffer_drop_after, struct device_drop *drop)
GIVES(bool, true, device_buffer_drop_later, struct device_drop *drop)
GIVES(bool, false, device_buffers_wait, void)
DOES_NOTHING(device_buffers_settle, void)

/* csrc/transfer */
GIVES(int, (*fp_flags = 0, status_no_cuda(status)), transfer_add, const struct plan *plan,
      const struct transfer_options *options, unsigned *fp_flags, struct status *status)
GIVES(int, (*fp_flags = 0, status_no_cuda(status)), hybrid_add, const struct plan *plan,
      const struct transfer_options *options, unsigned *fp_flags, struct status *status)
GIVES(bool, false, transfer_memory_pinned, const void *memory, size_t bytes)
GIVES(size_t, 0, transfer_release, void)
GIVES(struct transfer_counts, (struct transfer_counts){0}, transfer_counts, void)

/* clang-format on */
