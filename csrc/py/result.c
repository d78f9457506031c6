#include "result.h"

#include "device_array.h"
#include "foreign.h"

PyObject *
host_result(PyArrayObject *like)
{
    PyObject *dtype = Py_NewRef((PyObject *)PyArray_DESCR(like)); /* PyArray_Empty takes it */
    return PyArray_Empty(PyArray_NDIM(like), PyArray_DIMS(like), (PyArray_Descr *)dtype,
                         !PyArray_IS_C_CONTIGUOUS(like));
}

/* The library's own array; a new reference to None where it makes none. */
static PyObject *
library_result(const struct device_operand *like, void *stream)
{
    if (!like->library)
        return Py_NewRef(Py_None);
    if (stream == like->operand.stream)
        return foreign_empty_like(like->library, like->exported, NULL);
    PyObject *handle = PyLong_FromVoidPtr(stream);
    PyObject *made = handle ? foreign_empty_like(like->library, like->exported, handle) : NULL;
    Py_XDECREF(handle);
    return made;
}

PyObject *
device_result(struct module_state *state, const struct device_operand *like, int device, void *stream,
              struct device_operand *result)
{
    PyObject *made = stream == like->operand.stream ? torch_empty_like(state, like, result) : NULL;
    if (made)
        return made;
    made = library_result(like, stream);
    if (made && Py_IsNone(made)) {
        Py_DECREF(made);
        made = device_array_new(state, device, stream, like->operand.dtype, like->ndim, like->shape);
    }
    if (!made)
        return NULL;
    int found = device_operand_from(state, made, ROLE_OUT, result);
    if (found > 0 && device_operands_match(like, result))
        return made;
    if (found > 0)
        device_operand_clear(result);
    if (found >= 0)
        PyErr_SetString(PyExc_RuntimeError,
                        "the operands' library made no contiguous device array of their shape and dtype for the sum");
    Py_DECREF(made);
    return NULL;
}
