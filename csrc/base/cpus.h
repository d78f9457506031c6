/* How many processors this process may use at once. */
#ifndef VECADD_BASE_CPUS_H
#define VECADD_BASE_CPUS_H

/* min(affinity mask, control group's cpu quota rounded up), at least 1. Reads files: ask once and remember. */
int cpus_usable(void);

/* The processors of the calling thread's affinity mask alone. One system call. */
int cpus_allowed(void);

/* The quota alone, rounded up to whole processors; 0 if there is none. `membership` is this process's list of control
 * groups (/proc/self/cgroup), `mount` the mount point of version 1 and 2 hierarchies (/sys/fs/cgroup). */
int cpus_quota(const char *membership, const char *mount);

#endif
