/* How many threads there may be: the affinity mask and control groups' quotas. Of VECADD_NUM_THREADS,
 * tests/add/test_threads.py. */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/machine.h"
#include "host/schedule.h"
#include "jobs.h"
#include "tests.h"

TEST(a_chosen_number_outlives_what_was_counted)
{
    const int before = threads_available();
    CHECK(threads_choose(7) == before);
    threads_count_forget();
    CHECK(threads_available() == 7);
    CHECK(threads_usual() == before);
    CHECK(threads_choose(before) == 7);
}

TEST(the_affinity_mask_is_obeyed)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(cpus_usable() == 1);
    CHECK(visits_each_once(4, 1000, 10), "more threads than processors");
}

/* ---- control groups, from files made up here ---- */

static char folder[64];
static bool redirects; /* the process's own group to the folder */

FILE *
fopen(const char *path, const char *mode)
{
    char full[512];
    if (redirects && strcmp(path, CGROUP_MEMBERSHIP) == 0) {
        snprintf(full, sizeof full, "%s/membership", folder);
        path = full;
    } else if (redirects && strncmp(path, CGROUP_MOUNT, strlen(CGROUP_MOUNT)) == 0) {
        snprintf(full, sizeof full, "%s%s", folder, path + strlen(CGROUP_MOUNT));
        path = full;
    }
    const int file = *mode == 'r' ? open(path, O_RDONLY | O_CLOEXEC) : open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return file < 0 ? NULL : fdopen(file, *mode == 'r' ? "r" : "w");
}

static void
write_file(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    for (char *slash = strchr(full + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    if (file == NULL || fputs(text, file) < 0)
        abort();
    fclose(file);
}

static int
quota(const char *membership)
{
    char path[128];
    write_file("membership", membership);
    snprintf(path, sizeof path, "%s/membership", folder);
    return cpus_quota(path, folder);
}

static void
make_folder(void)
{
    strcpy(folder, "/tmp/vecadd-cgroup-XXXXXX");
    if (mkdtemp(folder) == NULL)
        abort();
}

static void
remove_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
}

static int
usable_by_quota(const char *max)
{
    write_file("mine/cpu.max", max);
    return cpus_usable();
}

TEST(the_smaller_of_quota_and_mask_counts)
{
    cpu_set_t mask;
    CHECK(sched_getaffinity(0, sizeof mask, &mask) == 0);
    make_folder();
    write_file("membership", "0::/mine\n");
    redirects = true;
    CHECK(usable_by_quota("100000 100000\n") == 1);
    CHECK(usable_by_quota("99900000 100000\n") == CPU_COUNT(&mask));
    CHECK(usable_by_quota("max 100000\n") == CPU_COUNT(&mask));
    redirects = false;
    remove_folder();
}

TEST(quotas_are_read_from_both_versions_and_all_ancestors)
{
    make_folder();
    CHECK(quota("0::/\n") == 0, "no files, no quota");

    write_file("a/b/cpu.max", "max 100000\n");
    CHECK(quota("0::/a/b\n") == 0);
    write_file("a/cpu.max", "250000 100000\n");
    CHECK(quota("0::/a/b\n") == 3, "rounded up, from the parent");
    write_file("a/b/cpu.max", "50000 100000\n");
    CHECK(quota("0::/a/b\n") == 1);
    CHECK(quota("0::/a\n") == 3);
    write_file("cpu.max", "200000 100000\n");
    CHECK(quota("0::/not/in/this/container\n") == 2, "the mount's top is the container's own group");

    write_file("cpu/job/cpu.cfs_quota_us", "-1\n");
    write_file("cpu/job/cpu.cfs_period_us", "100000\n");
    CHECK(quota("3:cpuset:/job\n2:cpu,cpuacct:/job\n") == 0);
    write_file("cpu/job/cpu.cfs_quota_us", "410000\n");
    CHECK(quota("3:cpuset:/job\n2:cpuacct,cpu:/job\n1:name=systemd:/x\n") == 5);
    CHECK(quota("2:cpu,cpuacct:/job\n0::/a\n") == 2, "the smaller of two");
    write_file("cpu/other/cpu.cfs_quota_us", "100000\n");
    write_file("cpu/other/cpu.cfs_period_us", "100000\n");
    CHECK(quota("3:cpuset:/other\n2:cpu,cpuacct:/job\n") == 5, "cpuset is another controller");
    write_file("unified/u/cpu.max", "100000 100000\n");
    CHECK(quota("0::/u\n") == 1);
    CHECK(quota("rubbish\n:\n::\n0:\n") == 0);
    CHECK(cpus_quota("/nonexistent", folder) == 0);
    remove_folder();
}
