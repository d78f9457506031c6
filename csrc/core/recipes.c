#include "recipes.h"

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
recipes_for(int capability, size_t l2)
{
    int i = 0;
    while (tables[i].capability != 0 && tables[i].capability != capability)
        i++;
    return (struct recipes){tables[i].row, tables[i].count, tables[i].capability != 0, l2};
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
