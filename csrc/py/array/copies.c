/* Copies between the host and the GPU: to_device, numpy(), pickles, the refusals of implicit copies; empty_pinned. */
#include <stdint.h>

#include "base/layout.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "py/array/array.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/calls/add.h"
#include "py/calls/deferred_release.h"
#include "py/operands/device_array.h"
#include "py/operands/dtypes.h"
#include "py/operands/operands.h"
#include "py/operands/where.h"

static int
check_out(struct device_array *self, PyObject *object, PyArray_Descr *dtype)
{
    if (!PyArray_Check(object))
        return refuse(PyExc_TypeError, "out must be a NumPy array, not %R", object);
    PyArrayObject *out = (PyArrayObject *)object;
    if (!PyArray_EquivTypes(PyArray_DESCR(out), dtype))
        return refuse(PyExc_TypeError, "out has dtype %S where the array has %S", (PyObject *)PyArray_DESCR(out),
                      (PyObject *)dtype);
    if (PyArray_NDIM(out) != self->ndim || !PyArray_CompareLists(PyArray_DIMS(out), self->shape, self->ndim))
        return refuse(PyExc_ValueError, "out and the array have different shapes");
    return PyArray_FailUnlessWriteable(out, "out");
}

/* Copies contiguous elements to the host after the work queued on the home stream; waits. */
static int
copy_out(struct module_state *state, const struct device_array *from, void *stream, PyArrayObject *to)
{
    struct status status;
    size_t bytes = device_array_nbytes(from);
    if (bytes == 0)
        return 0;
    int failed =
        WITHOUT_GIL(stream_check_device(from->device, stream, &status) < 0 ||
                    stream_join(from->device, device_array_home(from), stream, &status) < 0 ||
                    device_copy(from->device, stream, COPY_OUT, PyArray_DATA(to), from->data, bytes, &status) < 0);
    return failed ? fail_with(state, &status) : 0;
}

/* Copies the elements of `self` to `out`, whatever the layout of either. */
static int
write_out(struct device_array *self, void *stream, PyArrayObject *out)
{
    struct module_state *state = state_of(self);
    OWNED PyObject *from = self->contiguous ? Py_NewRef((PyObject *)self) : device_array_copy(self, NULL);
    if (!from)
        return -1;
    OWNED PyArrayObject *to = (PyArrayObject *)Py_NewRef((PyObject *)out);
    bool direct = PyArray_IS_C_CONTIGUOUS(out) && PyArray_ISBEHAVED(out);
    if (!direct) {
        Py_DECREF(to);
        to = (PyArrayObject *)PyArray_NewLikeArray(out, NPY_CORDER, dtype_descr(state, self->dtype), 0);
    }
    int failed = to ? copy_out(state, (struct device_array *)from, stream, to) : -1;
    if (!failed && !direct)
        failed = PyArray_CopyInto(out, to);
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
    OWNED PyArray_Descr *dtype = dtype_descr(state, self->dtype);
    if (!dtype)
        return NULL;
    deferred_release_sweep();
    PyObject *array = NULL;
    if (Py_IsNone(out)) {
        Py_INCREF((PyObject *)dtype); /* PyArray_Empty takes the reference */
        array = PyArray_Empty(self->ndim, self->shape, dtype, 0);
    } else if (check_out(self, out, dtype) == 0)
        array = Py_NewRef(out);
    if (array && write_out(self, stream, (PyArrayObject *)array) < 0)
        Py_CLEAR(array);
    return array;
}

PyObject *
device_array_array(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    return PyErr_Format(PyExc_TypeError, "a DeviceArray is not copied to the host implicitly: call its .numpy()");
}

int
device_array_truth(PyObject *Py_UNUSED(self))
{
    return refuse(PyExc_TypeError, "the truth of a DeviceArray is not read from the GPU implicitly: call its .numpy()");
}

/* Unpickles to the thread's current device: that machine may have other devices. */
PyObject *
device_array_reduce(struct device_array *self, PyObject *Py_UNUSED(none))
{
    OWNED PyObject *to_device = imported("vecadd", "to_device");
    OWNED PyObject *array = to_device ? PyObject_CallMethod((PyObject *)self, "numpy", NULL) : NULL;
    return array ? Py_BuildValue("(O(O))", to_device, array) : NULL;
}

PyObject *
device_array_repr(struct device_array *self)
{
    return call_imported("vecadd._called_by_core", "describe_array", "(O)", (PyObject *)self);
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
    OWNED PyObject *bits = bits_view(self);
    OWNED PyObject *out = bits_view((struct device_array *)copy);
    OWNED PyObject *zero = PyLong_FromLong(0);
    OWNED PyObject *sum = bits && out && zero ? add_objects(state_of(self), bits, zero, out) : NULL;
    if (!sum)
        Py_CLEAR(copy);
    return copy;
}

PyObject *
device_array_copy(struct device_array *self, PyObject *Py_UNUSED(none))
{
    struct module_state *state = state_of(self);
    const struct later_stream home = device_array_later(self);
    OWNED PyObject *copy = device_array_new(state, self->device, &home, self->dtype, self->ndim, self->shape, NULL);
    if (!copy)
        return NULL;
    if (!self->contiguous)
        return gather(self, hand_out(&copy));
    struct status status;
    int failed = WITHOUT_GIL(device_copy(self->device, home.stream, COPY_WITHIN, ((struct device_array *)copy)->data,
                                         self->data, device_array_nbytes(self), &status));
    return failed ? status_raise(state, &status) : hand_out(&copy);
}

/* to_device: a copy of any array in the memory of a GPU. */

/* device=: as in add, but a GPU; None is the thread's current device. */
static int
ordinal_from_object(struct module_state *state, PyObject *object, int *device)
{
    enum device_choice choice;
    struct status status;
    if (device_from_object(object, &choice, device) < 0)
        return -1;
    if (choice == DEVICE_CPU || choice == DEVICE_HYBRID)
        return refuse(PyExc_ValueError, "device must be None, 'cuda', 'cuda:N' or the GPU's number N, not %R", object);
    if (device_find(device, &status) == 0)
        return 0;
    return fail_with(state, &status);
}

/* A new array with the elements of `source`. */
static PyObject *
copy_of(struct module_state *state, int device, enum dtype dtype, PyArrayObject *source)
{
    OWNED PyObject *copy = device_array_new(state, device, &(struct later_stream){0}, dtype, PyArray_NDIM(source),
                                            PyArray_DIMS(source), NULL);
    if (!copy)
        return NULL;
    const struct device_array *array = (const struct device_array *)copy;
    struct status status;
    int failed = WITHOUT_GIL(
        device_copy(device, NULL, COPY_IN, array->data, PyArray_DATA(source), device_array_nbytes(array), &status));
    return failed ? status_raise(state, &status) : hand_out(&copy);
}

static PyObject *
copy_from_device(struct device_array *array, bool any_device, int device)
{
    if (any_device || device == array->device)
        return device_array_copy(array, NULL);
    return PyErr_Format(PyExc_ValueError, "the array is on cuda:%d: copy it to cuda:%d by way of its numpy()",
                        array->device, device);
}

static PyObject *
copy_from_host(struct module_state *state, PyObject *object, int device)
{
    /* PyArray_FromAny would leave the byte order as it is. */
    OWNED PyArrayObject *array = (PyArrayObject *)PyArray_CheckFromAny(
        object, NULL, 0, 0, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED, NULL);
    PyObject *result = NULL;
    if (!array)
        return NULL;
    int dtype = dtype_of_descr(state, PyArray_DESCR(array));
    if (dtype < 0)
        dtype_refuse("x", (PyObject *)PyArray_DESCR(array));
    else
        result = copy_of(state, device, (enum dtype)dtype, array);
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

/* empty_pinned: NumPy arrays in page-locked memory, which GPUs copy from and to at the link's full speed. */

static const char capsule_name[] = "vecadd pinned memory";

static void
release_capsule(PyObject *capsule)
{
    void *memory = PyCapsule_GetPointer(capsule, capsule_name);
    size_t bytes = (uintptr_t)PyCapsule_GetContext(capsule);
    PyThreadState *released = PyEval_SaveThread(); /* CUDA waits here for the work of every stream */
    pinned_release(memory, bytes);
    PyEval_RestoreThread(released);
}

/* The bytes of an array, or -1 with the exceptions of numpy.empty. */
static Py_ssize_t
count_bytes(int ndim, const Py_ssize_t *shape, size_t itemsize)
{
    size_t elements;
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0)
            return refuse(PyExc_ValueError, "negative dimensions are not allowed");
    if (layout_count(ndim, shape, itemsize, &elements))
        return (Py_ssize_t)(elements * itemsize);
    return refuse(PyExc_ValueError, "array is too big; its bytes are more than can be counted");
}

/* Allocates page-locked memory in a capsule that frees it; the capsule's context is the number of bytes. */
static PyObject *
pinned_capsule(struct module_state *state, size_t bytes)
{
    void *memory = NULL;
    struct status status;
    if (WITHOUT_GIL(pinned_allocate(bytes, &memory, &status)) < 0) /* takes 350 ms a gigabyte */
        return status_raise(state, &status);
    PyObject *capsule = PyCapsule_New(memory, capsule_name, release_capsule);
    if (!capsule) {
        PyThreadState *released = PyEval_SaveThread();
        pinned_release(memory, bytes);
        PyEval_RestoreThread(released);
    } else
        PyCapsule_SetContext(capsule, (void *)(uintptr_t)bytes); /* fails only for an object that is not a capsule */
    return capsule;
}

static PyObject *
pinned_array(struct module_state *state, int ndim, const Py_ssize_t *shape, PyArray_Descr *dtype)
{
    Py_ssize_t bytes = count_bytes(ndim, shape, (size_t)PyDataType_ELSIZE(dtype));
    OWNED PyObject *capsule = bytes < 0 ? NULL : pinned_capsule(state, (size_t)bytes);
    if (!capsule)
        return NULL;
    Py_INCREF(
        (PyObject *)dtype); /* PyArray_NewFromDescr takes the reference, and PyArray_SetBaseObject the capsule's */
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL,
                                           PyCapsule_GetPointer(capsule, capsule_name), NPY_ARRAY_CARRAY, NULL);
    if (array && PyArray_SetBaseObject((PyArrayObject *)array, hand_out(&capsule)) < 0)
        Py_CLEAR(array);
    return array;
}

/* shape: an int, or a sequence of ints. Returns the number of dimensions, or -1. */
static int
read_shape(PyObject *object, Py_ssize_t *shape)
{
    OWNED PyObject *tuple = PyIndex_Check(object) ? PyTuple_Pack(1, object) : PySequence_Tuple(object);
    return tuple ? sizes_of_tuple(tuple, "shape", shape) : -1;
}

const char empty_pinned_doc[] = PyDoc_STR(
    "empty_pinned($module, shape, dtype='float64')\n--\n\n"
    "A C-contiguous numpy.ndarray in page-locked memory: a GPU copies from and to it at the full speed of the\n"
    "link, where ordinary memory goes through buffers.\n\n"
    "shape is an int or a sequence of ints, dtype one that add takes. Page-locked memory is scarce and slow to\n"
    "make (0.35 s a gigabyte): keep the array and use it again. It is given back when the last view of it goes.\n\n"
    "Raises TypeError for other dtypes, ValueError for a shape that no array has, MemoryError, and RuntimeError\n"
    "where CUDA cannot be used.\n\n"
    ">>> a = vecadd.empty_pinned((2, 3), 'float32')\n"
    ">>> a[:] = 1\n"
    ">>> vecadd.add(a, a, device='cuda')\n"
    "array([[2., 2., 2.],\n"
    "       [2., 2., 2.]], dtype=float32)");

PyObject *
py_empty_pinned(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"shape", "dtype", NULL};
    struct module_state *state = PyModule_GetState(module);
    PyObject *shape_object;
    OWNED PyArray_Descr *dtype = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O&:empty_pinned", names, &shape_object,
                                     PyArray_DescrConverter, &dtype))
        return NULL;
    if (!dtype)
        dtype = PyArray_DescrFromType(NPY_DOUBLE);

    Py_ssize_t shape[MAX_DIMENSIONS];
    int ndim = read_shape(shape_object, shape);
    if (ndim >= 0 && dtype_of_descr(state, dtype) >= 0)
        return pinned_array(state, ndim, shape, dtype);
    if (ndim >= 0)
        dtype_refuse("the array", (PyObject *)dtype);
    return NULL;
}
