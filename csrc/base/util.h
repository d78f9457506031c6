/* Small helpers: the smaller of two sizes, the clock, signals. */
#ifndef VECADD_BASE_UTIL_H
#define VECADD_BASE_UTIL_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

static inline size_t
smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t
larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The host's monotonic clock. */
static inline double
now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline long long
now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Blocks signals in the calling thread, and so in those that it starts, until *before is its mask again. Signals to the
 * process are for the application's threads: one that our thread took would not wake a main thread that waits for it.
 * Faults (SIGSEGV and the like) are not blocked: the kernel raises them in the thread that causes them, and kills the
 * process if that thread blocks them, so that the application's handler, which may print a traceback or map the page,
 * would not run. */
static inline void
signals_block(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, before);
}

#endif
