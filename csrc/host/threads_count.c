#include "host/threads_count.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/cpus.h"

static atomic_int usable, available; /* 0: not determined yet */

static _Thread_local bool stays_alone;

int
threads_usable_cpus(void)
{
    int count = atomic_load_explicit(&usable, memory_order_relaxed);
    if (count == 0) {
        count = cpus_usable();
        atomic_store_explicit(&usable, count, memory_order_relaxed);
    }
    return count;
}

int
threads_available(void)
{
    int count = atomic_load_explicit(&available, memory_order_relaxed);
    if (count == 0) {
        const char *wish = getenv("VECADD_NUM_THREADS");
        char *end = NULL;
        const long number = wish ? strtol(wish, &end, 10) : 0;
        count = number > 0 && *end == '\0' ? (number < THREADS_MAX ? (int)number : THREADS_MAX) : threads_usable_cpus();
        atomic_store_explicit(&available, count, memory_order_relaxed);
    }
    return count;
}

void
threads_count_forget(void)
{
    atomic_store(&usable, 0);
    atomic_store(&available, 0);
}

void
threads_set_alone(bool alone)
{
    stays_alone = alone;
}

bool
threads_alone(void)
{
    return stays_alone;
}
