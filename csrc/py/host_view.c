/* NumPy arrays in other libraries' memory on the host, by DLPack. numpy.from_dlpack knows no bfloat16, and makes what
 * comes without a version read-only. */
#include "dlpack_import.h"
#include "methods.h"
#include "operand_from.h"

/* Takes the reference to the owner, which becomes the array's base. */
static PyObject *
array_of(struct module_state *state, const struct dlpack_import *import)
{
    const struct dl_tensor *tensor = import->tensor;
    Py_ssize_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
    enum dtype dtype;
    PyArray_Descr *descr = NULL;
    if (tensor->ndim < 0 || tensor->ndim > MAX_DIMENSIONS)
        PyErr_Format(PyExc_BufferError, "x has %d dimensions; an array has up to %d", (int)tensor->ndim,
                     MAX_DIMENSIONS);
    else if (!dtype_of_dl_type(tensor->dtype, &dtype))
        PyErr_Format(PyExc_BufferError, "x has DLPack's type code %d, %d bits, %d lanes, which vecadd does not add",
                     (int)tensor->dtype.code, (int)tensor->dtype.bits, (int)tensor->dtype.lanes);
    else
        descr = dtype_descr(state, dtype);
    if (!descr) {
        Py_DECREF(import->owner);
        return NULL;
    }
    const Py_ssize_t itemsize = (Py_ssize_t)dtype_table[dtype].itemsize;
    for (int i = 0; i < tensor->ndim; i++) {
        shape[i] = tensor->shape[i];
        strides[i] = tensor->strides ? tensor->strides[i] * itemsize : 0;
    }
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, tensor->ndim, shape, tensor->strides ? strides : NULL,
                                           (char *)tensor->data + tensor->byte_offset,
                                           import->writable ? NPY_ARRAY_WRITEABLE : 0, NULL);
    if (!array) {
        Py_DECREF(import->owner);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)array, import->owner) < 0)
        Py_CLEAR(array);
    return array;
}

const char host_view_doc[] =
    PyDoc_STR("host_view($module, x, /)\n--\n\n"
              "The NumPy array in the memory that x.__dlpack__() gives, which is on the host.\n\n"
              "Raises BufferError for memory elsewhere and for dtypes that add does not take.");

PyObject *
py_host_view(PyObject *module, PyObject *object)
{
    struct module_state *state = PyModule_GetState(module);
    struct dl_device device;
    struct dlpack_import import;
    int found = dlpack_device_of(state, object, "x", &device);
    if (found < 0)
        return NULL;
    if (found == 0 || (device.type != DL_CPU && device.type != DL_CUDA_HOST)) {
        PyErr_SetString(PyExc_BufferError, "x has no __dlpack__, or its memory is not on the host");
        return NULL;
    }
    return dlpack_import(state, object, "x", false, NULL, &import) < 0 ? NULL : array_of(state, &import);
}
