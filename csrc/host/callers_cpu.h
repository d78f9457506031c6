/* Where the process has two processors, a caller that wakes its one worker takes its own processor out of the worker's
 * affinity mask. Linux may otherwise choose that processor though the other one idles: in a virtual machine an idle
 * processor that the hypervisor has stopped does not count as free. The worker then waits until its caller pauses, or
 * interrupts it. On an EPYC that happened in 11 of 14 series of sums, and 2^18 float32 took 39 us, with the mask 18. On
 * four, eight and sixteen processors of Sapphire Rapids the two system calls for each worker made a sum after a pause
 * 10 to 30 % longer. */
#ifndef VECADD_HOST_CALLERS_CPU_H
#define VECADD_HOST_CALLERS_CPU_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum keeping { KEPT_NOT, KEPT, KEPT_RESTORING };

/* A worker's affinity masks. The caller writes them while the worker is WAKING (threads.c), and then sets KEPT. Worker
 * or caller restores the usual mask: the first thread that changes KEPT to KEPT_RESTORING, and KEPT_NOT afterwards. */
struct kept_off {
    atomic_uint state;       /* enum keeping */
    cpu_set_t usual, others; /* before the wake, and without the caller's processor */
};

/* Takes `cpu` out of the thread's mask if that leaves one processor of two. A refusal by the system is ignored. */
void callers_cpu_keep_off(struct kept_off *kept, pthread_t thread, int cpu);

/* Restores the thread's usual mask, once for each callers_cpu_keep_off. A mask that the program has set in between
 * stays. */
void callers_cpu_allow(struct kept_off *kept, pthread_t thread);

/* Gives the thread that mask, which no callers_cpu_allow of another thread replaces later. */
void callers_cpu_set_mask(struct kept_off *kept, pthread_t thread, const cpu_set_t *mask);

#endif
