/* Everything that lives as long as the process, in one struct; each part belongs to the file that its comment names. */
#ifndef VECADD_BASE_RUNTIME_H
#define VECADD_BASE_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>

struct thread_pool;
struct device_table;
struct transfer_ring;

struct runtime {
    struct thread_pool *_Atomic threads;  /* threads.c: made on first use, forgotten in a forked child */
    struct device_table *_Atomic devices; /* device.c: one entry a device, made on first use */
    struct transfer_ring *ring;           /* transfer.c */
    atomic_bool cuda_started;             /* device.c: this process has made a CUDA call that initialises */
    atomic_bool forked_after_cuda;        /* runtime.c: set in a child of such a process */
    atomic_bool shut_down;                /* runtime.c: set at exit; no CUDA call is made from then on */
};

extern struct runtime runtime;

/* Registers the fork and exit handlers, once; cheap to call again. No CUDA call, no thread started. */
void runtime_start(void);

/* Whether a CUDA call may be made from here: not in a forked child of a process that used CUDA, not after shutdown. */
bool runtime_cuda_usable(void);

/* What a part of the library does in a forked child, which has none of the parent's threads and may have its locks held
 * for ever, and at the end of the process. Either may be NULL. */
struct runtime_hooks {
    void (*in_forked_child)(bool used_cuda); /* whether the parent had used CUDA, which the child then cannot */
    void (*at_exit)(void);
    struct runtime_hooks *next;
};

/* For constructors, which run before any thread: no call pays for it, and no order of first calls matters. The hooks
 * are the library's for as long as it is loaded. */
void runtime_register(struct runtime_hooks *hooks);

#endif
