/* Operands whose memory must not be used for anything else before the GPU is done with it.
 *
 * PyTorch looks after its memory itself, once it is told of a stream that it does not work on.
 *
 * A DLPack tensor goes back to its owner by a call that orders nothing: JAX would give the memory to its next result
 * while our kernel still reads it. So its owner is held until an event behind the kernel has been reached. Every later
 * addition on a GPU asks for it, and so do release(), memory_stats() and Python itself once a sum of ours that another
 * library has adopted is dropped; no thread waits. */
#ifndef VECADD_PY_CALLS_DEFERRED_RELEASE_H
#define VECADD_PY_CALLS_DEFERRED_RELEASE_H

#include "py/calls/prepare.h"

/* Once, when the module is made: the list outlives forks. */
void deferred_release_start(void);

/* Holds the lent operands of a call whose work is queued on its plan's stream; lets go of what is done by now. Without
 * any it costs one look at a counter. */
void defer_release_of_operands(const struct prepared_call *call);

/* The same for a plan that goes, in any thread, and whose runs may be of other threads. */
void defer_release_of_plan(const struct prepared_call *call);

/* Tells the operands' libraries of the plan's stream where they work on another one. Returns 0, or -1 with an exception
 * set. */
int record_operands(const struct prepared_call *call);

/* The same for what is in a list or tuple: tensors that work queued on `stream` uses, and anything else, which is
 * passed over. */
int record_objects(struct module_state *state, PyObject *objects, void *stream);

/* Lets go of what is done by now, and gives blocks back that could not be before. May run Python code, and give the GIL
 * up meanwhile. */
void deferred_release_sweep(void);

/* Has Python's main thread do it soon: for deleters, in any thread, with or without the GIL. */
void deferred_release_sweep_soon(void);

#endif
