/* Libraries of arrays: what vecadd asks of them through vecadd/interop, read once where it does not change. */
#ifndef VECADD_PY_OPERANDS_LIBRARY_H
#define VECADD_PY_OPERANDS_LIBRARY_H

#include <stdbool.h>

#include "base/addition.h"
#include "py/base/python.h"
#include "py/operands/operands.h"

/* Whether add takes this operand, to add or to refuse it: 1, 0 or -1. Operators leave all others to the object's own
 * operator. */
int add_takes_operand(struct module_state *state, PyObject *object);

/* The library of the object's type, NULL where vecadd knows none. Returns 0, or -1 with an exception set. */
int library_of(struct module_state *state, PyObject *object, const struct library **library);

/* What a fast reader knows of the object's type, borrowed for good; NULL where it does not know it, maybe with an
 * exception set. */
const struct kind *kind_of(const struct module_state *state, PyObject *object);

/* Takes the kind of the object's type, for kind_of. An exception may be set. Returns 0, or -1 with an exception set. */
int kind_keep(struct module_state *state, PyObject *object, struct kind *kind);

static inline bool
library_is(const struct library *library, enum library_flag flag)
{
    return library && library->flags & flag;
}

/* Whether the library's interface has this dtype of ml_dtypes, where it gives only a size. */
static inline bool
library_has_dtype(const struct library *library, enum dtype dtype)
{
    return dtype == DTYPE_BFLOAT16 && library_is(library, LIBRARY_HAS_BFLOAT16);
}

/* The memory order of the library's own sums (NULL: NumPy's). */
static inline enum order_rule
library_order(const struct library *library)
{
    return library_is(library, LIBRARY_SUMS_IN_C_ORDER) ? ORDER_C
           : library_is(library, LIBRARY_SUMS_AS_FIRST) ? ORDER_TORCH
                                                        : ORDER_NUMPY;
}

/* Finds the object to read the array interface from: `object` itself, or its library's export of it. Returns 1 with a
 * new reference (*library may be NULL), 0 where the object is not in device memory, -1 with an exception set; or
 * DEVICE_OPERAND_LEFT, with *library alone, where only the library itself can add the object. */
int library_export(struct module_state *state, PyObject *object, bool writing, const struct library **library,
                   PyObject **exported);

/* The library's current stream on `device`: 1, 0 where the library has none (or is NULL), or -1. */
int library_current_stream(const struct library *library, int device, void **stream);

/* A new array of the library of `exported`, which may be written in the order of `stream` (NULL: the library's current
 * stream); a new reference to None where the library makes none. `shape`, a tuple, and `dtype`, a name, are NULL if as
 * those of `exported`; `axes` has the largest stride's axis first, None for C order. */
PyObject *library_empty_like(const struct library *library, PyObject *exported, PyObject *stream, PyObject *shape,
                             const char *dtype, PyObject *axes);

/* Finds the library whose arrays on the host a call's operands are: at least one of a and b, the other possibly a
 * Python number, and any `out`. Returns 1, 0, or -1 with an exception set. */
int library_of_host_arrays(struct module_state *state, PyObject *const objects[ROLE_COUNT],
                           const struct library **library);

/* Raises the RuntimeError of an array that only its library can add, for those who want its memory. Returns -1. */
int library_refuse(const struct library *library, PyObject *object, bool writing);

/* Tells the library that work queued on `stream` uses the array, if the library has to know. Returns 0, or -1. */
int library_record_stream(const struct library *library, PyObject *exported, void *stream);

/* Whether writes to the library's arrays are counted. */
static inline bool
library_counts_writes(const struct library *library)
{
    return library && library->count_writes;
}

/* Tells a library that counts writes that `arrays`, a tuple or a list, were written. Returns 0, or -1. */
int library_count_writes(const struct library *library, PyObject *arrays);

/* Turns a sum made as a DeviceArray, its kernel queued, into an array of the library if that adopts sums; else returns
 * the sum. Takes the reference to `sum`; NULL with an exception set. */
PyObject *library_adopt(const struct library *library, PyObject *sum);

/* A new reference to the attribute. NULL if it is missing or None, without an exception; NULL with the exception if
 * another one was raised, or was set before the call. */
PyObject *attribute_of(PyObject *object, const char *text);

struct descriptor {
    PyObject *name;   /* owned */
    PyObject *object; /* owned; NULL without a data descriptor: an object's own dict comes first then */
    descrgetfunc get;
};

/* The caller clears it. A type without such a descriptor is no error: the object is then asked by name. Another
 * exception stays set, and one that was set before. */
struct descriptor descriptor_find(PyObject *type, PyObject *name);

void descriptor_clear(struct descriptor *descriptor);

/* The attribute of an object of the type: a new reference, or NULL with an exception set, as for an object of a type
 * with another descriptor of that name. */
static inline PyObject *
descriptor_get(const struct descriptor *descriptor, PyObject *object)
{
    if (!descriptor->get)
        return PyObject_GetAttr(object, descriptor->name);
    return descriptor->get(descriptor->object, object, (PyObject *)Py_TYPE(object));
}

#endif
