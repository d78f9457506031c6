/* Keeps the one worker of two processors off its caller's when it is woken. Linux may choose that one though the other
 * idles: in a virtual machine an idle processor that its hypervisor has stopped does not count as free. The worker then
 * waits for its caller to pause, or interrupts it. On two processors of an EPYC that befell 11 of 14 series of sums;
 * kept off, 2^18 float32 took 18 us in place of 39. Several workers lose less by one that comes late, and two system
 * calls for each made a sum after a pause 10 to 30 % longer on four, eight and sixteen cores of Sapphire Rapids. */
#ifndef VECADD_HOST_CALLERS_CPU_H
#define VECADD_HOST_CALLERS_CPU_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* The processors that one worker may run on. Its waker's while it sleeps, its own while it is awake. */
struct kept_off {
    bool is_kept;
    cpu_set_t usual, others; /* `others` are the usual ones but for its caller's */
};

/* Takes `cpu` from the processors of a thread that sleeps. Without effect where no other is left, or the system
 * refuses. */
void callers_cpu_keep_off(struct kept_off *kept, pthread_t thread, int cpu);

/* Gives the calling thread its usual processors again, unless the program has chosen others meanwhile. */
void callers_cpu_allow(struct kept_off *kept);

#endif
