/* The launch configs of one device: what was tuned on it takes the place of the build's, as a whole or not at all. */
#include <stdio.h>
#include <string.h>

#include "base/tuned_file.h"
#include "check.h"
#include "cuda/kernels.h"
#include "gpu/device.h"
#include "gpu/launch_configs.h"

#define KEY   "GPU-d0d0d0d0-d0d0-d0d0-d0d0-d0d0d0d0d0d0 driver 13000"
#define WHOLE "recipe 0 128 0 0\nrecipe 1200000 512 1 30\n" /* from 100000 float32 on */

static void
write_rows(const char *rows, int count)
{
    char path[256];
    CHECK(tuned_file_path("recipes", KEY, path, sizeof path));
    FILE *file = fopen(path, "w");
    CHECK(file && fprintf(file, "vecadd %d " KEY "\n%send %d\n", TUNED_VERSION, rows, count) > 0 && fclose(file) == 0);
}

static struct launch_configs
read_onto_those_of_the_build(void)
{
    struct launch_configs launch_configs = launch_configs_shipped(90, 60 << 20);
    launch_configs_read_tuned(&launch_configs, KEY);
    return launch_configs;
}

static void
tuned_rows_take_the_place_of_all_others(void)
{
    struct add_call small = {.component = COMPONENT_F32, .n = 99999}, large = {.component = COMPONENT_F32, .n = 100000};
    write_rows(WHOLE, 2);
    const struct launch_configs launch_configs = read_onto_those_of_the_build();
    CHECK(launch_configs.source == LAUNCH_CONFIGS_TUNED && launch_configs.count == 2 && launch_configs.l2 == 60 << 20);
    launch_config_choose(&launch_configs, &small);
    CHECK(small.block == 128 && small.loads == LOADS_PLAIN && small.demoted == 0);
    launch_config_choose(&launch_configs, &large);
    CHECK(large.block == 512 && large.loads == LOADS_EVICT_LAST && large.demoted == 30 << 20);
}

static void
rows_that_no_kernel_can_follow_change_nothing(void)
{
    static const struct {
        const char *rows;
        int count;
    } bad[] = {
        {"", 0},
        {"recipe 0 128 0\n", 1},
        {"recipe 0 128 0 0 0\n", 1},
        {"other 0 128 0 0\n", 1},
        {"recipe 1 128 0 0\n", 1},
        {"recipe 0 0 0 0\n", 1},
        {"recipe 0 100 0 0\n", 1},
        {"recipe 0 2048 0 0\n", 1},
        {"recipe 0 128 2 0\n", 1},
        {"recipe 0 128 1 61\n", 1},
        {"recipe 0 128 0 0\nrecipe 0 256 0 0\n", 2},
        {"recipe 0 128 0 0\nrecipe 5 256 0 0\nrecipe 4 256 0 0\n", 3},
    };
    const struct launch_configs build = launch_configs_shipped(90, 60 << 20);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_rows(bad[i].rows, bad[i].count);
        const struct launch_configs launch_configs = read_onto_those_of_the_build();
        CHECK(launch_configs.source == LAUNCH_CONFIGS_MEASURED && launch_configs.count == build.count, "%s",
              bad[i].rows);
        CHECK(memcmp(launch_configs.row, build.row, sizeof build.row) == 0, "%s", bad[i].rows);
    }
}

static void
more_rows_than_there_is_room_for_change_nothing(void)
{
    char rows[1024] = "";
    for (int i = 0; i <= LAUNCH_CONFIGS_MAX; i++)
        sprintf(rows + strlen(rows), "recipe %d 128 0 0\n", i);
    write_rows(rows, LAUNCH_CONFIGS_MAX + 1);
    CHECK(read_onto_those_of_the_build().source == LAUNCH_CONFIGS_MEASURED);
}

static void
a_device_goes_by_its_own_file_and_no_other(void)
{
    struct device_launch_configs first, second;
    struct status status;
    setenv("VECADD_DOUBLE_DEVICES", "2", 1);
    write_rows(WHOLE, 2);
    CHECK(device_launch_configs(0, &first, &status) == 0 && device_launch_configs(1, &second, &status) == 0);
    CHECK(strcmp(first.key, KEY) == 0, "%s", first.key);
    CHECK(first.used.source == LAUNCH_CONFIGS_TUNED && first.used.row[1].block == 512);
    CHECK(first.shipped.source == LAUNCH_CONFIGS_MEASURED && second.used.source == LAUNCH_CONFIGS_MEASURED);
    CHECK(strcmp(first.key, second.key) != 0);

    write_rows("recipe 0 64 0 0\n", 1);
    CHECK(device_launch_configs(0, &first, &status) == 0 && first.used.row[0].block == 128, "read once a process");
}

int
main(void)
{
    char folder[] = "/tmp/vecadd-recipes-XXXXXX", path[256];
    CHECK(mkdtemp(folder) != NULL && setenv("VECADD_CACHE_DIR", folder, 1) == 0);
    RUN(tuned_rows_take_the_place_of_all_others);
    RUN(rows_that_no_kernel_can_follow_change_nothing);
    RUN(more_rows_than_there_is_room_for_change_nothing);
    RUN(a_device_goes_by_its_own_file_and_no_other);
    CHECK(tuned_file_path("recipes", KEY, path, sizeof path) && remove(path) == 0 && remove(folder) == 0);
    return check_report();
}
