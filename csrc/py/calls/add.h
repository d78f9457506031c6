/* vecadd.add, for other files of the module. */
#ifndef VECADD_PY_CALLS_ADD_H
#define VECADD_PY_CALLS_ADD_H

#include "base/plan.h"
#include "py/base/python.h"
#include "py/calls/prepare.h"

/* Runs a plan, without the GIL where that pays or the run may wait, and reports floating-point flags as NumPy does.
 * Returns 0, or -1 with an exception set. */
int add_run(struct module_state *state, const struct plan *plan);

/* Bytes of one array from which a single thread adds without the GIL: some 10 us of work. Releasing and retaking the
 * GIL costs 50 ns, and far more where another thread has taken it meanwhile. */
enum { RELEASE_BYTES = 256 * 1024 };

/* Tells out's library that the call's kernel, now queued, writes to it. Returns 0, or -1. */
int count_write(const struct prepared_call *call, PyObject *out);

/* add(a, b, out=out) without any keyword; out may be NULL. A new reference, or NULL with an exception set. */
PyObject *add_objects(struct module_state *state, PyObject *a, PyObject *b, PyObject *out);

/* Calls the library's method(a, b, out, stream), stream a handle or None, for what only it can add. */
PyObject *call_library(struct module_state *state, const char *method, const struct library *library,
                       const struct add_arguments *arguments);

/* Calls function(library, a, b, out, device) of vecadd.interop.host_tensors. */
PyObject *call_host_tensors(const char *function, const struct library *library, const struct add_arguments *arguments);

#endif
