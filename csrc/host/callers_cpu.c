#include "host/callers_cpu.h"

#include <stdbool.h>

void
callers_cpu_keep_off(struct kept_off *kept, pthread_t thread, int cpu)
{
    if (cpu < 0 || cpu >= CPU_SETSIZE || pthread_getaffinity_np(thread, sizeof kept->usual, &kept->usual) != 0)
        return;
    kept->others = kept->usual;
    CPU_CLR((unsigned)cpu, &kept->others);
    if (CPU_COUNT(&kept->usual) == 2 && CPU_COUNT(&kept->others) == 1 &&
        pthread_setaffinity_np(thread, sizeof kept->others, &kept->others) == 0)
        atomic_store(&kept->state, KEPT);
}

/* True: this thread is the one that ends the keeping, and has made it `next`. */
static bool
end_keeping(struct kept_off *kept, enum keeping next)
{
    unsigned expected = KEPT;
    return atomic_load_explicit(&kept->state, memory_order_relaxed) == KEPT &&
           atomic_compare_exchange_strong(&kept->state, &expected, next);
}

void
callers_cpu_allow(struct kept_off *kept, pthread_t thread)
{
    cpu_set_t now;
    if (!end_keeping(kept, KEPT_RESTORING))
        return;
    if (pthread_getaffinity_np(thread, sizeof now, &now) == 0 && CPU_EQUAL(&now, &kept->others))
        pthread_setaffinity_np(thread, sizeof kept->usual, &kept->usual);
    atomic_store(&kept->state, KEPT_NOT);
}

void
callers_cpu_set_mask(struct kept_off *kept, pthread_t thread, const cpu_set_t *mask)
{
    if (!end_keeping(kept, KEPT_NOT))
        while (atomic_load(&kept->state) == KEPT_RESTORING) /* two system calls of the worker's */
            sched_yield();
    pthread_setaffinity_np(thread, sizeof *mask, mask);
}
