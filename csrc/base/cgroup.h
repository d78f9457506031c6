/* Limits that this process's control groups set it, versions 1 and 2. */
#ifndef VECADD_BASE_CGROUP_H
#define VECADD_BASE_CGROUP_H

/* Where the kernel says in which groups a process is, and where their hierarchies are mounted. */
#define CGROUP_MEMBERSHIP "/proc/self/cgroup"
#define CGROUP_MOUNT      "/sys/fs/cgroup"

struct cgroup_limit {
    const char *controller;              /* "cpu", "memory": the name of its hierarchy in version 1 */
    long long (*v1)(const char *folder); /* the limit of the group of that folder; 0: none */
    long long (*v2)(const char *folder);
};

/* The smallest of the limits of the process's groups and of all groups above them; 0 where there is none. */
long long cgroup_smallest(const struct cgroup_limit *limit, const char *membership, const char *mount);

/* The first number of a group's file; 0 where there is none: no such file, or "max". */
long long cgroup_number(const char *folder, const char *name);

/* The first two; both 0 where either is missing. */
void cgroup_two_numbers(const char *folder, const char *name, long long *first, long long *second);

#endif
