/* The limits that control groups (versions 1 and 2) set this process. */
#ifndef VECADD_BASE_CGROUP_H
#define VECADD_BASE_CGROUP_H

/* The file that lists a process's groups, and the mount point of their hierarchies. */
#define CGROUP_MEMBERSHIP "/proc/self/cgroup"
#define CGROUP_MOUNT      "/sys/fs/cgroup"

struct cgroup_limit {
    const char *controller;              /* "cpu", "memory": the name of its hierarchy in version 1 */
    long long (*v1)(const char *folder); /* reads the limit of the group in `folder`; 0: none */
    long long (*v2)(const char *folder);
};

/* The smallest limit of the process's groups and all their ancestors; 0 if there is none. */
long long cgroup_smallest(const struct cgroup_limit *limit, const char *membership, const char *mount);

/* The first number in a group's file; 0 if the file is missing or says "max". */
long long cgroup_number(const char *folder, const char *name);

/* The first two numbers in a group's file; both 0 if either is missing. */
void cgroup_two_numbers(const char *folder, const char *name, long long *first, long long *second);

#endif
