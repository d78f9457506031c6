/* vecadd.add for the rest of the module. */
#ifndef VECADD_ADD_H
#define VECADD_ADD_H

#include "module.h"
#include "plan.h"

/* Runs a plan, without the GIL where that pays or it may wait, and reports floating-point flags as NumPy does. Returns
 * 0, or -1 with an exception set. */
int add_run(struct module_state *state, const struct plan *plan);

/* add(a, b, out=out) without any keyword; out may be NULL. A new reference, or NULL with an exception set. */
PyObject *add_objects(struct module_state *state, PyObject *a, PyObject *b, PyObject *out);

#endif
