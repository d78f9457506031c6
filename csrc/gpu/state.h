/* The state of each device, and how a function enters and leaves a device: for the files that call the CUDA runtime. */
#ifndef VECADD_GPU_STATE_H
#define VECADD_GPU_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "base/status.h"
#include "gpu/before.h"
#include "gpu/launch_configs.h"

struct device_state {
    atomic_bool ready;          /* all but the lock and `home` is made */
    pthread_mutex_t lock;       /* held while the state is made */
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
 * Every call of the runtime's that is no question about devices is made inside such a scope: in a thread without a
 * context it would make one on the thread's device. */
int device_enter(struct device_scope *scope, int device, struct status *status);

/* device_enter without making the state, which may wait: for questions that are asked with the GIL held. */
int device_enter_to_ask(struct device_scope *scope, int device, struct status *status);

/* device_enter for transfers and the laboratory, which allocate, query and wait much: nothing that the thread does
 * until device_leave ends a capture of another thread (capture_mode.h). */
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

/* The number of devices, 0 before they were first counted; a device's state, NULL where this process has not used it.
 * No CUDA call, no wait. */
int device_count_if_known(void);
const struct device_state *device_state_if_started(int device);

/* The driver's cuPointerGetAttributes: one call where the runtime takes three. NULL with *status set. */
typedef CUresult device_pointer_attributes(unsigned count, CUpointer_attribute *names, void **values,
                                           CUdeviceptr pointer);
device_pointer_attributes *device_attributes_of_pointers(struct status *status);

/* Queues a plan of one kernel between its joins: the kernel, or its graph where that is not NULL. */
struct plan;
int device_queue(const struct device_scope *scope, const struct plan *plan, cudaGraphExec_t graph,
                 struct status *status);

/* Waits for all that the stream holds. Where that fails it waits for the device, so that no queued work writes to
 * memory later. Returns the first error. */
cudaError_t stream_wait(cudaStream_t stream);

/* The device's own stream, where the legacy default stream will not do. It is non-blocking, of the primary context, and
 * never destroyed: arrays and their consumers keep its handle. */
cudaError_t stream_own(const struct device_scope *scope, cudaStream_t *own);

/* device_allocate and device_free without the count of what DeviceArrays hold. */
int pool_allocate(const struct device_scope *scope, cudaStream_t stream, size_t bytes, void **memory,
                  struct status *status);
void pool_release(cudaStream_t stream, void *memory);

#endif
