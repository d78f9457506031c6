/* The state of each device, and how a function enters and leaves a device: for the files that call the CUDA runtime. */
#ifndef VECADD_GPU_STATE_H
#define VECADD_GPU_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "base/status.h"
#include "gpu/before.h"
#include "gpu/launch_configs.h"

struct device_state {
    atomic_bool ready;          /* all but the lock and `home` is made */
    pthread_mutex_t lock;       /* locked while the state is made */
    _Atomic(CUcontext) context; /* the primary one, retained for good; NULL until needed */
    cudaMemPool_t pool;         /* private: other libraries' trims and thresholds do not reach it; NULL: the device has
                                 * no memory pools */
    _Atomic(cudaStream_t) home; /* stream_own; NULL until needed */
    _Atomic(struct parked_memory *) parked; /* memory.h */
    atomic_size_t parked_bytes;
    struct launch_configs launch_configs;
    bool programmatic; /* whether a kernel may be launched to begin before the one ahead has ended: from 9.0 on */
};

/* A thread on a device, until device_leave. */
struct device_scope {
    struct device_state *state;
    int device;
    struct device_before before;
    bool relaxed; /* entered by device_enter_relaxed: `mode` is the thread's, to go back to */
    enum cudaStreamCaptureMode mode;
};

/* Makes `device` (-1: the thread's current one) current and, the first time, makes its state. After a failure there is
 * nothing to undo.
 *
 * Contexts, not devices, are set and set back: cudaSetDevice would make a context, hundreds of megabytes, on a device
 * that had none, and replace another library's by the primary one. A thread whose device is already current stays in
 * the context that it is in, of which the operands may be.
 *
 * All calls of the runtime but questions about devices are made inside such a scope: in a thread without a
 * context it would make one on the thread's device. */
int device_enter(struct device_scope *scope, int device, struct status *status);

/* device_enter without making the state, which may wait: for questions that are asked with the GIL. */
int device_enter_to_ask(struct device_scope *scope, int device, struct status *status);

/* device_enter for transfers and the laboratory, which allocate, query and wait much: nothing that the thread does
 * until device_leave ends a capture of another thread. */
int device_enter_relaxed(struct device_scope *scope, int device, struct status *status);

/* device_enter_relaxed in the device's primary context, whichever is current: for what is kept beyond the call, which
 * would end with another context. */
int device_enter_primary(struct device_scope *scope, int device, struct status *status);

/* device_enter_primary for page-locked memory, which serves every device: in a thread without a context the first
 * device that is in use, else the current one. */
int device_enter_any(struct device_scope *scope, struct status *status);

/* Whether the current context is the primary one of the scope's device. */
bool device_is_in_primary(const struct device_scope *scope);

/* device_enter for releases, which cannot report an error: tries a second time, because a failure, as of the question
 * for the current device, may be temporary and would keep the memory for good. */
bool device_enter_to_release(struct device_scope *scope, int device);

void device_leave(const struct device_scope *scope);

/* Capture modes, for calls that must not end another thread's capture.
 *
 * While any thread captures in global mode, which PyTorch uses, CUDA ends that capture when a thread in the default
 * mode queries an event, waits, allocates or frees, even on a stream outside the capture. In relaxed mode these calls
 * succeed and the capture goes on (all measured on an H200, driver 580). Two kinds of call end a capture in every mode:
 * cudaDeviceSynchronize, and any wait for the capturing stream. An exchange of modes takes 37 ns.
 *
 * capture_mode_relax puts the calling thread into relaxed mode and returns its previous mode, for
 * capture_mode_restore. May be nested. */
enum cudaStreamCaptureMode capture_mode_relax(void);
void capture_mode_restore(enum cudaStreamCaptureMode before);

/* Whether a call failed because a stream captures. */
bool capture_is_why(cudaError_t error);

/* The number of devices, 0 before they were first counted; a device's state, NULL where this process has not used it.
 * No CUDA call, no wait. */
int device_count_if_known(void);
const struct device_state *device_state_if_started(int device);

/* The allocation or registration that an address is in. The driver answers: the runtime would make a context on the
 * current device. Returns 0, or -1 with *status set. */
struct known_memory {
    unsigned type; /* CUmemorytype, 0 for memory that the driver does not know */
    int device;
    CUdeviceptr begin;
    size_t bytes;
};
int device_find_memory(uintptr_t at, struct known_memory *found, struct status *status);

/* Queues work (gpu/add.h) between the joins of its streams: its kernels, or their graph where that is not NULL.
 * `temporary`: what a plan's sum goes through; NULL: it needs none. */
struct device_work;
int device_queue(const struct device_scope *scope, const struct device_work *work, void *temporary,
                 cudaGraphExec_t graph, struct status *status);

/* Sets *call to the kernel of a contiguous plan, on the plan's stream. */
struct plan;
struct add_call;
void device_add_call(const struct device_scope *scope, const struct plan *plan, struct add_call *call);

/* Bytes of the temporary that a plan's sum goes through where out overlaps an input in part; 0: none needed. */
size_t device_temporary_bytes(const struct plan *plan);

/* Queues a batch's launches alone on a stream of the current device; *queued says whether any launch was queued. */
cudaError_t batch_launch_all(const struct device_work *batch, cudaStream_t stream, bool *queued);

/* Queues kernels on the stream, which captures, and makes no other call. */
typedef cudaError_t graph_launches(const void *context, cudaStream_t stream);

/* Makes the graph of what `launches` queues, for any stream of the current device. Nothing of it has run, and the
 * caller frees it. Launches of one graph are never concurrent: each runs after the one before, and two threads may not
 * launch it at once. Returns 0, or -1 with *status set and *graph NULL. */
int graph_capture(cudaGraphExec_t *graph, graph_launches *launches, const void *context, struct status *status);

/* graph_capture of one kernel; call->stream is ignored. */
int graph_capture_add(cudaGraphExec_t *graph, const struct add_call *call, struct status *status);

/* Launches already made still run. Takes NULL; never fails. */
void graph_free(cudaGraphExec_t graph);

/* Waits for all that is queued on the stream. Where that fails it waits for the device, so that no queued work writes
 * to memory later. Returns the first error. */
cudaError_t stream_wait(cudaStream_t stream);

/* The device's own stream, where the legacy default stream will not do. It is non-blocking, of the primary context, and
 * never destroyed: arrays and their consumers keep its handle. */
cudaError_t stream_own(const struct device_scope *scope, cudaStream_t *own);

/* device_allocate and device_free without the count of DeviceArrays' memory. */
int pool_allocate(const struct device_scope *scope, cudaStream_t stream, size_t bytes, void **memory,
                  struct status *status);
void pool_release(cudaStream_t stream, void *memory);

#endif
