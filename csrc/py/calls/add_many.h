/* vecadd.add_many, for plans of lists. */
#ifndef VECADD_PY_CALLS_ADD_MANY_H
#define VECADD_PY_CALLS_ADD_MANY_H

#include "gpu/graph.h"
#include "py/calls/pairs.h"

/* Reads the pairs and makes the sums that have no out. Returns 0, and the caller calls pairs_clear(); or -1 with an
 * exception set that begins with its pair, and nothing written. */
int add_many_prepare(struct module_state *state, const struct add_arguments *arguments, struct pairs *pairs);

/* The work to queue on the device. It points into the pairs. */
struct device_work work_of_pairs(const struct pairs *pairs);

/* Adds; may be repeated where every pair has an out. `module` is vecadd._core; `graph` is of work_of_pairs, or NULL.
 * Returns 0, or -1 with an exception set. */
int add_many_run(PyObject *module, struct pairs *pairs, struct graph *graph);

/* Tells the arrays' libraries of the work's stream where one works on another. Returns 0, or -1 with an exception
 * set. */
int add_many_record(struct module_state *state, const struct pairs *pairs);

#endif
