/* to_device: a copy of any array in the memory of a GPU. */
#include "gpu/device.h"
#include "gpu/memory.h"
#include "py/array/methods.h"
#include "py/base/errors.h"
#include "py/base/methods.h"
#include "py/calls/deferred_release.h"
#include "py/operands/device_array.h"
#include "py/operands/where.h"

/* device=: as in add, but a GPU; None is the thread's current device. */
static int
ordinal_from_object(struct module_state *state, PyObject *object, int *device)
{
    enum device_choice choice;
    struct status status;
    if (device_from_object(object, &choice, device) < 0)
        return -1;
    if (choice == DEVICE_CPU || choice == DEVICE_HYBRID) {
        PyErr_Format(PyExc_ValueError, "device must be None, 'cuda', 'cuda:N' or the GPU's number N, not %R", object);
        return -1;
    }
    if (device_find(device, &status) == 0)
        return 0;
    status_raise(state, &status);
    return -1;
}

/* A new array with the elements of `source`. */
static PyObject *
copy_of(struct module_state *state, int device, enum dtype dtype, PyArrayObject *source)
{
    PyObject *copy = device_array_new(state, device, &(struct later_stream){0}, dtype, PyArray_NDIM(source),
                                      PyArray_DIMS(source), NULL);
    if (!copy)
        return NULL;
    const struct device_array *array = (const struct device_array *)copy;
    struct status status;
    PyThreadState *released = PyEval_SaveThread();
    int failed = device_copy_in(device, NULL, array->data, PyArray_DATA(source), device_array_nbytes(array), &status);
    PyEval_RestoreThread(released);
    if (!failed)
        return copy;
    Py_DECREF(copy);
    return status_raise(state, &status);
}

static PyObject *
copy_from_device(struct device_array *array, bool any_device, int device)
{
    if (any_device || device == array->device)
        return device_array_copy(array, NULL);
    PyErr_Format(PyExc_ValueError, "the array is on cuda:%d: copy it to cuda:%d by way of its numpy()", array->device,
                 device);
    return NULL;
}

static PyObject *
copy_from_host(struct module_state *state, PyObject *object, int device)
{
    /* PyArray_FromAny would leave the byte order as it is. */
    PyArrayObject *array = (PyArrayObject *)PyArray_CheckFromAny(
        object, NULL, 0, 0, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED, NULL);
    PyObject *result = NULL;
    if (!array)
        return NULL;
    int dtype = dtype_of_descr(state, PyArray_DESCR(array));
    if (dtype < 0)
        dtype_refuse("x", (PyObject *)PyArray_DESCR(array));
    else
        result = copy_of(state, device, (enum dtype)dtype, array);
    Py_DECREF(array);
    return result;
}

const char to_device_doc[] = PyDoc_STR(
    "to_device($module, x, device=None)\n--\n\n"
    "A DeviceArray with a C-contiguous copy of x: anything that numpy.asarray takes and whose dtype add takes,\n"
    "or a DeviceArray.\n\n"
    "device is None (the thread's current device; a DeviceArray's own), 'cuda', 'cuda:N' or N. Returns when the\n"
    "elements of a host array have arrived, and for a DeviceArray when the copy is queued.\n\n"
    "Raises TypeError for other dtypes, ValueError for a device that is not there, MemoryError, and RuntimeError\n"
    "where CUDA cannot be used.\n\n"
    ">>> x = vecadd.to_device(np.arange(4))\n"
    ">>> (x + x).numpy()\n"
    "array([0, 2, 4, 6])");

PyObject *
py_to_device(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"x", "device", NULL};
    struct module_state *state = PyModule_GetState(module);
    PyObject *object, *device_object = Py_None;
    int device;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O:to_device", names, &object, &device_object) ||
        ordinal_from_object(state, device_object, &device) < 0)
        return NULL;
    deferred_release_sweep();
    if (Py_TYPE(object) == state->device_array_type)
        return copy_from_device((struct device_array *)object, Py_IsNone(device_object), device);
    return copy_from_host(state, object, device);
}
