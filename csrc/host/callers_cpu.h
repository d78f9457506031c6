/* Keeps the one worker of two processors off its caller's when it is woken. Linux may choose that one though the other
 * idles: in a virtual machine an idle processor that its hypervisor has stopped does not count as free. The worker then
 * waits for its caller to pause, or interrupts it. On two processors of an EPYC that befell 11 of 14 series of sums;
 * kept off, 2^18 float32 took 18 us in place of 39. Several workers lose less by one that comes late, and two system
 * calls for each made a sum after a pause 10 to 30 % longer on four, eight and sixteen cores of Sapphire Rapids. */
#ifndef VECADD_HOST_CALLERS_CPU_H
#define VECADD_HOST_CALLERS_CPU_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* The processors that a worker may run on. Its caller's while it is WAKING (thread_pool.h); afterwards whoever takes
 * `is_kept` may read the sets. */
struct kept_off {
    atomic_bool is_kept;
    cpu_set_t usual, others; /* `others` are the usual ones but for its caller's */
};

/* Leaves a thread that may run on two processors the one that is not `cpu`. Without effect on any other thread, and
 * where the system refuses. */
void callers_cpu_keep_off(struct kept_off *kept, pthread_t thread, int cpu);

/* Gives the thread its usual processors again if it has not got them yet, unless the program has chosen others
 * meanwhile. */
void callers_cpu_allow(struct kept_off *kept, pthread_t thread);

#endif
