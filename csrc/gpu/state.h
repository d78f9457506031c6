/* What each device's entry holds, and how a function gets onto a device and off it again: for the files of core/,
 * ladder/ and limits/ that call the CUDA runtime. */
#ifndef VECADD_GPU_STATE_H
#define VECADD_GPU_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "base/status.h"
#include "gpu/launch_configs.h"

enum { SPARE_EVENTS = 16 };

struct device_state {
    atomic_bool ready;                        /* all else but the lock and `home` is made */
    pthread_mutex_t lock;                     /* held while they are made */
    cudaMemPool_t pool;                       /* ours alone: another library's trims and thresholds do not reach it */
    _Atomic(cudaEvent_t) spare[SPARE_EVENTS]; /* events.c; NULL where there is none */
    _Atomic(cudaStream_t) home;               /* stream_home's; NULL until it is needed */
    struct launch_configs launch_configs;
    bool programmatic; /* whether kernels may be launched to begin before the one ahead has ended: from 9.0 on */
};

/* A thread's stay on a device. */
struct device_scope {
    struct device_state *state;
    int device;
    int previous; /* the thread's current device, to go back to */
    bool relaxed; /* device_enter_relaxed: `mode` is the thread's, to go back to */
    enum cudaStreamCaptureMode mode;
};

/* Makes `device` (-1: the thread's current one) current and, the first time, makes its state. Nothing is to be undone
 * when it fails. */
int device_enter(struct device_scope *scope, int device, struct status *status);

/* The same where much is allocated, queried and waited for, by transfers and the laboratory: nothing that the thread
 * does until device_leave ends a capture of another thread (capture_mode.h). */
int device_enter_relaxed(struct device_scope *scope, int device, struct status *status);

/* The same as device_enter for releases, which cannot report an error: what fails for a moment, as the question for the
 * current device may, is tried a second time rather than keeping the memory for good. */
bool device_enter_to_release(struct device_scope *scope, int device);

void device_leave(const struct device_scope *scope);

/* The driver's cuPointerGetAttributes, one call for what the runtime's own asks three for; NULL with *status set. */
typedef CUresult device_pointer_attributes(unsigned count, CUpointer_attribute *names, void **values,
                                           CUdeviceptr pointer);
device_pointer_attributes *device_attributes_of_pointers(struct status *status);

/* Queues a plan that is one kernel, with its joins: the kernel, or its graph (NULL: there is none). */
struct plan;
int device_queue(const struct device_scope *scope, const struct plan *plan, cudaGraphExec_t graph,
                 struct status *status);

/* Waits for all that the stream holds. Where that fails it waits for the device, so that nothing is left queued that
 * would write to memory later. Returns the first error. */
cudaError_t stream_wait(cudaStream_t stream);

/* device_allocate and device_free without the count of what DeviceArrays hold. */
int pool_allocate(const struct device_scope *scope, cudaStream_t stream, size_t bytes, void **memory,
                  struct status *status);
void pool_release(cudaStream_t stream, void *memory);

#endif
