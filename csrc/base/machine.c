#include "base/machine.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a control group limits. */
enum limit {
    LIMIT_PROCESSORS, /* rounded up to whole ones */
    LIMIT_MEMORY,     /* bytes */
    LIMIT_ROOM,       /* bytes of memory left, plus one, because 0 is no limit */
};

static FILE *
open_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length < (int)sizeof path ? fopen(path, "re") : NULL;
}

/* The first number in a group's file; 0 if the file is missing or says "max". */
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

/* Both 0 if either is missing. */
static void
two_numbers_in(const char *folder, const char *name, long long *first, long long *second)
{
    FILE *file = open_in(folder, name);
    if (file == NULL || fscanf(file, "%lld %lld", first, second) != 2)
        *first = *second = 0;
    if (file)
        fclose(file);
}

/* The limit of the group in `folder`, by the files of version 1 or 2; 0: none. */
static long long
limit_in(const char *folder, enum limit limit, bool v2)
{
    long long quota, period, most, used;
    switch (limit) {
    case LIMIT_PROCESSORS:
        if (v2) /* "quota period", or "max period" for no limit */
            two_numbers_in(folder, "cpu.max", &quota, &period);
        else {
            quota = number_in(folder, "cpu.cfs_quota_us");
            period = number_in(folder, "cpu.cfs_period_us");
        }
        return quota > 0 && period > 0 ? quota / period + (quota % period != 0) : 0;
    case LIMIT_MEMORY:
        return number_in(folder, v2 ? "memory.max" : "memory.limit_in_bytes");
    case LIMIT_ROOM:
        most = limit_in(folder, LIMIT_MEMORY, v2);
        used = number_in(folder, v2 ? "memory.current" : "memory.usage_in_bytes");
        return most <= 0 ? 0 : used < most ? most - used + 1 : 1;
    }
    return 0;
}

/* The smaller of two limits; 0 is no limit. */
static long long
smaller_limit(long long a, long long b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The smallest limit of a group and its ancestors, all of which apply to it. Inside a container the path that /proc
 * shows may not exist under the hierarchy's mount, whose top is then the container's own group; a missing folder counts
 * as no limit. */
static long long
up_the_tree(enum limit limit, bool v2, const char *mount, const char *hierarchy, const char *path)
{
    char folder[PATH_MAX];
    const size_t top = strlen(mount) + strlen(hierarchy);
    if (snprintf(folder, sizeof folder, "%s%s%s", mount, hierarchy, path) >= (int)sizeof folder)
        return 0;
    long long smallest = limit_in(folder, limit, v2);
    while (strlen(folder) > top) {
        *strrchr(folder, '/') = '\0';
        smallest = smaller_limit(smallest, limit_in(folder, limit, v2));
    }
    return smallest;
}

/* One line of the membership, "number:controllers:/path". Version 2 names no controllers; its hierarchy is the whole
 * mount, or `unified` beside those of version 1. A version 1 hierarchy has a folder or a link for each controller. */
static long long
limit_of_line(enum limit limit, char *line, const char *mount)
{
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL || path[1] != '/')
        return 0;
    *controllers++ = *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';

    if (*controllers == '\0')
        return smaller_limit(up_the_tree(limit, true, mount, "", path),
                             up_the_tree(limit, true, mount, "/unified", path));
    const char *controller = limit == LIMIT_PROCESSORS ? "cpu" : "memory";
    char hierarchy[64];
    snprintf(hierarchy, sizeof hierarchy, "/%s", controller);
    for (char *name; (name = strsep(&controllers, ",")) != NULL;)
        if (strcmp(name, controller) == 0)
            return up_the_tree(limit, false, mount, hierarchy, path);
    return 0;
}

/* The smallest limit of the process's groups and all their ancestors; 0 if there is none. */
static long long
smallest_limit(enum limit limit, const char *membership, const char *mount)
{
    char line[PATH_MAX + 256];
    long long smallest = 0;
    FILE *file = fopen(membership, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file))
        smallest = smaller_limit(smallest, limit_of_line(limit, line, mount));
    fclose(file);
    return smallest;
}

int
cpus_allowed(void)
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

int
cpus_quota(const char *membership, const char *mount)
{
    const long long smallest = smallest_limit(LIMIT_PROCESSORS, membership, mount);
    return smallest < INT_MAX ? (int)smallest : INT_MAX;
}

int
cpus_usable(void)
{
    const int allowed = cpus_allowed();
    const int quota = cpus_quota(CGROUP_MEMBERSHIP, CGROUP_MOUNT);
    return quota > 0 && quota < allowed ? quota : allowed;
}

static long long
machine_bytes(void)
{
    return (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

size_t
ram_usable(const char *membership, const char *mount)
{
    const long long machine = machine_bytes(), group = smallest_limit(LIMIT_MEMORY, membership, mount);
    return (size_t)(group > 0 && group < machine ? group : machine);
}

/* The kernel's estimate of available memory; all memory if it gives none. */
static long long
machine_available(void)
{
    char line[128];
    long long kilobytes = -1;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && kilobytes < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lld kB", &kilobytes) != 1)
            kilobytes = -1;
    if (file)
        fclose(file);
    return kilobytes < 0 ? machine_bytes() : 1024 * kilobytes;
}

size_t
ram_available(const char *membership, const char *mount)
{
    const long long machine = machine_available(), group = smallest_limit(LIMIT_ROOM, membership, mount);
    return (size_t)(group > 0 && group - 1 < machine ? group - 1 : machine);
}
