#include "host/callers_cpu.h"

void
callers_cpu_keep_off(struct kept_off *kept, pthread_t thread, int cpu)
{
    if (cpu < 0 || cpu >= CPU_SETSIZE || pthread_getaffinity_np(thread, sizeof kept->usual, &kept->usual) != 0)
        return;
    kept->others = kept->usual;
    CPU_CLR((unsigned)cpu, &kept->others);
    kept->is_kept = !CPU_EQUAL(&kept->others, &kept->usual) && CPU_COUNT(&kept->others) > 0 &&
                    pthread_setaffinity_np(thread, sizeof kept->others, &kept->others) == 0;
}

void
callers_cpu_allow(struct kept_off *kept)
{
    const pthread_t self = pthread_self();
    cpu_set_t now;
    if (!kept->is_kept)
        return;
    kept->is_kept = false;
    if (pthread_getaffinity_np(self, sizeof now, &now) == 0 && CPU_EQUAL(&now, &kept->others))
        pthread_setaffinity_np(self, sizeof kept->usual, &kept->usual);
}
