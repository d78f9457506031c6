#include "recipes.h"

#include <math.h>
#include <string.h>

#include "kernels.h"
#include "tuned_file.h"

#define MIB ((size_t)1 << 20)

/* Compute capability 9.0: an H200, buffers rotating, nothing flushed; us by 256 threads, by 1024, and by 1024 with
 * evict_last and demotion, float32. 2^20: 7.01, 7.02, 7.42. 2^22: 15.5, 15.5, 16.2. 2^23: 26.6, 26.8, 26.7. 2^24: 49.6,
 * 49.8, 48.4. 2^26: 185.4, 185.2, 182.5. 2^28: 733.5, 733.7, 723.9. 2^30: 2925, 2923, 2886. 768 threads are within 0.2
 * % of 1024 from 2^28 on, and 1.2 to 2.6 % behind below. Demoting 16 MB of each input, 16 sixtieths of the 60 MB,
 * leaves 0.9 % of the 11 % that work on another 45 MB is slower by after evict_last. */
static const struct recipe hopper[] = {
    {0, 256, LOADS_PLAIN, 0},
    {128 * MIB, 1024, LOADS_EVICT_LAST, 16},
};

/* Inherited, measured nowhere: what is never far behind on 9.0, with blocks that fill a multiprocessor of 1024, of 1536
 * and of 2048 threads alike. */
static const struct recipe inherited[] = {
    {0, 256, LOADS_PLAIN, 0},
};

#define ROWS(table) table, sizeof table / sizeof *table

static const struct {
    int capability; /* 0: any other */
    const struct recipe *row;
    int count;
} tables[] = {
    {90, ROWS(hopper)},
    {0, ROWS(inherited)},
};

struct recipes
recipes_shipped(int capability, size_t l2)
{
    int i = 0;
    while (tables[i].capability != 0 && tables[i].capability != capability)
        i++;
    struct recipes recipes = {
        .count = tables[i].count,
        .source = tables[i].capability != 0 ? RECIPES_MEASURED : RECIPES_INHERITED,
        .l2 = l2,
    };
    memcpy(recipes.row, tables[i].row, (size_t)tables[i].count * sizeof *recipes.row);
    return recipes;
}

/* Whole, from 0 to `most`. */
static bool
is_count(double number, double most)
{
    return number >= 0 && number <= most && number == floor(number);
}

/* Appends a row that a kernel can follow: whole warps, and thresholds that grow from 0. */
static bool
take_row(void *context, const char *name, const double *number, int count)
{
    struct recipes *recipes = context;
    if (strcmp(name, "recipe") != 0 || count != 4 || recipes->count == RECIPES_MOST)
        return false;
    if (!is_count(number[0], 0x1p53) || !is_count(number[1], 1024) || !is_count(number[2], LOADS_EVICT_LAST) ||
        !is_count(number[3], 60))
        return false;
    const struct recipe row = {(size_t)number[0], (unsigned)number[1], (enum add_loads)number[2], (unsigned)number[3]};
    const bool first = recipes->count == 0;
    if (row.block == 0 || row.block % 32 != 0 || (first && row.min_bytes != 0) ||
        (!first && row.min_bytes <= recipes->row[recipes->count - 1].min_bytes))
        return false;
    recipes->row[recipes->count++] = row;
    return true;
}

void
recipes_read_tuned(struct recipes *recipes, const char *key)
{
    struct recipes tuned = {.source = RECIPES_TUNED, .l2 = recipes->l2};
    if (tuned_file_read("recipes", key, take_row, &tuned) && tuned.count > 0)
        *recipes = tuned;
}

void
recipe_choose(const struct recipes *recipes, struct add_call *call)
{
    const size_t bytes = 3 * call->n * lane_size[call->lane];
    const struct recipe *row = recipes->row + recipes->count - 1;
    while (row > recipes->row && bytes < row->min_bytes)
        row--;
    call->block = row->block;
    call->loads = row->loads;
    call->demoted = recipes->l2 / 60 * row->demoted;
}
