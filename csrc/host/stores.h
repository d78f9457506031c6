/* Chooses streaming or ordinary stores for several threads by what earlier calls of that size took with each. Sizes do
 * not tell whether a cache holds the arrays: a virtual machine overstates its caches, other programs use them too, and
 * a program adds the same arrays again or others. Any thread may call these; they take no lock. */
#ifndef VECADD_HOST_STORES_H
#define VECADD_HOST_STORES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the next job, which writes so many bytes, elsewhere than the last one where it `moves` (sum_moves.h), is to
 * use streaming stores: the quicker ones, or now and then the others where they may be quicker. */
bool stores_choose_streaming(size_t bytes, bool moves);

/* The same for a job whose time is not noted: without trying the others. */
bool stores_prefer_streaming(size_t bytes, bool moves);

/* The job took so long with these stores, its workers all being awake. */
void stores_note(size_t bytes, bool moves, bool streaming, long long ns);

/* Forgets all that was noted: for tests. */
void stores_forget(void);

#endif
