/* What a device is, and how a thread makes it current. Each function restores the thread's current device.
 *
 * A build without CUDA has what other folders call of this folder's headers too, in csrc/transfer/without_cuda.c: each
 * function fails there with STATUS_NO_CUDA_BUILD. */
#ifndef VECADD_GPU_DEVICE_H
#define VECADD_GPU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "gpu/before.h"
#include "gpu/errors.h"
#include "gpu/launch_configs.h"

struct device_facts {
    char name[256];
    char key[DEVICE_KEY];   /* in the files of `vecadd tune` */
    int cc_major, cc_minor; /* compute capability */
    int multiprocessors, threads_per_multiprocessor;
    size_t memory; /* bytes */
    size_t l2;     /* bytes */
    int clock_khz; /* maximum clock of the multiprocessors */
    int memory_clock_khz, memory_bus_bits;
    int blocks_per_multiprocessor, registers_per_multiprocessor;
    size_t shared_per_multiprocessor, shared_reserved; /* bytes; reserved: taken by every block beside its own */
    int pci_domain, pci_bus, pci_device;
};

/* The number of devices; the status tells "no GPU", "driver too old" and "forked" apart. */
int device_count(int *count, struct status *status);

int device_facts(int device, struct device_facts *facts, struct status *status);

/* Called in any thread when this process first uses a device. For constructors: there is one hook, that of the chooser
 * of routes. */
typedef void device_hook(int device);
void device_on_first_use(device_hook *hook);

/* Makes `device` (-1: the thread's current one) ready to be used now instead of at its first use. */
int device_start(int device, struct status *status);

/* Whether the device is ready to be used, or does not exist. No CUDA call, no wait. */
bool device_is_started(int device);

/* device_current: the thread's current device, without making a context. device_check_ordinal: checks that `device`
 * exists; the error names the number of devices. */
int device_current(int *device, struct status *status);
int device_check_ordinal(int device, struct status *status);

/* Replaces -1 by the thread's current device, and checks that any other exists. Makes no context. */
static inline int
device_find(int *device, struct status *status)
{
    return *device < 0 ? device_current(device, status) : device_check_ordinal(*device, status);
}

/* Makes `device` the thread's current one for a call of another library, where the legacy default stream's name means
 * the current device's. *before is for device_make_current_again, which undoes it. After a failure there is nothing to
 * undo. */
int device_make_current(int device, struct device_before *before, struct status *status);
void device_make_current_again(const struct device_before *before);

/* The launch configs that additions on a device use, and the device's key in the files of `vecadd tune`. */
struct device_launch_configs {
    char key[DEVICE_KEY];
    struct launch_configs shipped, used;
};

/* Also starts the device. */
int device_launch_configs(int device, struct device_launch_configs *launch_configs, struct status *status);

/* A range [begin, end) of memory that the driver knows, of one device. {0} is none. */
struct device_range {
    uintptr_t begin, end;
    int device;
};

static inline bool
device_range_contains(const struct device_range *range, uintptr_t begin, size_t bytes)
{
    return begin >= range->begin && begin < range->end && bytes <= range->end - begin;
}

/* Whether the driver knows memory there. It does not know a capture's own before the graph runs. */
bool device_knows_pointer(const void *pointer);

/* Checks that [pointer, pointer + bytes) is memory that the driver knows and that a kernel may use, stepping over
 * adjacent allocations (caching allocators map segments side by side), and gives its device. `what` names it in the
 * message: "a", "b", "out". bytes > 0. Asks the driver only where *known does not include the whole range, and then
 * sets *known. A look at *known takes 1 ns, the driver 70. */
int device_check_pointer_near(const void *pointer, size_t bytes, const char *what, struct device_range *known,
                              int *device, struct status *status);

/* The most that the link between a device and the host carries in one direction in theory, bytes a second; 0 where the
 * system does not tell. The device may be slower: a slot may have fewer lanes than the card. */
double device_link_rate(int device);

/* The same of a PCI device by its folder in /sys/bus/pci/devices. */
double link_rate_of(const char *folder);

#endif
