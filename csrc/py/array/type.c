/* vecadd.DeviceArray as a Python type: its protocols, attributes and methods, and NumPy's functions called with one. */
#include "py/array/array.h"
#include "py/base/python.h"
#include "py/calls/add.h"
#include "py/operands/dtypes.h"
#include "py/operands/library.h"
#include "py/operands/operands.h"

/* Whether vecadd.add takes or refuses every operand: another type may have rules of its own for the rest. 1, 0, -1. */
static int
all_are_operands(struct module_state *state, PyObject *operands)
{
    const Py_ssize_t count = PyTuple_Size(operands);
    int taken = 1;
    for (Py_ssize_t i = 0; i < count && taken > 0; i++) {
        PyObject *operand = PyTuple_GetItem(operands, i);
        taken = Py_TYPE(operand) == state->device_array_type ? 1 : add_takes_operand(state, operand);
    }
    return taken;
}

static PyObject *
refuse_ufunc(PyObject *ufunc, PyObject *method)
{
    OWNED PyObject *name = PyObject_GetAttrString(ufunc, "__name__");
    OWNED PyObject *called = PyUnicode_CompareWithASCIIString(method, "__call__") == 0
                                 ? PyUnicode_FromString("")
                                 : PyUnicode_FromFormat(".%U", method);
    if (name && called)
        PyErr_Format(PyExc_TypeError,
                     "numpy.%S%U takes no vecadd.DeviceArray, numpy.add alone does: copy it to the host with its "
                     "numpy(), or hand it to another library (torch.from_dlpack, cupy.asarray)",
                     name, called);
    return NULL;
}

static PyObject *
add(PyTypeObject *type, PyObject *operands, PyObject *keywords)
{
    PyObject *module = PyType_GetModule(type);
    OWNED PyObject *function = module ? PyObject_GetAttrString(module, "add") : NULL;
    return function ? PyObject_Call(function, operands, keywords) : NULL;
}

static PyObject *
device_array_ufunc(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    PyTypeObject *type = Py_TYPE(self);
    struct module_state *state = PyType_GetModuleState(type);
    if (PyTuple_Size(arguments) < 2 || !PyUnicode_Check(PyTuple_GetItem(arguments, 1)))
        return PyErr_Format(PyExc_TypeError,
                            "__array_ufunc__() takes a ufunc, the name of its method and the operands");
    PyObject *ufunc = PyTuple_GetItem(arguments, 0), *method = PyTuple_GetItem(arguments, 1);
    OWNED PyObject *operands = PyTuple_GetSlice(arguments, 2, PyTuple_Size(arguments));
    const int taken = operands ? all_are_operands(state, operands) : -1;
    PyObject *result = NULL;
    if (taken == 0)
        result = Py_NewRef(Py_NotImplemented);
    else if (taken > 0)
        result = ufunc == state->numpy_add && PyUnicode_CompareWithASCIIString(method, "__call__") == 0
                     ? add(type, operands, keywords)
                     : refuse_ufunc(ufunc, method);
    return result;
}

/* vecadd.DeviceArray as a Python type: its protocols, attributes and methods. */

static void
device_array_dealloc(struct device_array *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    if (!device_buffer_drop_at_once(self->block)) {
        /* The release waits while the stream's queue is full, perhaps for a host function of CuPy's that needs the
         * GIL. */
        PyThreadState *released = PyEval_SaveThread();
        device_buffer_drop(self->block);
        PyEval_RestoreThread(released);
        kept_streams_sweep();
    }
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *
get_shape(struct device_array *self, void *Py_UNUSED(closure))
{
    return tuple_of_sizes(self->ndim, self->shape);
}

static PyObject *
get_strides(struct device_array *self, void *Py_UNUSED(closure))
{
    return tuple_of_sizes(self->ndim, device_array_strides(self));
}

static PyObject *
get_dtype(struct device_array *self, void *Py_UNUSED(closure))
{
    return (PyObject *)dtype_descr(state_of(self), self->dtype);
}

static PyObject *
get_ndim(struct device_array *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(self->ndim);
}

static PyObject *
get_size(struct device_array *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(self->size);
}

static PyObject *
get_itemsize(struct device_array *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(dtype_table[self->dtype].itemsize);
}

static PyObject *
get_nbytes(struct device_array *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSize_t(device_array_nbytes(self));
}

static PyObject *
get_device(struct device_array *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromFormat("cuda:%d", self->device);
}

static Py_ssize_t
device_array_length(struct device_array *self)
{
    if (self->ndim > 0)
        return self->shape[0];
    return refuse(PyExc_TypeError, "len() of unsized object");
}

/* a + b, of which one is a DeviceArray and the other, of any type, is `other`. */
static PyObject *
add_by_operator(PyTypeObject *type, PyObject *a, PyObject *b, PyObject *other, PyObject *out)
{
    struct module_state *state = PyType_GetModuleState(type);
    int taken = Py_TYPE(other) == type ? 1 : add_takes_operand(state, other);
    if (taken < 0)
        return NULL;
    return taken ? add_objects(state, a, b, out) : Py_NewRef(Py_NotImplemented);
}

/* The DeviceArray may be on either side. The type is final, so an operand with its dealloc is one; Python code may put
 * another addition in the type's place. */
static PyObject *
device_array_add(PyObject *a, PyObject *b)
{
    const bool left = PyType_GetSlot(Py_TYPE(a), Py_tp_dealloc) == (void *)device_array_dealloc;
    return left ? add_by_operator(Py_TYPE(a), a, b, b, NULL) : add_by_operator(Py_TYPE(b), a, b, a, NULL);
}

static PyObject *
device_array_inplace_add(PyObject *self, PyObject *other)
{
    return add_by_operator(Py_TYPE(self), self, other, other, self);
}

PyDoc_STRVAR(device_array_doc,
             "An array in the memory of a GPU, made by vecadd.to_device or vecadd.add, or a view of one: x[key] with\n"
             "ints, slices, ... and None, and reshape. Nothing is copied to the host but by numpy().\n\n"
             "It takes part in +, += and vecadd.add, and other CUDA libraries read it through\n"
             "__cuda_array_interface__ and DLPack. The memory is freed in the order of the stream that it was\n"
             "allocated on.\n\n"
             ">>> x = vecadd.to_device(np.arange(6))\n"
             ">>> x.shape, x.dtype, x.device\n"
             "((6,), dtype('int64'), 'cuda:0')\n"
             ">>> (x[::2] + 10).numpy()\n"
             "array([10, 12, 14])");

PyTypeObject *
device_array_make_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"numpy", (PyCFunction)(void (*)(void))device_array_numpy, METH_VARARGS | METH_KEYWORDS,
         device_array_numpy_doc},
        {"copy", (PyCFunction)device_array_copy, METH_NOARGS,
         PyDoc_STR("copy($self, /)\n--\n\n"
                   "A C-contiguous copy on the same GPU, in the order of the array's stream. Raises MemoryError;\n"
                   "RuntimeError where CUDA cannot be used; vecadd.DeviceLostError after a fault on the GPU.\n\n"
                   ">>> x = vecadd.to_device(np.zeros(2))\n"
                   ">>> y = x.copy()\n"
                   ">>> x += 1\n"
                   ">>> y.numpy()\n"
                   "array([0., 0.])")},
        {"reshape", (PyCFunction)device_array_reshape, METH_VARARGS, device_array_reshape_doc},
        {"__copy__", (PyCFunction)device_array_copy, METH_NOARGS, PyDoc_STR("copy()")},
        {"__deepcopy__", (PyCFunction)device_array_copy, METH_O, PyDoc_STR("copy()")},
        {"__reduce__", (PyCFunction)device_array_reduce, METH_NOARGS, PyDoc_STR("By way of the host.")},
        {"__array__", (PyCFunction)(void (*)(void))device_array_array, METH_VARARGS | METH_KEYWORDS,
         PyDoc_STR("Raises TypeError: a copy to the host is asked for by numpy().")},
        {"__array_ufunc__", (PyCFunction)(void (*)(void))device_array_ufunc, METH_VARARGS | METH_KEYWORDS,
         PyDoc_STR("numpy.add(x, y, out=z) is vecadd.add(x, y, out=z). Raises TypeError for NumPy's other functions.")},
        {"__dlpack__", (PyCFunction)(void (*)(void))device_array_dlpack, METH_VARARGS | METH_KEYWORDS,
         device_array_dlpack_doc},
        {"__dlpack_device__", (PyCFunction)device_array_dlpack_device, METH_NOARGS,
         PyDoc_STR("(2, ordinal): memory of CUDA, in DLPack's numbers.")},
        {NULL, NULL, 0, NULL},
    };
    static PyGetSetDef properties[] = {
        {"shape", (getter)get_shape, NULL, PyDoc_STR("The extents, a tuple."), NULL},
        {"strides", (getter)get_strides, NULL, PyDoc_STR("Bytes from one element to the next along each axis."), NULL},
        {"dtype", (getter)get_dtype, NULL, PyDoc_STR("The NumPy dtype of the elements."), NULL},
        {"ndim", (getter)get_ndim, NULL, PyDoc_STR("How many dimensions."), NULL},
        {"size", (getter)get_size, NULL, PyDoc_STR("How many elements."), NULL},
        {"itemsize", (getter)get_itemsize, NULL, PyDoc_STR("Bytes an element."), NULL},
        {"nbytes", (getter)get_nbytes, NULL, PyDoc_STR("Bytes of all elements."), NULL},
        {"device", (getter)get_device, NULL, PyDoc_STR("Where the memory is: \"cuda:0\"."), NULL},
        {"__cuda_array_interface__", (getter)device_array_interface, NULL,
         PyDoc_STR("Version 3, with the stream that the memory was allocated on."), NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, (void *)device_array_doc},
        {Py_tp_dealloc, device_array_dealloc},
        {Py_tp_repr, device_array_repr},
        {Py_tp_methods, methods},
        {Py_tp_getset, properties},
        {Py_tp_iter, device_array_iterate},
        {Py_sq_length, device_array_length},
        {Py_sq_item, device_array_item},
        {Py_mp_length, device_array_length},
        {Py_mp_subscript, device_array_subscript},
        {Py_mp_ass_subscript, device_array_assign},
        {Py_nb_bool, device_array_truth},
        {Py_nb_add, device_array_add},
        {Py_nb_inplace_add, device_array_inplace_add},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "vecadd.DeviceArray",
        .basicsize = sizeof(struct device_array),
        .itemsize = sizeof(Py_ssize_t),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    OWNED PyObject *table = type ? device_array_exchange_table((PyTypeObject *)type) : NULL;
    if (type && (!table || PyObject_SetAttrString(type, DL_EXCHANGE_ATTRIBUTE, table) < 0))
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}
