/* Keeps operands alive until the GPU is done with their memory.
 *
 * PyTorch does this itself, once told of each stream that uses its memory.
 *
 * The owner of a DLPack tensor frees it by a call that orders nothing: JAX would reuse the memory for its next result
 * while our kernel still reads it. So the owner is kept until an event after the kernel has been reached. Every later
 * addition on a GPU checks the event, and so do release(), memory_stats() and, once another library drops a sum of ours
 * that it adopted, Python itself. No thread waits for it. */
#ifndef VECADD_PY_CALLS_DEFERRED_RELEASE_H
#define VECADD_PY_CALLS_DEFERRED_RELEASE_H

#include "py/calls/prepare.h"

/* Called once, when the module is made: the list outlives forks. */
void deferred_release_start(void);

/* Keeps the operands of a call that need it alive until its work, queued on the plan's stream, is done, and releases
 * those of finished calls. Without any it costs reading a counter. */
void defer_release_of_operands(const struct prepared_call *call);

/* Keeps them alive for a plan that is being closed, in any thread, after runs in any thread. Waits for the GPU where
 * the plan's stream is not kept, and may be gone. */
void defer_release_of_plan(const struct prepared_call *call, bool stream_is_kept);

/* Tells the operands' libraries of the plan's stream where they work on another. Returns 0, or -1 with an exception
 * set. */
int record_operands(const struct prepared_call *call);

/* Tells the libraries of a list's or tuple's objects that work queued on `stream` uses them; skips objects of none. */
int record_objects(struct module_state *state, PyObject *objects, void *stream);

/* Releases the owners whose work is done, makes the deferred drops of blocks, and releases the owners of streams
 * without users. May run Python code and release the GIL meanwhile. */
void deferred_release_sweep(void);

/* Has Python's main thread call deferred_release_sweep soon: for deleters, in any thread, with or without the GIL. */
void deferred_release_sweep_soon(void);

#endif
