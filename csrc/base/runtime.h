/* The library's process-wide state in one struct; each field belongs to the file that its comment names. */
#ifndef VECADD_BASE_RUNTIME_H
#define VECADD_BASE_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>

struct thread_pool;
struct device_table;
struct transfer_ring;

struct runtime {
    struct thread_pool *_Atomic threads;  /* host/threads.c: made on first use, forgotten in a forked child */
    struct device_table *_Atomic devices; /* gpu/device.c: one entry a device, made on first use */
    struct transfer_ring *ring;           /* transfer/transfer.c */
    atomic_bool cuda_started;             /* gpu/device.c: this process has made a CUDA call that initialises CUDA */
    atomic_bool forked_after_cuda;        /* runtime.c: set in a child of such a process */
    atomic_bool shut_down;                /* runtime.c: set at exit; vecadd makes no CUDA call after that */
};

extern struct runtime runtime;

/* Registers the fork and exit handlers, once; cheap to call again. No CUDA call, no thread started. */
void runtime_start(void);

/* Whether a CUDA call may be made: not in a forked child of a process that used CUDA, and not after shutdown. */
bool runtime_cuda_usable(void);

/* What a part of the library does before a fork, in the forked child and at exit. A forked child has none of the
 * parent's threads, and the parent's locks may stay locked for ever. Any hook may be NULL. */
struct runtime_hooks {
    void (*before_fork)(void);               /* in the thread that forks: it must not wait for another thread's lock */
    void (*in_forked_child)(bool used_cuda); /* whether the parent used CUDA; the child then cannot */
    void (*at_exit)(void);
    struct runtime_hooks *next;
};

/* Call it from constructors, which run before any thread: later calls then pay nothing, and their order does not
 * matter. `hooks` stays valid as long as the library is loaded. */
void runtime_register(struct runtime_hooks *hooks);

#endif
