/* Adding device memory, and what a device is. Each function restores the thread's current device.
 *
 * Everything here, of this folder's headers is in a build without CUDA too, as none.c: each function fails there with
 * STATUS_NO_CUDA_BUILD. */
#ifndef VECADD_GPU_DEVICE_H
#define VECADD_GPU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/plan.h"
#include "base/status.h"
#include "gpu/errors.h"
#include "gpu/launch_configs.h"

struct device_facts {
    char name[256];
    int cc_major, cc_minor; /* compute capability */
    int multiprocessors, threads_per_multiprocessor;
    size_t memory; /* bytes */
    size_t l2;     /* bytes */
    int clock_khz; /* of the multiprocessors, at most */
    int memory_clock_khz, memory_bus_bits;
    int blocks_per_multiprocessor, registers_per_multiprocessor;
    size_t shared_per_multiprocessor, shared_reserved; /* bytes; those that every block takes beside its own */
    int pci_domain, pci_bus, pci_device;
};

/* How many devices there are; the status tells "no GPU", "driver too old" and "forked" apart. */
int device_count(int *count, struct status *status);

int device_facts(int device, struct device_facts *facts, struct status *status);

/* The same for a calibration of the routes, which the number of threads that the host adds by decides too. Returns 0,
 * or -1 where the driver does not say which GPU it is. */
enum { ROUTES_KEY = 96 };
int device_routes_key(int device, char key[ROUTES_KEY]);

/* Is told of each device when this process first uses it, with its key for calibrations; from any thread. For
 * constructors: there is one watcher, the chooser of routes. */
typedef void device_watcher(int device, const char *key);
void device_watch(device_watcher *watcher);

/* Makes `device` (-1: the thread's current one) ready to be used, which the first use of it does otherwise. */
int device_start(int device, struct status *status);

/* Whether it is ready, or does not exist. No CUDA call, no wait. */
bool device_is_started(int device);

/* The thread's current device, and whether `device` exists (an error that says how many there are). */
int device_current(int *device, struct status *status);
int device_check_ordinal(int device, struct status *status);

/* Makes `device` the thread's current one for a call of another library, which means the current device's legacy
 * default stream by that name, and gives the one that was. device_make_current_again undoes it; nothing is to be undone
 * when it fails. */
int device_make_current(int device, int *previous, struct status *status);
void device_make_current_again(int previous, int device);

/* What an addition on a device goes by, and what `vecadd tune` writes its file for. */
struct device_launch_configs {
    char key[DEVICE_KEY];
    struct launch_configs shipped, used;
};

/* Starts the device. */
int device_launch_configs(int device, struct device_launch_configs *launch_configs, struct status *status);

/* Memory that the driver has said it knows: all of [begin, end), of one device. {0} is none. */
struct device_range {
    uintptr_t begin, end;
    int device;
};

/* Checks that [pointer, pointer + bytes) lies in memory that the driver knows and that a kernel may use, stepping over
 * adjacent allocations (caching allocators map segments side by side), and gives its device. `what` names it in the
 * message: "a", "b", "out". bytes > 0. The driver is asked only where *known does not hold it all, which then becomes
 * the memory that does. A look at *known takes 1 ns, the driver 70. */
int device_check_pointer_near(const void *pointer, size_t bytes, const char *what, struct device_range *known,
                              int *device, struct status *status);

/* Queues plan's kernel: joins, launch, joins the other way. An `out` that overlaps an input in part goes through a
 * stream-ordered temporary. Runs ROUTE_DEVICE. */
int device_add(const struct plan *plan, struct status *status);

#endif
