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
        atomic_store(&kept->is_kept, true);
}

void
callers_cpu_allow(struct kept_off *kept, pthread_t thread)
{
    cpu_set_t now;
    if (atomic_load_explicit(&kept->is_kept, memory_order_relaxed) && atomic_exchange(&kept->is_kept, false) &&
        pthread_getaffinity_np(thread, sizeof now, &now) == 0 && CPU_EQUAL(&now, &kept->others))
        pthread_setaffinity_np(thread, sizeof kept->usual, &kept->usual);
}
