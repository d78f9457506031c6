/* From lists of arrays to one piece of work: batch.c does what add_many does before it computes, batch_run.c
 * computes. */
#ifndef VECADD_PY_CALLS_BATCH_H
#define VECADD_PY_CALLS_BATCH_H

#include "gpu/graph.h"
#include "py/calls/batch_call.h"

/* The arguments of add_many. Borrowed; out and stream are NULL where not given. */
struct batch_arguments {
    PyObject *xs, *ys, *out, *stream;
    bool plans; /* for a Plan, which keeps no gradient and is not traced */
};

/* Looks at every pair, chooses the stream, and makes the sums that have no out. Returns 0, and the caller calls
 * batch_clear(); or -1 with an exception set that begins with its pair, and nothing written. */
int batch_prepare(struct module_state *state, const struct batch_arguments *arguments, struct batch_call *call);

/* The work to queue on the device. It points into the call. */
struct device_batch batch_of_call(const struct batch_call *call);

/* Adds; may be repeated where every pair has an out. `module` is vecadd._core; `graph` is of batch_of_call, or NULL.
 * Returns 0, or -1 with an exception set. */
int batch_run(PyObject *module, struct batch_call *call, struct graph *graph);

/* Tells the arrays' libraries of the call's stream where one works on another. Returns 0, or -1 with an exception
 * set. */
int batch_record(struct module_state *state, const struct batch_call *call);

void batch_clear(struct batch_call *call);

#endif
