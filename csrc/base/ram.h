/* How much memory of the host this process may use. */
#ifndef VECADD_BASE_RAM_H
#define VECADD_BASE_RAM_H

#include <stddef.h>

/* Bytes of the machine, or what the process's control groups allow it where that is less. `membership` and `mount` as
 * cpus_quota has them. Reads files. */
size_t ram_usable(const char *membership, const char *mount);

/* Bytes that can be allocated now without swapping: what the kernel estimates, or what is left of a group's limit. */
size_t ram_available(const char *membership, const char *mount);

#endif
