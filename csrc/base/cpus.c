#include "base/cpus.h"

#include <limits.h>
#include <sched.h>
#include <stddef.h>

#include "base/cgroup.h"

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

static long long
rounded_up(long long quota, long long period)
{
    return quota > 0 && period > 0 ? quota / period + (quota % period != 0) : 0;
}

static long long
quota_v1(const char *folder)
{
    return rounded_up(cgroup_number(folder, "cpu.cfs_quota_us"), cgroup_number(folder, "cpu.cfs_period_us"));
}

/* cpu.max holds "quota period", or "max period" for no limit. */
static long long
quota_v2(const char *folder)
{
    long long quota = 0, period = 0;
    cgroup_two_numbers(folder, "cpu.max", &quota, &period);
    return rounded_up(quota, period);
}

int
cpus_quota(const char *membership, const char *mount)
{
    static const struct cgroup_limit quota = {.controller = "cpu", .v1 = quota_v1, .v2 = quota_v2};
    const long long smallest = cgroup_smallest(&quota, membership, mount);
    return smallest < INT_MAX ? (int)smallest : INT_MAX;
}

int
cpus_usable(void)
{
    const int allowed = cpus_allowed();
    const int quota = cpus_quota(CGROUP_MEMBERSHIP, CGROUP_MOUNT);
    return quota > 0 && quota < allowed ? quota : allowed;
}
