/* What vecadd.interop knows of an array library beyond __cuda_array_interface__: a row of its table, for C. */
#ifndef VECADD_PY_OPERANDS_INTEROP_H
#define VECADD_PY_OPERANDS_INTEROP_H

#include <stdbool.h>

#include "base/addition.h"
#include "py/base/python.h"
#include "py/operands/operand_from.h"

/* Whether add takes this operand, to add or to refuse it: 1, 0 or -1. Operators leave all others to the object's own
 * operator. */
int interop_is_operand(struct module_state *state, PyObject *object);

/* A new reference to the library of the object's type, NULL where vecadd knows none. Returns 0, or -1 with an exception
 * set. */
int interop_library(struct module_state *state, PyObject *object, PyObject **library);

/* Finds the object to read the array interface from: `object` itself, or its library's export of it. Returns 1 with new
 * references (*library may be NULL), 0 where the object is not in device memory, -1 with an exception set; or
 * DEVICE_OPERAND_LEFT, with *library alone, where only the library itself can add the object. */
int interop_export(struct module_state *state, PyObject *object, bool writing, PyObject **library, PyObject **exported);

/* The library's current stream on `device`: 1, 0 where the library has none (or is NULL), or -1. */
int interop_current_stream(PyObject *library, int device, void **stream);

/* A new reference to what the library's __dlpack__ takes for stream= to order nothing; without a library: DLPack's -1.
 * NULL with an exception set. */
PyObject *interop_no_order(PyObject *library);

/* Whether a flag of the Library class is set: 1, 0 (also without a library) or -1. */
int interop_says(PyObject *library, const char *flag);

/* Whether the library's interface has this dtype of ml_dtypes, by name, where it gives only a size: 1, 0 (also without
 * a library) or -1. */
int interop_void_is(PyObject *library, const char *dtype);

/* The memory order of the library's own sums (NULL: NumPy's). Returns 0, or -1 with an exception set. */
int interop_order(PyObject *library, enum order_rule *rule);

/* The dtype's name by the library's own rules for a + b, of which one may be a number; a new reference to None where
 * the library follows NumPy's rules. */
PyObject *interop_result_dtype(PyObject *library, PyObject *a, PyObject *b);

/* A new array of the library of `exported`, which may be written in the order of `stream` (NULL: the library's current
 * stream); a new reference to None where the library makes none. `shape`, a tuple, and `dtype`, a name, are NULL if as
 * those of `exported`; `axes` has the largest stride's axis first, None for C order. */
PyObject *interop_empty_like(PyObject *library, PyObject *exported, PyObject *stream, PyObject *shape,
                             const char *dtype, PyObject *axes);

/* Finds the library whose arrays on the host a call's operands are: at least one of a and b, the other possibly a
 * Python number, and any `out`. Returns 1 with a new reference, 0, or -1 with an exception set. */
int interop_host_library(struct module_state *state, PyObject *const objects[ROLE_COUNT], PyObject **library);

/* Raises the RuntimeError of an array that only its library can add, for those who want its memory. Returns -1. */
int interop_refuse(PyObject *library, PyObject *object, bool writing);

/* Tells the library that work queued on `stream` uses the array, if the library has to know. Returns 0, or -1. */
int interop_record_stream(PyObject *library, PyObject *exported, void *stream);

/* Tells the library that `arrays`, a tuple or a list, were written; `count_writes` is the written operand's. Returns 0,
 * or -1. */
int interop_written(PyObject *count_writes, PyObject *arrays);

/* Turns a sum made as a DeviceArray, its kernel queued, into an array of the library if that adopts sums; else returns
 * the sum. Takes the reference to `sum`; NULL with an exception set. */
PyObject *interop_adopt(PyObject *library, PyObject *sum);

#endif
