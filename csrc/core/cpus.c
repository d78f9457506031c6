#include "cpus.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
affinity_count(void)
{
    for (int size = 1024; size <= 1 << 20; size *= 2) { /* the kernel refuses a mask smaller than its own */
        cpu_set_t *mask = CPU_ALLOC(size);
        if (mask == NULL)
            return 1;
        const size_t bytes = CPU_ALLOC_SIZE(size);
        const int count = sched_getaffinity(0, bytes, mask) == 0 ? CPU_COUNT_S(bytes, mask) : 0;
        CPU_FREE(mask);
        if (count > 0)
            return count;
    }
    return 1;
}

static int
rounded_up(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    const long long count = quota / period + (quota % period != 0);
    return count < INT_MAX ? (int)count : INT_MAX;
}

static FILE *
open_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length < (int)sizeof path ? fopen(path, "re") : NULL;
}

static long long
number_in(const char *folder, const char *name)
{
    long long value = 0;
    FILE *file = open_in(folder, name);
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lld", &value) != 1)
        value = 0;
    fclose(file);
    return value;
}

static int
quota_v1(const char *folder)
{
    return rounded_up(number_in(folder, "cpu.cfs_quota_us"), number_in(folder, "cpu.cfs_period_us"));
}

/* cpu.max holds "quota period", or "max period" for no limit. */
static int
quota_v2(const char *folder)
{
    long long quota = 0, period = 0;
    FILE *file = open_in(folder, "cpu.max");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lld %lld", &quota, &period) != 2)
        quota = 0;
    fclose(file);
    return rounded_up(quota, period);
}

static int
smaller_quota(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* A group is held to the quotas of all groups above it. Inside a container the path that /proc shows may not exist
 * under the hierarchy's mount, whose top is then the container's own group: a group that is not there has no quota. */
static int
quota_up_the_tree(int (*quota)(const char *folder), const char *mount, const char *hierarchy, const char *path)
{
    char folder[PATH_MAX];
    const size_t top = strlen(mount) + strlen(hierarchy);
    if (snprintf(folder, sizeof folder, "%s%s%s", mount, hierarchy, path) >= (int)sizeof folder)
        return 0;
    int smallest = quota(folder);
    while (strlen(folder) > top) {
        *strrchr(folder, '/') = '\0';
        smallest = smaller_quota(smallest, quota(folder));
    }
    return smallest;
}

/* One line of the membership, "number:controllers:/path". Version 2 names no controllers; its hierarchy is the whole
 * mount, or `unified` beside those of version 1. A version 1 hierarchy has a folder or a link for each controller. */
static int
quota_of_line(char *line, const char *mount)
{
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL || path[1] != '/')
        return 0;
    *controllers++ = *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';

    if (*controllers == '\0')
        return smaller_quota(quota_up_the_tree(quota_v2, mount, "", path),
                             quota_up_the_tree(quota_v2, mount, "/unified", path));
    for (char *name; (name = strsep(&controllers, ",")) != NULL;)
        if (strcmp(name, "cpu") == 0)
            return quota_up_the_tree(quota_v1, mount, "/cpu", path);
    return 0;
}

int
cpus_quota(const char *membership, const char *mount)
{
    char line[PATH_MAX + 256];
    int smallest = 0;
    FILE *file = fopen(membership, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file))
        smallest = smaller_quota(smallest, quota_of_line(line, mount));
    fclose(file);
    return smallest;
}

int
cpus_usable(void)
{
    const int affinity = affinity_count();
    const int quota = cpus_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota > 0 && quota < affinity ? quota : affinity;
}
