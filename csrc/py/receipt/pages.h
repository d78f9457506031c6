/* Zeroed memory for tables. It is not malloc's: a table in the heap would move the arrays that the program makes next,
 * and a sum whose address agrees with an operand's in its last twelve bits takes up to twice as long. */
#ifndef VECADD_PY_RECEIPT_PAGES_H
#define VECADD_PY_RECEIPT_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* NULL where there is no memory. */
static inline void *
pages_new(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

/* `pages` may be NULL. */
static inline void
pages_free(void *pages, size_t bytes)
{
    if (pages)
        munmap(pages, bytes);
}

#endif
