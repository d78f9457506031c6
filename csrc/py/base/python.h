/* What every file of csrc/py includes: Python's and NumPy's C APIs, the module's state, and what all files ask of them:
 * optional attributes, exceptions, keywords, tuples of sizes. */
#ifndef VECADD_PY_BASE_PYTHON_H
#define VECADD_PY_BASE_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define PY_ARRAY_UNIQUE_SYMBOL vecadd_array_api
#define PY_UFUNC_UNIQUE_SYMBOL vecadd_ufunc_api
#ifndef VECADD_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include "base/dtype.h"
#include "base/fpflags.h"
#include "base/status.h"
#include "py/base/kept_sums.h"

/* Attribute and keyword names, interned once: a keyword's name is then compared by its address. */
enum name {
    NAME_OUT,
    NAME_DEVICE,
    NAME_STREAM,
    NAME_DTYPE,
    NAME_ARRAY_UFUNC,
    NAME_CUDA_ARRAY_INTERFACE,
    NAME_CUDA_STREAM,
    NAME_CUDA_STREAM_PROTOCOL,
    NAME_DLPACK,
    NAME_DLPACK_DEVICE,
    NAME_PTR,
    NAME_HANDLE,
    NAME_C_CONTIGUOUS,
    NAME_DATA,
    NAME_SHAPE,
    NAME_NDIM,
    NAME_SIZE,
    NAME_MEM,
    NAME_DEVICE_ID,
    NAME_REQUIRES_GRAD,
    NAME_IS_CONJ,
    NAME_IS_NEG,
    NAME_VERSION,
    NAME_CURRENT_LEVEL,
    NAME_BASE,
    NAME_COUNT
};

struct module_state {
    PyObject *numpy_add;
    PyTypeObject *device_array_type;
    PyTypeObject *host_limit_type;
    PyTypeObject *plan_type;
    PyObject *device_lost_error;
    PyObject *names[NAME_COUNT];
    _Atomic(PyObject *) library_of; /* vecadd.interop.library_of, imported when first needed */
    PyObject *output_handler;       /* for NumPy, made by calls/result.c */
    struct kept_sums kept_sums;     /* what calls/result.c knows of the last ones */
    /* What operands/cupy.c knows of CuPy, in a capsule that the first thread to meet CuPy stores for good; NULL until
     * then. */
    _Atomic(const struct cupy_kind *) cupy;
    _Atomic(PyObject *) cupy_owner;
    PyObject *torch_kinds; /* types of tensors, and what operands/torch.c knows of each */
    /* operands/promotion.c's table: one more than the sum's dtype, 0 until asked for. */
    _Atomic signed char promoted[DTYPE_COUNT + 3][DTYPE_COUNT + 3];
    _Atomic int ml_type_num[ML_DTYPES]; /* NumPy's numbers of ml_dtypes' types; 0 until ml_dtypes is imported */
};

PyTypeObject *device_array_make_type(PyObject *module);
PyTypeObject *host_limit_make_type(PyObject *module);
PyTypeObject *plan_make_type(PyObject *module);

/* Called once, before any use of NumPy. Returns 0, or -1 with an exception set. */
int numpy_api_import(void);

/* 1 with a new reference, 0 after an AttributeError, or -1 with an exception set. */
int optional_attribute(PyObject *object, PyObject *name, PyObject **value);

/* 1, 0 (after whatever clear_refusal() clears), or -1 with an exception set. PyObject_HasAttr would clear any. */
int has_attribute(PyObject *object, PyObject *name);

/* Imports the module and calls its function; `format` is Py_BuildValue's, of a tuple. A new reference, or NULL with an
 * exception set. */
PyObject *call_imported(const char *module, const char *function, const char *format, ...);

/* Clears an exception by which Python code or a library says that it cannot do what it was asked for: AttributeError,
 * BufferError, OverflowError, RuntimeError, TypeError or ValueError. Any other one stays set, as KeyboardInterrupt,
 * SystemExit, MemoryError and what a signal's handler raises. Returns 0 if no exception is set now, else -1. */
int clear_refusal(void);

/* Sets the exception of status->code, with its text. Always returns NULL. */
void *status_raise(const struct module_state *state, const struct status *status);

/* Warns, raises or calls as np.errstate asks. Returns 0, or -1 with an exception set. */
static inline int
give_floating_errors(unsigned flags)
{
    if (!flags)
        return 0;
    return PyUFunc_GiveFloatingpointErrors("add", (flags & FP_OVERFLOW ? NPY_FPE_OVERFLOW : 0) |
                                                      (flags & FP_INVALID ? NPY_FPE_INVALID : 0) |
                                                      (flags & FP_UNDERFLOW ? NPY_FPE_UNDERFLOW : 0));
}

/* Which of "out", "device" and "stream" a call's keyword is; NAME_COUNT for any other. */
enum name keyword_name(const struct module_state *state, PyObject *keyword);

enum { MAX_DIMENSIONS = 64 }; /* of an array, as in NumPy 2 */

PyObject *tuple_of_sizes(int ndim, const Py_ssize_t *sizes);

/* Reads a tuple of at most MAX_DIMENSIONS ints; returns how many, or -1 with an exception that begins with `what`. */
int sizes_of_tuple(PyObject *tuple, const char *what, Py_ssize_t *sizes);

#endif
