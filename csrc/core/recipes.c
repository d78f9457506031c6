#include "recipes.h"

#define MIB ((size_t)1 << 20)

/* Compute capability 9.0: an H200, buffers rotating, nothing flushed; us by 256 threads, by 768, by 768 and evict_last,
 * float32. 2^20: 7.87, 7.90, 7.97. 2^22: 16.67, 16.38, 16.38. 2^24: 50.53, 50.02, 49.34. 2^28: 734.0, 731.0, 721.0.
 * Demoting 16 MB of each input, 16 sixtieths of the 60 MB, costs nothing (720.6) and leaves 1 % of the 7 % that work on
 * another 45 MB is slower by after evict_last. */
static const struct recipe hopper[] = {
    {0, 256, LOADS_PLAIN, 0},
    {32 * MIB, 768, LOADS_PLAIN, 0},
    {96 * MIB, 768, LOADS_EVICT_LAST, 16},
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
