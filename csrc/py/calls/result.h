/* The only memory allocated for the caller: sums without an `out`. */
#ifndef VECADD_PY_CALLS_RESULT_H
#define VECADD_PY_CALLS_RESULT_H

#include "py/operands/kept_streams.h"
#include "py/operands/operands.h"

/* A new ndarray. Its memory is from the output pool if it is large, or of medium size in a program that keeps its sums
 * (base/kept_sums.h). `dtype` is borrowed. */
PyObject *host_result(struct module_state *state, PyArray_Descr *dtype, int ndim, const npy_intp shape[], bool fortran);

/* One with a's dtype, shape and memory order, for a contiguous `a`; its address goes to *data. */
static inline PyObject *
host_result_like(struct module_state *state, PyObject *a, void **data)
{
    PyArrayObject *like = (PyArrayObject *)a;
    PyObject *sum =
        host_result(state, PyArray_DESCR(like), PyArray_NDIM(like), PyArray_DIMS(like), !PyArray_IS_C_CONTIGUOUS(like));
    if (sum)
        *data = PyArray_DATA((PyArrayObject *)sum);
    return sum;
}

/* PyDataMem_SetHandler without the garbage collector. NumPy's handler is a context variable. Before Python 3.12 the
 * collector may run while CPython sets one: a finalizer that sets another one then, as np.errstate does, frees what
 * CPython reads, and the process dies. */
PyObject *array_handler_set(PyObject *handler);

/* NumPy's capsule (NEP 49) of the output pool's allocator. */
PyObject *output_handler_make(void);

/* The stream that a call's new sums are allocated on. The caller sets all but `found` and `later`, which are filled in
 * for sums that are DeviceArrays; to be cleared. */
struct sum_stream {
    void *stream;
    PyObject *given;          /* the caller's stream=, borrowed; NULL: none */
    PyObject *const *objects; /* the call's operands, or tuples of them: later_stream_find's */
    bool lists;
    bool found; /* whether `later` is known */
    struct later_stream later;
};
void sum_stream_clear(struct sum_stream *stream);

/* A new array of the expected dtype, shape and order, in the library of the operand `like` if that can make one, else a
 * DeviceArray on `device`. It may be written in the order of `stream`. `form` is for callers that make many arrays,
 * else NULL. Its operand, whose shape is `expected`'s own, goes to *result, which the caller clears. It is known from
 * the request; only an array that Python code of the library made is read as an operand. */
PyObject *device_result(struct module_state *state, const struct owned_operand *like,
                        const struct device_shape *expected, int device, struct sum_stream *stream,
                        struct tensor_form *form, struct owned_operand *result);

#endif
