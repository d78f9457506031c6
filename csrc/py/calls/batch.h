/* From lists of arrays to one piece of work: many.c does what add_many does before it computes, many_run.c computes. */
#ifndef VECADD_PY_CALLS_BATCH_H
#define VECADD_PY_CALLS_BATCH_H

#include "gpu/graph.h"
#include "py/calls/batch_call.h"

/* What add_many was given. Borrowed; out and stream are NULL where they are not. */
struct batch_arguments {
    PyObject *xs, *ys, *out, *stream;
};

/* Looks at every pair, chooses the stream, and makes the sums that have no out. Returns 0, and many_clear() is due; or
 * -1 with an exception set that begins with the pair it is about, and nothing written. */
int batch_prepare(struct module_state *state, const struct batch_arguments *arguments, struct batch_call *call);

/* What is queued on the device: it points into the call. */
struct device_batch batch_of_call(const struct batch_call *call);

/* Adds; may be repeated where every pair has an out. `module` is ours; `graph` is of batch_of_call, or NULL. Returns 0,
 * or -1 with an exception set. */
int batch_run(PyObject *module, struct batch_call *call, struct graph *graph);

/* Tells the arrays' libraries of the call's stream where one of them works on another. Returns 0, or -1 with an
 * exception set. */
int batch_record(struct module_state *state, const struct batch_call *call);

void batch_clear(struct batch_call *call);

#endif
