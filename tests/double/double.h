/* The tests' interface to the CUDA-runtime double: exported from build/double/_core.abi3.so, called by control.py and
 * by the C tests.
 *
 * The double is a small machine whose rules are those of the CUDA runtime, taken at their strictest. Device memory
 * cannot be touched by host code. Streams are queues: work runs only when something waits for it, in a random order
 * among those that the streams and events allow. What the real machine would let pass or answer with garbage (memory
 * used before its allocation or after its release in stream order, memory of another device, host memory that is not
 * pinned) is a fault: a line on stderr, a count, and cudaErrorIllegalAddress from every later call. */
#ifndef VECADD_DOUBLE_H
#define VECADD_DOUBLE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Forgets failures, delays, faults and counts, gives our objects the real clock, takes the machine back to its first
 * shape (VECADD_DOUBLE_DEVICES or 2 devices, VECADD_DOUBLE_DRIVER or the runtime's own version) and draws the order of
 * work from `seed` from now on. Memory, streams, queued work and each thread's last error stay. At start the seed is
 * VECADD_DOUBLE_SEED or 0. */
void double_reset(unsigned seed);

/* The nth call of this CUDA function from now on (1: the next) returns `status` and does nothing else; with `forever`
 * all after it do too. A status that the real machine cannot recover from stays for all calls. */
void double_fail(const char *call, int nth, int status, int forever);

/* From now on every call that waits or gives something back does so and returns `status` all the same, as CUDA's do
 * that report what earlier work has come to; 0: none does. */
void double_report_earlier(int status);

/* Every call of this CUDA function from now on begins so much later, and other threads' calls go on meanwhile. */
void double_delay(const char *call, int microseconds);

/* Whether any device could use another one's memory: 1 after a reset. */
void double_peer_access(int possible);

/* Whether devices have stream-ordered memory, which some virtual GPUs lack: 1 after a reset. */
void double_memory_pools(int supported);

/* The next `count` copies from device to device arrive with bit 2 of their middle byte wrong, and succeed. */
void double_flip_copies(int count);

/* How many bytes each device has for allocations, those that there are included: 8 GiB after a reset. What is freed in
 * stream order is room again when the free has run, which is when something waits for it. */
void double_capacity(size_t bytes);

/* In how many threads cudaGetLastError would find an error that our code has left there; none has one afterwards. */
int double_take_errors(void);

/* Makes the nth allocation from now on that our objects ask the C library for find no memory; 0: none. */
void double_fail_allocation(int nth);

/* How many they have asked for since. */
long double_allocations(void);

/* From now on our objects read a clock of their own, which goes on by that many nanoseconds each time that it is read:
 * a time that they take is how often they have looked. 0: the real clock. */
void double_clock(long long nanoseconds);

/* Called for each pread and pwrite of our objects, in whatever thread makes it, before it is made. It
 * returns 0, an errno for the call to fail with, or the negative of the most bytes that it reads or writes; INT_MIN: it
 * moves none. NULL: no one is called. */
typedef int double_file_call(const char *call, long long offset, size_t bytes);
void double_on_file_call(double_file_call *call);

/* While the queues are full (1), a call that queues work, or takes the lock of the context that a launch into a full
 * queue has taken, waits: those that did on an H200, whatever the stream. 0 lets them go on. */
void double_fill_queues(int full);

/* How many calls wait so now. */
int double_waiting(void);

/* How often the function was called since the reset. */
long double_calls(const char *call);

/* How many faults there were since the reset. */
long double_faults(void);

/* What was made by CUDA calls and not yet given back. A capture that was not ended is a graph, and keeps the memory
 * that was allocated in it. */
void double_live(size_t *device_blocks, size_t *device_bytes, size_t *pinned_blocks, size_t *streams, size_t *events,
                 size_t *graphs);

/* What kernels asked of the L2 since the reset: how many 128-byte lines with a byte in the range were loaded with
 * evict_last and are still marked so, and how many were demoted after their last such load. */
void double_l2(const void *start, size_t bytes, size_t *evict_last, size_t *demoted);

/* Another library sets bytes of a device's L2 aside for memory that persists there. 0, or a cudaError_t. */
int double_persisting(int device, size_t bytes);

/* How many GPUs there are, at most 8: 0 is a driver that sees none. */
void double_devices(int count);

/* The calling thread's current device; another one's primary context is current from now on where `device` is not -1.
 * Gives the device until now. */
int double_current_device(int device);

/* How many contexts a device has, and the calling thread's current one: NULL for none. */
int double_contexts(int device);
void *double_current_context(void);

/* Another library's context beside the device's primary one, current from now on; its end takes what was made in it. */
void *double_context_create(int device);
void double_context_destroy(void *context);

/* The driver's version as CUDA counts it: 0 is no driver, below CUDART_VERSION is one too old. */
void double_driver(int version);

/* Another library's memory: known to the driver, not counted by double_live. A split makes two adjacent allocations
 * of one, `bytes` from its start, the second of that device; each is freed by itself. */
void *double_device_malloc(int device, size_t bytes);
void double_device_free(void *memory);
int double_device_split(void *memory, size_t bytes, int device);

/* Copies after everything that is queued on the memory's device, and waits. 0, or -1 where it is no device memory. */
int double_device_write(void *device, const void *host, size_t bytes);
int double_device_read(void *host, const void *device, size_t bytes);

/* Another library's streams and what it queues on them. A source on the host is read at once, a target on the host is
 * written when the stream is waited for. 0, or a cudaError_t. Any later call with the handle of a destroyed stream ends
 * the process, as on a GPU. */
void *double_stream_create(int device, int nonblocking);
int double_stream_destroy(void *stream);
int double_stream_synchronize(void *stream);
int double_copy_async(void *target, const void *source, size_t bytes, void *stream);
void double_synchronize(int device);

/* What another library captures of a stream in the strictest mode. 0 or a cudaError_t; the graph is ready to be
 * launched, or NULL where the capture has failed. */
int double_capture_begin(void *stream);
void *double_capture_end(void *stream);
int double_graph_launch(void *graph, void *stream);
int double_graph_destroy(void *graph);

/* The calling thread's capture mode, which is CUDA's first one, global, afterwards. */
int double_take_capture_mode(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
