/* Signals of a process are for the application's threads: one that a thread of ours took would not wake up a main
 * thread that waits for it. */
#ifndef VECADD_BASE_SIGNALS_H
#define VECADD_BASE_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/* Blocks signals in the calling thread, and so in those that it starts, until *before is its mask again. Faults stay as
 * they were: the kernel raises them in the thread that makes them, and kills the process where that thread blocks them.
 * The application's handler for them would then not run, which may print a traceback or bring the page. */
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
