#include "recipes.h"

#include <math.h>
#include <string.h>

#include "kernels.h"
#include "tuned_file.h"

#define MIB ((size_t)1 << 20)

/* Compute capability 9.0: an H200, buffers rotating, nothing flushed, float32. Times by evict_last with so many
 * sixtieths demoted over those of plain loads with 768 threads, and the same of a kernel that reads c next:
 *
 *            768 threads, 16     24           30           1024 threads, 16   24           256 threads, plain
 *     2^24   0.988/1.015  0.994/1.005  0.997/1.002         0.972/1.036  0.982/1.028  0.997/1.016
 *     2^25   0.986/1.009  0.990/1.008  0.993/1.002         0.981/1.020  0.984/1.017  1.003/1.006
 *     2^26   0.995/1.004  0.996/1.000  0.998/1.001         0.989/1.008  0.990/1.009  1.006/1.005
 *     2^28   0.991/1.000  0.991/1.001  0.991/1.001         0.992/1.003  0.991/1.002  1.008/1.005
 *
 * Whoever works on 45 MB afterwards is 12 % slower with nothing demoted, 1.3 % with 16, 0.4 % with 24 and with 30, on
 * the same stream and on another one. Below 2^24 the reader of c loses what the addition gains; 1024 threads make both
 * together no faster, but are what gains 1 % at 2^26. Additions queued one behind the other, with nothing between them,
 * gain nothing at 2^24: plain 48.7 us, as torch's and Triton's kernels; evict_last with 16 and 30 demoted 49.1
 * and 49.8. Up to 2^20, 128 and 256 threads are alike and 512 up to 3 % behind; 32-bit indices, two vectors a thread
 * and no code for a tail at all gain nothing there. */
static const struct recipe hopper[] = {
    {0, 256, LOADS_PLAIN, 0},
    {256 * MIB, 768, LOADS_EVICT_LAST, 30},
    {512 * MIB, 1024, LOADS_EVICT_LAST, 24},
    {2048 * MIB, 768, LOADS_EVICT_LAST, 24},
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
