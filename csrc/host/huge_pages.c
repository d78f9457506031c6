#include "host/huge_pages.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "base/min_max.h"
#include "base/now.h"
#include "host/threads.h"

#ifndef MADV_POPULATE_WRITE /* C libraries older than Linux 5.14 do not name it */
#define MADV_POPULATE_WRITE 23
#endif

enum {
    LEFT = 64, /* batches in a row, where batches took longer than the caller alone would have */
    /* What earlier batches have saved makes up for a wait now and then, so much at most, and at first. */
    SAVED_NS = 10000000,
};

struct backing {
    struct huge_pages pages;
    long long callers_ns; /* what its page took the caller; 0: it has faulted in none */
};

static atomic_int left; /* batches that are still left to the threads that write */
static atomic_llong saved_ns = SAVED_NS;

static void
back_page(void *context, size_t begin, size_t end, int worker)
{
    struct backing *backing = context;
    (void)end;
    if (worker == 0 && backing->callers_ns)
        return;
    const long long began = now_ns();
    madvise(backing->pages.first + begin * HUGE_PAGE, HUGE_PAGE, MADV_POPULATE_WRITE);
    if (worker == 0)
        backing->callers_ns = now_ns() - began + 1;
}

/* A batch took so much less than the caller alone would have, or more where it is below 0. */
static void
note_saved(long long ns)
{
    long long sum = atomic_load_explicit(&saved_ns, memory_order_relaxed) + ns;
    if (sum < 0) {
        atomic_store_explicit(&left, LEFT, memory_order_relaxed);
        sum = 0;
    }
    atomic_store_explicit(&saved_ns, sum < SAVED_NS ? sum : SAVED_NS, memory_order_relaxed);
}

void
huge_pages_back(struct huge_pages pages)
{
    if (pages.count == 0)
        return;
    if (atomic_load_explicit(&left, memory_order_relaxed) > 0) {
        atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed);
        return;
    }
    struct backing backing = {pages, 0};
    const long long began = now_ns();
    threads_run_all((int)smaller((size_t)threads_available(), pages.count), pages.count, 1, back_page, &backing);
    if (backing.callers_ns)
        note_saved((long long)pages.count * backing.callers_ns - (now_ns() - began));
}

void
huge_pages_forget(void)
{
    atomic_store(&left, 0);
    atomic_store(&saved_ns, SAVED_NS);
}
