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
#include "base/status.h"
#include "py/base/kept_sums.h"

/* Attribute and keyword names, interned once: a keyword's name is then compared by its address. */
#define EACH_NAME(X)                                                                                                   \
    X(OUT, "out")                                                                                                      \
    X(DEVICE, "device")                                                                                                \
    X(STREAM, "stream")                                                                                                \
    X(DTYPE, "dtype")                                                                                                  \
    X(ARRAY_UFUNC, "__array_ufunc__")                                                                                  \
    X(CUDA_ARRAY_INTERFACE, "__cuda_array_interface__")                                                                \
    X(CUDA_STREAM, "cuda_stream")                                                                                      \
    X(CUDA_STREAM_PROTOCOL, "__cuda_stream__")                                                                         \
    X(DLPACK, "__dlpack__")                                                                                            \
    X(DLPACK_DEVICE, "__dlpack_device__")                                                                              \
    X(PTR, "ptr")                                                                                                      \
    X(HANDLE, "handle")                                                                                                \
    X(C_CONTIGUOUS, "_c_contiguous")                                                                                   \
    X(DATA, "data")                                                                                                    \
    X(SHAPE, "shape")                                                                                                  \
    X(NDIM, "ndim")                                                                                                    \
    X(SIZE, "size")                                                                                                    \
    X(MEM, "mem")                                                                                                      \
    X(DEVICE_ID, "device_id")                                                                                          \
    X(REQUIRES_GRAD, "requires_grad")                                                                                  \
    X(IS_CONJ, "is_conj")                                                                                              \
    X(IS_NEG, "is_neg")                                                                                                \
    X(VERSION, "_version")                                                                                             \
    X(CURRENT_LEVEL, "_current_level")                                                                                 \
    X(BASE, "_base")

#define NAME_OF(ID, text) NAME_##ID,
enum name { EACH_NAME(NAME_OF) NAME_COUNT };
#undef NAME_OF

struct module_state {
    PyObject *numpy_add;
    PyTypeObject *device_array_type;
    PyTypeObject *plan_type;
    PyObject *device_lost_error;
    PyObject *names[NAME_COUNT];
    _Atomic(PyObject *) library_of; /* vecadd.interop.library_of, imported when first needed */
    PyObject *libraries;            /* what operands/library.c has read of each Library */
    PyObject *kinds;                /* types of arrays, and what operands/torch.c or cupy.c knows of each */
    PyObject *output_handler;       /* for NumPy, made by calls/result.c */
    struct kept_sums kept_sums;     /* what calls/result.c knows of the last ones */
    /* operands/dtypes.c's table: one more than the sum's dtype, 0 until asked for. */
    _Atomic signed char promoted[DTYPE_COUNT + 3][DTYPE_COUNT + 3];
    _Atomic int ml_type_num[ML_DTYPES]; /* NumPy's numbers of ml_dtypes' types; 0 until ml_dtypes is imported */
};

PyTypeObject *device_array_make_type(PyObject *module);
PyTypeObject *plan_make_type(PyObject *module);

/* Called once, before any use of NumPy. Returns 0, or -1 with an exception set. */
int numpy_api_import(void);

/* A local variable whose reference is given up where it goes out of scope, by whatever return; NULL owns nothing. */
#define OWNED __attribute__((cleanup(give_up)))

static inline void
give_up(void *variable)
{
    PyObject *object;
    __builtin_memcpy(&object, variable, sizeof object); /* of type PyObject *, PyArrayObject * or PyArray_Descr * */
    Py_XDECREF(object);
}

/* The reference of an OWNED variable, which no longer has it. */
static inline PyObject *
hand_out(PyObject **variable)
{
    PyObject *object = *variable;
    *variable = NULL;
    return object;
}

/* 1 with a new reference, 0 after an AttributeError, or -1 with an exception set. */
int optional_attribute(PyObject *object, PyObject *name, PyObject **value);

/* 1, 0 (after whatever clear_refusal() clears), or -1 with an exception set. PyObject_HasAttr would clear any. */
int has_attribute(PyObject *object, PyObject *name);

/* What the module has of that name, imported. A new reference, or NULL with an exception set. */
PyObject *imported(const char *module, const char *name);

/* Imports the module and calls its function; `format` is Py_BuildValue's, of a tuple. A new reference, or NULL with an
 * exception set. */
PyObject *call_imported(const char *module, const char *function, const char *format, ...);

/* Clears an exception by which Python code or a library says that it cannot do what it was asked for: AttributeError,
 * BufferError, OverflowError, RuntimeError, TypeError or ValueError. Any other one stays set, as KeyboardInterrupt,
 * SystemExit, MemoryError and what a signal's handler raises. Returns 0 if no exception is set now, else -1. */
int clear_refusal(void);

/* PyErr_Format for functions that return an int: always returns -1. The format is ASCII, with "%%" for a percent sign.
 */
int refuse(PyObject *exception, const char *format, ...);

/* Sets the exception of status->code, with its text. Always returns NULL. */
void *status_raise(const struct module_state *state, const struct status *status);

static inline int
fail_with(const struct module_state *state, const struct status *status)
{
    status_raise(state, status);
    return -1;
}

/* The value of an expression that is evaluated without the GIL: of what waits, or takes long. */
#define WITHOUT_GIL(expression)                                                                                        \
    __extension__({                                                                                                    \
        PyThreadState *released_ = PyEval_SaveThread();                                                                \
        const __typeof__(expression) value_ = (expression);                                                            \
        PyEval_RestoreThread(released_);                                                                               \
        value_;                                                                                                        \
    })

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

/* The list with one more item, or the dict with this value. Take both references, of which either may be NULL after an
 * error; NULL with an exception set. A value that takes Python code is made after a look at the list: an exception may
 * be set. */
PyObject *list_with(PyObject *list, PyObject *item);
PyObject *dict_with(PyObject *dict, const char *name, PyObject *value);

enum { MAX_DIMENSIONS = 64 }; /* of an array, as in NumPy 2 */

PyObject *tuple_of_sizes(int ndim, const Py_ssize_t *sizes);

/* Reads a tuple of at most MAX_DIMENSIONS ints; returns how many, or -1 with an exception that begins with `what`. */
int sizes_of_tuple(PyObject *tuple, const char *what, Py_ssize_t *sizes);

#endif
