/* vecadd.add for the rest of the module. */
#ifndef VECADD_ADD_H
#define VECADD_ADD_H

#include "module.h"

/* add(a, b, out=out) without any keyword; out may be NULL. A new reference, or NULL with an exception set. */
PyObject *add_objects(struct module_state *state, PyObject *a, PyObject *b, PyObject *out);

#endif
