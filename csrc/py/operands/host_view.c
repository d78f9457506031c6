/* NumPy arrays in other libraries' memory on the host, by DLPack. numpy.from_dlpack does not know bfloat16, and makes
 * unversioned tensors read-only. */
#include <stdint.h>

#include "base/layout.h"
#include "py/base/methods.h"
#include "py/operands/dlpack_import.h"
#include "py/operands/operand_from.h"

static bool
is_on_host(struct dl_device device)
{
    return device.type == DL_CPU || device.type == DL_CUDA_HOST;
}

/* A tensor's layout in NumPy's units. */
struct view {
    enum dtype dtype;
    Py_ssize_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
    size_t elements;
    void *data;
};

static int
read_shape(const struct dl_tensor *tensor, struct view *view)
{
    if (tensor->ndim < 0 || tensor->ndim > MAX_DIMENSIONS || (tensor->ndim > 0 && !tensor->shape)) {
        PyErr_Format(PyExc_BufferError, "x has %d dimensions, %s; an array has up to %d", (int)tensor->ndim,
                     tensor->shape ? "and a shape" : "and no shape", MAX_DIMENSIONS);
        return -1;
    }
    for (int i = 0; i < tensor->ndim; i++)
        view->shape[i] = tensor->shape[i];
    if (layout_count(tensor->ndim, view->shape, dtype_table[view->dtype].itemsize, &view->elements))
        return 0;
    PyErr_SetString(PyExc_BufferError, "x has a shape with a negative extent, or one that is larger than any memory");
    return -1;
}

/* Converts strides to bytes. Strides that lead to no element mean nothing, and become 0. */
static bool
strides_are_counted(const struct dl_tensor *tensor, struct view *view)
{
    const Py_ssize_t itemsize = (Py_ssize_t)dtype_table[view->dtype].itemsize;
    for (int i = 0; tensor->strides && i < tensor->ndim; i++) {
        view->strides[i] = 0;
        if (view->elements && view->shape[i] > 1 &&
            __builtin_mul_overflow(tensor->strides[i], itemsize, &view->strides[i]))
            return false;
    }
    return true;
}

/* Nothing tells whether the memory exists, but elements beyond the address space are refused. */
static int
read_data(const struct dl_tensor *tensor, struct view *view)
{
    const size_t itemsize = dtype_table[view->dtype].itemsize;
    size_t bytes = view->elements * itemsize;
    Py_ssize_t low = 0;
    uintptr_t at, end;
    view->data = NULL;
    if (!strides_are_counted(tensor, view))
        goto outside;
    if (!view->elements)
        return 0;
    if (!tensor->data) {
        PyErr_Format(PyExc_BufferError, "x has a null pointer for %zu elements", view->elements);
        return -1;
    }
    if (__builtin_add_overflow((uintptr_t)tensor->data, tensor->byte_offset, &at)) {
        PyErr_SetString(PyExc_BufferError, "x has an offset that leads out of the address space");
        return -1;
    }
    view->data = (void *)at;
    if ((!tensor->strides || layout_bounds(tensor->ndim, view->shape, view->strides, itemsize, &low, &bytes)) &&
        at >= (uintptr_t)-low && !__builtin_add_overflow(at - (uintptr_t)-low, bytes, &end))
        return 0;
outside:
    PyErr_SetString(PyExc_BufferError, "x has strides that lead to elements outside the address space");
    return -1;
}

static int
read_tensor(const struct dl_tensor *tensor, struct view *view)
{
    if (!is_on_host(tensor->device)) {
        PyErr_Format(PyExc_BufferError, "x has memory that is not on the host, but on DLPack's device (%d, %d)",
                     (int)tensor->device.type, (int)tensor->device.id);
        return -1;
    }
    if (dtype_of_dl_type(tensor->dtype, &view->dtype))
        return read_shape(tensor, view) < 0 ? -1 : read_data(tensor, view);
    PyErr_Format(PyExc_BufferError, "x has DLPack's type code %d, %d bits, %d lanes, which vecadd does not add",
                 (int)tensor->dtype.code, (int)tensor->dtype.bits, (int)tensor->dtype.components);
    return -1;
}

/* Takes the reference to the owner, which becomes the array's base. */
static PyObject *
array_of(struct module_state *state, const struct dlpack_import *import)
{
    const struct dl_tensor *tensor = import->tensor;
    struct view view;
    PyArray_Descr *descr = read_tensor(tensor, &view) < 0 ? NULL : dtype_descr(state, view.dtype);
    PyObject *array = descr ? PyArray_NewFromDescr(&PyArray_Type, descr, tensor->ndim, view.shape,
                                                   tensor->strides ? view.strides : NULL, view.data,
                                                   import->writable ? NPY_ARRAY_WRITEABLE : 0, NULL)
                            : NULL;
    if (!array)
        Py_DECREF(import->owner);
    else if (PyArray_SetBaseObject((PyArrayObject *)array, import->owner) < 0) /* takes the owner in either case */
        Py_CLEAR(array);
    return array;
}

const char host_view_doc[] = PyDoc_STR(
    "host_view($module, x, /)\n--\n\n"
    "The NumPy array in the memory that x.__dlpack__() gives, which is on the host.\n\n"
    "Raises BufferError for memory elsewhere, for dtypes that add does not take, and for a tensor whose elements no\n"
    "memory holds.");

PyObject *
py_host_view(PyObject *module, PyObject *object)
{
    struct module_state *state = PyModule_GetState(module);
    struct dl_device device;
    struct dlpack_import import;
    int found = dlpack_device_of(state, object, "x", &device);
    if (found < 0)
        return NULL;
    if (found == 0 || !is_on_host(device)) {
        PyErr_SetString(PyExc_BufferError, "x has no __dlpack__, or its memory is not on the host");
        return NULL;
    }
    return dlpack_import(state, object, "x", Py_None, &import) < 0 ? NULL : array_of(state, &import);
}
