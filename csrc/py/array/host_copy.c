/* DeviceArray and the host: numpy(), pickles, repr, and the refusals of implicit copies. */
#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "py/array/methods.h"
#include "py/base/errors.h"
#include "py/calls/add.h"
#include "py/calls/deferred_release.h"
#include "py/operands/device_array.h"
#include "py/operands/operand_from.h"
#include "py/operands/where.h"

static struct module_state *
state_of(struct device_array *self)
{
    return PyType_GetModuleState(Py_TYPE((PyObject *)self));
}

static int
check_out(struct device_array *self, PyObject *object, PyArray_Descr *dtype)
{
    if (!PyArray_Check(object)) {
        PyErr_Format(PyExc_TypeError, "out must be a NumPy array, not %R", object);
        return -1;
    }
    PyArrayObject *out = (PyArrayObject *)object;
    if (!PyArray_EquivTypes(PyArray_DESCR(out), dtype)) {
        PyErr_Format(PyExc_TypeError, "out has dtype %S where the array has %S", (PyObject *)PyArray_DESCR(out),
                     (PyObject *)dtype);
        return -1;
    }
    if (PyArray_NDIM(out) != self->ndim || !PyArray_CompareLists(PyArray_DIMS(out), self->shape, self->ndim)) {
        PyErr_SetString(PyExc_ValueError, "out and the array have different shapes");
        return -1;
    }
    return PyArray_FailUnlessWriteable(out, "out");
}

/* Copies contiguous elements to the host behind the work queued on the home stream; waits. */
static int
copy_out(struct module_state *state, const struct device_array *from, void *stream, PyArrayObject *to)
{
    struct status status;
    size_t bytes = device_array_nbytes(from);
    if (bytes == 0)
        return 0;
    PyThreadState *released = PyEval_SaveThread();
    int failed = stream_check_device(from->device, stream, &status) < 0 ||
                 stream_join(from->device, device_array_home(from), stream, &status) < 0 ||
                 device_copy_out(from->device, stream, PyArray_DATA(to), from->data, bytes, &status) < 0;
    PyEval_RestoreThread(released);
    if (!failed)
        return 0;
    status_raise(state, &status);
    return -1;
}

/* Copies the elements of `self` to `out`, whatever the layout of either. */
static int
write_out(struct device_array *self, void *stream, PyArrayObject *out)
{
    struct module_state *state = state_of(self);
    PyObject *from = self->contiguous ? Py_NewRef((PyObject *)self) : device_array_copy(self, NULL);
    if (!from)
        return -1;
    PyArrayObject *to = (PyArrayObject *)Py_NewRef((PyObject *)out);
    bool direct = PyArray_IS_C_CONTIGUOUS(out) && PyArray_ISBEHAVED(out);
    if (!direct) {
        Py_DECREF(to);
        to = (PyArrayObject *)PyArray_NewLikeArray(out, NPY_CORDER, dtype_descr(state, self->dtype), 0);
    }
    int failed = to ? copy_out(state, (struct device_array *)from, stream, to) : -1;
    if (!failed && !direct)
        failed = PyArray_CopyInto(out, to);
    Py_XDECREF((PyObject *)to);
    Py_DECREF(from);
    return failed;
}

const char device_array_numpy_doc[] =
    PyDoc_STR("numpy($self, /, out=None, stream=None)\n--\n\n"
              "A NumPy array with a copy of the elements, after all work queued on them so far: a new one, or out,\n"
              "which has the same shape and dtype. The copy runs on stream, by default the array's own, and is there\n"
              "when the call returns.\n\n"
              "Raises TypeError and ValueError for an out of another dtype or shape or a read-only one, RuntimeError\n"
              "where CUDA cannot be used, and for bfloat16 where ml_dtypes is not imported.\n\n"
              ">>> vecadd.to_device([1.0, 2.0]).numpy()\n"
              "array([1., 2.])");

PyObject *
device_array_numpy(struct device_array *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"out", "stream", NULL};
    struct module_state *state = state_of(self);
    PyObject *out = Py_None, *stream_object = Py_None;
    void *stream = device_array_home(self);
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO:numpy", names, &out, &stream_object) ||
        (!Py_IsNone(stream_object) && stream_from_object(state, stream_object, &stream) < 0))
        return NULL;
    PyArray_Descr *dtype = dtype_descr(state, self->dtype);
    if (!dtype)
        return NULL;
    deferred_release_sweep();
    PyObject *array = NULL;
    if (Py_IsNone(out)) {
        Py_INCREF((PyObject *)dtype); /* PyArray_Empty takes the reference */
        array = PyArray_Empty(self->ndim, self->shape, dtype, 0);
    } else if (check_out(self, out, dtype) == 0)
        array = Py_NewRef(out);
    Py_DECREF((PyObject *)dtype);
    if (array && write_out(self, stream, (PyArrayObject *)array) < 0)
        Py_CLEAR(array);
    return array;
}

PyObject *
device_array_array(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    PyErr_SetString(PyExc_TypeError, "a DeviceArray is not copied to the host unasked: call its .numpy()");
    return NULL;
}

int
device_array_truth(PyObject *Py_UNUSED(self))
{
    PyErr_SetString(PyExc_TypeError, "the truth of a DeviceArray is not asked of the GPU unasked: call its .numpy()");
    return -1;
}

/* Unpickles to the thread's current device: that machine may have other devices. */
PyObject *
device_array_reduce(struct device_array *self, PyObject *Py_UNUSED(none))
{
    PyObject *module = PyImport_ImportModule("vecadd");
    PyObject *to_device = module ? PyObject_GetAttrString(module, "to_device") : NULL;
    PyObject *array = to_device ? PyObject_CallMethod((PyObject *)self, "numpy", NULL) : NULL;
    PyObject *reduced = array ? Py_BuildValue("(O(O))", to_device, array) : NULL;
    Py_XDECREF(array);
    Py_XDECREF(to_device);
    Py_XDECREF(module);
    return reduced;
}

PyObject *
device_array_repr(struct device_array *self)
{
    PyObject *module = PyImport_ImportModule("vecadd._called_by_core");
    PyObject *text = module ? PyObject_CallMethod(module, "describe_array", "O", (PyObject *)self) : NULL;
    Py_XDECREF(module);
    return text;
}

/* An integer dtype as wide as this one's components: adding 0 as an integer keeps every bit. */
static enum dtype
bits_of(enum dtype dtype)
{
    switch (component_size[dtype_table[dtype].component]) {
    case 1:
        return DTYPE_INT8;
    case 2:
        return DTYPE_INT16;
    case 4:
        return DTYPE_INT32;
    default:
        return DTYPE_INT64;
    }
}

/* The components of a view as integers: complex numbers get one more axis, of two. */
static PyObject *
bits_view(struct device_array *self)
{
    const struct dtype_row *row = &dtype_table[self->dtype];
    Py_ssize_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
    int ndim = 0;
    /* Axes of one element are left out, so that 64 dimensions leave room for another. */
    for (int i = 0; i < self->ndim; i++)
        if (self->shape[i] != 1) {
            shape[ndim] = self->shape[i];
            strides[ndim++] = device_array_strides(self)[i];
        }
    if (row->components == 2) {
        shape[ndim] = 2;
        strides[ndim++] = (Py_ssize_t)component_size[row->component];
    }
    return device_array_view(self, bits_of(self->dtype), self->data, ndim, shape, strides);
}

/* Gathers a view's elements into `copy` by adding 0 to their bits. Takes the reference to `copy`; NULL with an
 * exception set. */
static PyObject *
gather(struct device_array *self, PyObject *copy)
{
    PyObject *bits = bits_view(self), *out = bits_view((struct device_array *)copy), *zero = PyLong_FromLong(0);
    PyObject *sum = bits && out && zero ? add_objects(state_of(self), bits, zero, out) : NULL;
    Py_XDECREF(zero);
    Py_XDECREF(out);
    Py_XDECREF(bits);
    if (!sum)
        Py_CLEAR(copy);
    Py_XDECREF(sum);
    return copy;
}

PyObject *
device_array_copy(struct device_array *self, PyObject *Py_UNUSED(none))
{
    struct module_state *state = state_of(self);
    const struct later_stream home = device_array_later(self);
    PyObject *copy = device_array_new(state, self->device, &home, self->dtype, self->ndim, self->shape, NULL);
    if (!copy)
        return NULL;
    if (!self->contiguous)
        return gather(self, copy);
    struct status status;
    PyThreadState *released = PyEval_SaveThread();
    int failed = device_copy(self->device, home.stream, ((struct device_array *)copy)->data, self->data,
                             device_array_nbytes(self), &status);
    PyEval_RestoreThread(released);
    if (!failed)
        return copy;
    Py_DECREF(copy);
    return status_raise(state, &status);
}
