/* The Plan of lists of arrays: add_many, checked once. */
#ifndef VECADD_PY_CALLS_PLAN_BATCH_H
#define VECADD_PY_CALLS_PLAN_BATCH_H

#include "py/calls/arguments.h"

struct many_plan;

/* Whether plan's arguments are lists of arrays, lists or tuples all three, and not arrays. */
bool many_plan_meant(const struct add_arguments *arguments);

/* A new one, to be closed; NULL with an exception set. `module` is ours. */
struct many_plan *many_plan_open(PyObject *module, const struct add_arguments *arguments);

/* Adds. A new reference to the list of the sums, or NULL with an exception set. */
PyObject *many_plan_run(struct many_plan *plan, PyObject *module);

/* "device" or "host"; how many pairs. */
const char *many_plan_route(const struct many_plan *plan);
Py_ssize_t many_plan_count(const struct many_plan *plan);

int many_plan_traverse(const struct many_plan *plan, visitproc visit, void *arg);

/* Takes NULL. */
void many_plan_close(struct many_plan *plan);

#endif
