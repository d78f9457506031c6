/* The Plan of lists of arrays: add_many, checked once. */
#ifndef VECADD_PY_CALLS_PLAN_BATCH_H
#define VECADD_PY_CALLS_PLAN_BATCH_H

#include "gpu/add.h"
#include "py/calls/arguments.h"

struct batch_plan;

/* Whether all of plan's arguments are lists or tuples of arrays. */
bool batch_plan_meant(const struct add_arguments *arguments);

/* A new one, which the caller closes; NULL with an exception set. `module` is vecadd._core. */
struct batch_plan *batch_plan_open(PyObject *module, const struct add_arguments *arguments);

/* Adds. A new reference to the list of the sums, or NULL with an exception set. */
PyObject *batch_plan_run(struct batch_plan *plan, PyObject *module);

/* "device" or "host"; the number of pairs. */
const char *batch_plan_route(const struct batch_plan *plan);
Py_ssize_t batch_plan_count(const struct batch_plan *plan);

/* The work that it queues, of device arrays; points into the plan. */
struct device_batch batch_plan_device(const struct batch_plan *plan);

int batch_plan_traverse(const struct batch_plan *plan, visitproc visit, void *arg);

/* Takes NULL. */
void batch_plan_close(struct batch_plan *plan);

#endif
