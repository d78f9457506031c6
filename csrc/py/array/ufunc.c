/* NumPy's functions that are called with a DeviceArray: numpy.add is vecadd.add, and all others are refused. */
#include "py/array/methods.h"
#include "py/operands/interop.h"

/* Whether vecadd.add takes or refuses every operand: another type may have rules of its own for the rest. 1, 0, -1. */
static int
all_are_operands(struct module_state *state, PyObject *operands)
{
    const Py_ssize_t count = PyTuple_Size(operands);
    int taken = 1;
    for (Py_ssize_t i = 0; i < count && taken > 0; i++) {
        PyObject *operand = PyTuple_GetItem(operands, i);
        taken = Py_TYPE(operand) == state->device_array_type ? 1 : interop_is_operand(state, operand);
    }
    return taken;
}

static PyObject *
refuse(PyObject *ufunc, PyObject *method)
{
    PyObject *name = PyObject_GetAttrString(ufunc, "__name__");
    PyObject *called = PyUnicode_CompareWithASCIIString(method, "__call__") == 0 ? PyUnicode_FromString("")
                                                                                 : PyUnicode_FromFormat(".%U", method);
    if (name && called)
        PyErr_Format(PyExc_TypeError,
                     "numpy.%S%U takes no vecadd.DeviceArray, numpy.add alone does: copy it to the host with its "
                     "numpy(), or hand it to another library (torch.from_dlpack, cupy.asarray)",
                     name, called);
    Py_XDECREF(called);
    Py_XDECREF(name);
    return NULL;
}

static PyObject *
add(PyTypeObject *type, PyObject *operands, PyObject *keywords)
{
    PyObject *module = PyType_GetModule(type);
    PyObject *function = module ? PyObject_GetAttrString(module, "add") : NULL;
    PyObject *sum = function ? PyObject_Call(function, operands, keywords) : NULL;
    Py_XDECREF(function);
    return sum;
}

PyObject *
device_array_ufunc(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    PyTypeObject *type = Py_TYPE(self);
    struct module_state *state = PyType_GetModuleState(type);
    if (PyTuple_Size(arguments) < 2 || !PyUnicode_Check(PyTuple_GetItem(arguments, 1))) {
        PyErr_SetString(PyExc_TypeError, "__array_ufunc__() takes a ufunc, the name of its method and the operands");
        return NULL;
    }
    PyObject *ufunc = PyTuple_GetItem(arguments, 0), *method = PyTuple_GetItem(arguments, 1);
    PyObject *operands = PyTuple_GetSlice(arguments, 2, PyTuple_Size(arguments));
    const int taken = operands ? all_are_operands(state, operands) : -1;
    PyObject *result = NULL;
    if (taken == 0)
        result = Py_NewRef(Py_NotImplemented);
    else if (taken > 0)
        result = ufunc == state->numpy_add && PyUnicode_CompareWithASCIIString(method, "__call__") == 0
                     ? add(type, operands, keywords)
                     : refuse(ufunc, method);
    Py_XDECREF(operands);
    return result;
}
