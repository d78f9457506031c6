/* How much memory of the host this process may use. */
#ifndef VECADD_BASE_RAM_H
#define VECADD_BASE_RAM_H

#include <stddef.h>

/* Bytes of the machine's memory, or the limit of the process's control groups if that is less. `membership` and `mount`
 * are those of cpus_quota (cpus.h). Reads files. */
size_t ram_usable(const char *membership, const char *mount);

/* Bytes that can be allocated now without swapping: the kernel's estimate, or the room left below a group's limit. */
size_t ram_available(const char *membership, const char *mount);

#endif
