#include "base/ram.h"

#include <stdio.h>
#include <unistd.h>

#include "base/cgroup.h"

static long long
limit_v1(const char *folder)
{
    return cgroup_number(folder, "memory.limit_in_bytes");
}

static long long
limit_v2(const char *folder)
{
    return cgroup_number(folder, "memory.max");
}

/* The bytes left below a limit, plus one, because 0 stands for no limit. */
static long long
room(long long limit, long long used)
{
    if (limit <= 0)
        return 0;
    return used < limit ? limit - used + 1 : 1;
}

static long long
room_v1(const char *folder)
{
    return room(limit_v1(folder), cgroup_number(folder, "memory.usage_in_bytes"));
}

static long long
room_v2(const char *folder)
{
    return room(limit_v2(folder), cgroup_number(folder, "memory.current"));
}

static long long
machine_bytes(void)
{
    return (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

size_t
ram_usable(const char *membership, const char *mount)
{
    static const struct cgroup_limit limit = {.controller = "memory", .v1 = limit_v1, .v2 = limit_v2};
    const long long machine = machine_bytes(), group = cgroup_smallest(&limit, membership, mount);
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
    static const struct cgroup_limit limit = {.controller = "memory", .v1 = room_v1, .v2 = room_v2};
    const long long machine = machine_available(), group = cgroup_smallest(&limit, membership, mount);
    return (size_t)(group > 0 && group - 1 < machine ? group - 1 : machine);
}
