/* The pool's workers: threads that spin and then sleep until a job has a part for them (thread_pool.h). Their callers
 * own the pool. */
#ifndef VECADD_HOST_WORKERS_H
#define VECADD_HOST_WORKERS_H

#include <stdbool.h>

#include "host/thread_pool.h"

/* Starts worker `number`, awake. Returns false where the system gives no thread. */
bool worker_start(struct thread_pool *pool, int number);

/* Wakes all workers that have a part. */
void workers_wake(struct thread_pool *pool);

/* Runs blocks of the open job as the thread with that part, until none is left to take. `keeps` as the job's. */
void workers_run(struct thread_pool *pool, int part, bool keeps);

/* Waits while the worker is inside the job of that number. */
void worker_wait_until_out(struct worker *worker, unsigned number);

/* A job ended then: a caller that lacks workers learns by this when the last one did. Any thread may call it. */
void workers_note_end(struct thread_pool *pool, long long when);

/* Has the workers run on these processors. */
void workers_follow(struct thread_pool *pool, const cpu_set_t *mask);

/* Ends all workers and waits until the system no longer counts them. */
void workers_stop(struct thread_pool *pool);

#endif
