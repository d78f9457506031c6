#include "host/huge_pages.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "host/output_pool.h"
#include "host/threads.h"

#ifndef MADV_POPULATE_WRITE /* C libraries older than Linux 5.14 do not name it */
#define MADV_POPULATE_WRITE 23
#endif

struct backing {
    struct huge_pages pages;
    bool callers_done; /* the caller has faulted in its page */
};

static void
back_page(void *context, size_t begin, size_t end, int worker)
{
    struct backing *backing = context;
    (void)end;
    if (worker == 0 && backing->callers_done)
        return;
    madvise(backing->pages.first + begin * HUGE_PAGE, HUGE_PAGE, MADV_POPULATE_WRITE);
    if (worker == 0)
        backing->callers_done = true;
}

void
huge_pages_back(struct huge_pages pages)
{
    struct backing backing = {pages, false};
    if (pages.count > 0)
        threads_run(threads_available(), pages.count, 1, back_page, &backing);
}

static void __attribute__((constructor)) register_with_pool(void)
{
    output_pool_back_pages_by(huge_pages_back);
}
