/* The processors and the memory of the host that this process may use: by its affinity mask and by the control groups
 * (versions 1 and 2) that it is in. All of it reads files. */
#ifndef VECADD_BASE_MACHINE_H
#define VECADD_BASE_MACHINE_H

#include <stddef.h>

/* The file that lists a process's groups, and the mount point of their hierarchies. */
#define CGROUP_MEMBERSHIP "/proc/self/cgroup"
#define CGROUP_MOUNT      "/sys/fs/cgroup"

/* min(affinity mask, control group's cpu quota rounded up), at least 1. Ask once and remember. */
int cpus_usable(void);

/* The processors of the calling thread's affinity mask alone. One system call, no file. */
int cpus_allowed(void);

/* The quota alone, rounded up to whole processors; 0 if there is none. */
int cpus_quota(const char *membership, const char *mount);

/* Bytes of the machine's memory, or the limit of the process's control groups if that is less. */
size_t ram_usable(const char *membership, const char *mount);

/* Bytes that can be allocated now without swapping: the kernel's estimate, or the room left below a group's limit. */
size_t ram_available(const char *membership, const char *mount);

#endif
