/* explain_route's account of the choice between the host and the GPU. */
#ifndef VECADD_PY_CALLS_ROUTE_FACTS_H
#define VECADD_PY_CALLS_ROUTE_FACTS_H

#include <stdbool.h>

#include "base/plan.h"
#include "py/base/python.h"

/* Adds "reason", "memory", "predicted" and, after a failure, "failure" to the dict that explains a plan of host
 * operands. `asked`: the caller named the device. Returns 0, or -1 with an exception set. */
int route_facts_add(PyObject *dict, const struct plan *plan, bool asked);

#endif
