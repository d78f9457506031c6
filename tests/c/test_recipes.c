/* The recipes of one device: what was tuned on it takes the place of the build's, as a whole or not at all. */
#include <stdio.h>
#include <string.h>

#include "base/tuned_file.h"
#include "check.h"
#include "cuda/kernels.h"
#include "gpu/device.h"
#include "gpu/launch_configs.h"

#define KEY   "GPU-d0d0d0d0-d0d0-d0d0-d0d0-d0d0d0d0d0d0 driver 13000"
#define WHOLE "recipe 0 128 0 0\nrecipe 1000000 512 1 30\n"

static char folder[64];

static void
write_rows(const char *rows, int count)
{
    char path[256];
    if (!*folder) {
        snprintf(folder, sizeof folder, "/tmp/vecadd-recipes-XXXXXX");
        CHECK(mkdtemp(folder) != NULL);
        setenv("VECADD_CACHE_DIR", folder, 1);
    }
    CHECK(tuned_file_path("recipes", KEY, path, sizeof path));
    FILE *file = fopen(path, "w");
    CHECK(file && fprintf(file, "vecadd %d " KEY "\n%send %d\n", TUNED_VERSION, rows, count) > 0 && fclose(file) == 0);
}

static void
remove_folder(void)
{
    char path[256];
    CHECK(tuned_file_path("recipes", KEY, path, sizeof path) && remove(path) == 0 && remove(folder) == 0);
}

static struct recipes
read_onto_those_of_the_build(void)
{
    struct recipes recipes = recipes_shipped(90, 60 << 20);
    recipes_read_tuned(&recipes, KEY);
    return recipes;
}

static void
tuned_rows_take_the_place_of_all_others(void)
{
    struct add_call small = {.lane = LANE_F32, .n = 83333}, large = {.lane = LANE_F32, .n = 83334};
    write_rows(WHOLE, 2);
    const struct recipes recipes = read_onto_those_of_the_build();
    CHECK(recipes.source == RECIPES_TUNED && recipes.count == 2 && recipes.l2 == 60 << 20);
    recipe_choose(&recipes, &small);
    CHECK(small.block == 128 && small.loads == LOADS_PLAIN && small.demoted == 0);
    recipe_choose(&recipes, &large);
    CHECK(large.block == 512 && large.loads == LOADS_EVICT_LAST && large.demoted == 30 << 20);
    remove_folder();
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
        {"recipe 0 -32 0 0\n", 1},
        {"recipe 0 128.5 0 0\n", 1},
        {"recipe 0 128 2 0\n", 1},
        {"recipe 0 128 1 61\n", 1},
        {"recipe 0 128 0 0\nrecipe 0 256 0 0\n", 2},
        {"recipe 0 128 0 0\nrecipe 5 256 0 0\nrecipe 4 256 0 0\n", 3},
        {WHOLE, 3},
    };
    const struct recipes build = recipes_shipped(90, 60 << 20);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_rows(bad[i].rows, bad[i].count);
        const struct recipes recipes = read_onto_those_of_the_build();
        CHECK(recipes.source == RECIPES_MEASURED && recipes.count == build.count, "%s", bad[i].rows);
        CHECK(memcmp(recipes.row, build.row, sizeof build.row) == 0, "%s", bad[i].rows);
    }
    remove_folder();
}

static void
more_rows_than_there_is_room_for_change_nothing(void)
{
    char rows[1024] = "";
    for (int i = 0; i <= RECIPES_MOST; i++)
        sprintf(rows + strlen(rows), "recipe %d 128 0 0\n", i);
    write_rows(rows, RECIPES_MOST + 1);
    CHECK(read_onto_those_of_the_build().source == RECIPES_MEASURED);
    remove_folder();
}

static void
a_device_goes_by_its_own_file_and_no_other(void)
{
    struct device_recipes first, second;
    struct status status;
    setenv("VECADD_DOUBLE_DEVICES", "2", 1);
    write_rows(WHOLE, 2);
    CHECK(device_recipes(0, &first, &status) == 0 && device_recipes(1, &second, &status) == 0);
    CHECK(strcmp(first.key, KEY) == 0, "%s", first.key);
    CHECK(first.used.source == RECIPES_TUNED && first.used.row[1].block == 512);
    CHECK(first.shipped.source == RECIPES_MEASURED && second.used.source == RECIPES_MEASURED);
    CHECK(strcmp(first.key, second.key) != 0);

    write_rows("recipe 0 64 0 0\n", 1);
    CHECK(device_recipes(0, &first, &status) == 0 && first.used.row[0].block == 128, "read once a process");
    remove_folder();
}

int
main(void)
{
    RUN(tuned_rows_take_the_place_of_all_others);
    RUN(rows_that_no_kernel_can_follow_change_nothing);
    RUN(more_rows_than_there_is_room_for_change_nothing);
    RUN(a_device_goes_by_its_own_file_and_no_other);
    return check_report();
}
