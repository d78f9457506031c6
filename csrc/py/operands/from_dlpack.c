/* The consumer's half of DLPack's Python protocol, https://dmlc.github.io/dlpack/latest/python_spec.html: device arrays
 * that offer DLPack alone, JAX's above all, and NumPy arrays in other libraries' memory on the host. */
#include <stdint.h>

#include "base/layout.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/operands/dlpack.h"
#include "py/operands/dtypes.h"
#include "py/operands/library.h"
#include "py/operands/operands.h"

struct dlpack_import {
    const struct dl_tensor *tensor; /* lives as long as owner */
    bool writable;                  /* the producer does not mark it read-only */
    PyObject *owner;                /* a capsule; its destructor calls the tensor's deleter, once */
};

#define OWNER             "vecadd.dlpack"
#define UNVERSIONED_OWNER "vecadd.dlpack_unversioned"

static void
delete_tensor(void *managed, bool versioned)
{
    struct dl_managed_tensor *tensor = managed;
    struct dl_unversioned_tensor *unversioned = managed;
    if (versioned && tensor->deleter)
        tensor->deleter(tensor);
    if (!versioned && unversioned->deleter)
        unversioned->deleter(unversioned);
}

/* A deleter may run Python code, so the current exception is saved. */
static void
owner_free(PyObject *owner)
{
    PyObject *type, *value, *traceback;
    const bool versioned = PyCapsule_IsValid(owner, OWNER);
    PyErr_Fetch(&type, &value, &traceback);
    void *tensor = PyCapsule_GetPointer(owner, versioned ? OWNER : UNVERSIONED_OWNER);
    if (tensor) /* NULL where other code has given the capsule another name */
        delete_tensor(tensor, versioned);
    PyErr_Restore(type, value, traceback);
}

/* Reads one of a device's two numbers, of DLPack's C type. */
static int
read_number(PyObject *pair, Py_ssize_t at, const char *what, int32_t *number)
{
    const Py_ssize_t found = PyNumber_AsSsize_t(PyTuple_GetItem(pair, at), NULL);
    if (found == -1 && PyErr_Occurred())
        return -1;
    *number = (int32_t)found;
    if (found == *number)
        return 0;
    return refuse(PyExc_ValueError,
                  "%s: __dlpack_device__() gives %R, which is not a DLPack device: its numbers have 32 bits", what,
                  pair);
}

/* The device of the object's memory: 1, 0 where the object has no __dlpack_device__, or -1 with an exception set. */
static int
dlpack_device_of(struct module_state *state, PyObject *object, const char *what, struct dl_device *device)
{
    OWNED PyObject *method = NULL;
    int found = optional_attribute(object, state->names[NAME_DLPACK_DEVICE], &method);
    if (found <= 0)
        return found;
    OWNED PyObject *pair = PyObject_CallNoArgs(method);
    if (!pair)
        return -1;
    found = -1;
    /* The type is an IntEnum in most libraries. */
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2 || !PyIndex_Check(PyTuple_GetItem(pair, 0)) ||
        !PyIndex_Check(PyTuple_GetItem(pair, 1)))
        PyErr_Format(PyExc_TypeError, "%s: __dlpack_device__() must give (device type, ordinal), not %R", what, pair);
    else if (read_number(pair, 0, what, &device->type) == 0 && read_number(pair, 1, what, &device->id) == 0)
        found = 1;
    return found;
}

/* The keywords of __dlpack__: all, or only those from before version 1.0 of the protocol. */
static PyObject *
keywords_of(PyObject *stream, bool all)
{
    return all ? Py_BuildValue("{s:O,s:(ii),s:O}", "stream", stream, "max_version", DLPACK_MAJOR, DLPACK_MINOR, "copy",
                               Py_False)
               : Py_BuildValue("{s:O}", "stream", stream);
}

/* Calls the producer for its capsule. */
static PyObject *
capsule_of(struct module_state *state, PyObject *object, PyObject *stream)
{
    OWNED PyObject *method = PyObject_GetAttr(object, state->names[NAME_DLPACK]);
    OWNED PyObject *nothing = method ? PyTuple_New(0) : NULL;
    PyObject *capsule = NULL;
    for (int all = 1; nothing && all >= 0; all--) {
        OWNED PyObject *keywords = keywords_of(stream, all);
        capsule = keywords ? PyObject_Call(method, nothing, keywords) : NULL;
        /* A producer from before the keywords raises TypeError, the only sign of its age. */
        if (capsule || !all || !PyErr_ExceptionMatches(PyExc_TypeError))
            break;
        PyErr_Clear();
    }
    return capsule;
}

/* Takes the tensor out of its capsule. */
static int
take_tensor(PyObject *capsule, bool versioned, const char *what, struct dlpack_import *import)
{
    void *tensor = PyCapsule_GetPointer(capsule, versioned ? DL_CAPSULE : DL_UNVERSIONED_CAPSULE);
    if (!tensor || PyCapsule_SetName(capsule, versioned ? DL_CAPSULE_USED : DL_UNVERSIONED_CAPSULE_USED) < 0)
        return -1;
    import->owner = PyCapsule_New(tensor, versioned ? OWNER : UNVERSIONED_OWNER, owner_free);
    if (!import->owner) {
        delete_tensor(tensor, versioned);
        return -1;
    }
    if (!versioned) {
        import->tensor = &((struct dl_unversioned_tensor *)tensor)->tensor;
        import->writable = true; /* an unversioned tensor cannot say otherwise */
        return 0;
    }
    const struct dl_managed_tensor *managed = tensor;
    if (managed->major != DLPACK_MAJOR) { /* another layout after the flags: only the deleter may be used */
        PyErr_Format(PyExc_BufferError, "%s: its DLPack tensor has version %u.%u, and vecadd knows %d", what,
                     (unsigned)managed->major, (unsigned)managed->minor, DLPACK_MAJOR);
        Py_CLEAR(import->owner);
        return -1;
    }
    import->tensor = &managed->tensor;
    import->writable = !(managed->flags & DL_READ_ONLY);
    return 0;
}

/* Imports the tensor of object.__dlpack__(stream=stream), without a copy, into *import. The producer orders its queued
 * work before later work on the stream: a handle, 1 for the legacy default stream, or -1, which asks for no order. None
 * is for memory of the host; of a device it means the legacy default stream. Returns 0, or -1 with an exception set and
 * any deleter called. */
static int
dlpack_import(struct module_state *state, PyObject *object, const char *what, PyObject *stream,
              struct dlpack_import *import)
{
    OWNED PyObject *capsule = capsule_of(state, object, stream);
    if (!capsule)
        return -1;
    int result = -1;
    const bool versioned = PyCapsule_IsValid(capsule, DL_CAPSULE);
    if (versioned || PyCapsule_IsValid(capsule, DL_UNVERSIONED_CAPSULE))
        result = take_tensor(capsule, versioned, what, import);
    else
        PyErr_Format(PyExc_TypeError,
                     "%s: __dlpack__() must give a capsule named 'dltensor_versioned' or 'dltensor', which is "
                     "not consumed yet, not %R",
                     what, capsule);
    return result;
}

/* Device arrays as operands that offer DLPack alone, JAX's arrays above all. */

static bool
is_of_cuda(int32_t type)
{
    return type == DL_CUDA || type == DL_CUDA_HOST || type == DL_CUDA_MANAGED;
}

static int
read_dtype(const struct dl_tensor *tensor, const char *what, struct operand *operand)
{
    if (dtype_of_dl_type(tensor->dtype, &operand->dtype))
        return 0;
    OWNED PyObject *given = PyUnicode_FromFormat("of DLPack's type code %d, %d bits, %d lanes", (int)tensor->dtype.code,
                                                 (int)tensor->dtype.bits, (int)tensor->dtype.components);
    if (given)
        dtype_refuse(what, given);
    return -1;
}

static int
read_shape(const struct dl_tensor *tensor, const char *what, struct owned_operand *result)
{
    if (tensor->ndim < 0 || tensor->ndim > MAX_DIMENSIONS || (tensor->ndim > 0 && !tensor->shape))
        return refuse(PyExc_ValueError, "%s: its DLPack tensor has %d dimensions, %s; an array has up to %d", what,
                      (int)tensor->ndim, tensor->shape ? "and a shape" : "and no shape", MAX_DIMENSIONS);
    result->operand.ndim = tensor->ndim;
    for (int i = 0; i < tensor->ndim; i++)
        result->extents[i] = tensor->shape[i];
    return device_operand_measure(what, result);
}

/* The tensor's strides are in elements, and may be NULL for C order. */
static int
read_strides(const struct dl_tensor *tensor, const char *what, struct owned_operand *result)
{
    const Py_ssize_t itemsize = (Py_ssize_t)dtype_table[result->operand.dtype].itemsize;
    result->operand.strides = NULL;
    if (!tensor->strides || result->operand.size == 0)
        return 0;
    for (int i = 0; i < result->operand.ndim; i++) {
        const int64_t stride = tensor->shape[i] > 1 ? tensor->strides[i] : 0; /* of one element it may be any number */
        if (__builtin_mul_overflow(stride, itemsize, &result->steps[i]))
            return refuse(PyExc_ValueError, "%s: its stride of %lld elements passes the end of the address space", what,
                          (long long)stride);
    }
    device_operand_set_strides(result, result->steps);
    return 0;
}

static int
check_pointer(const struct dl_tensor *tensor, const char *what, const struct operand *operand)
{
    if (tensor->data)
        return 0;
    return refuse(PyExc_ValueError, "%s: a null pointer for %zu elements", what, operand->size);
}

/* `captured_on`: the tensor's device where its stream captures, else -1. The driver does not know memory that a capture
 * allocates before the graph runs: there the producer alone knows the device. */
static int
read_data(struct module_state *state, const struct dl_tensor *tensor, const char *what, int captured_on,
          struct owned_operand *result)
{
    struct operand *operand = &result->operand;
    if (operand->size == 0)
        return 0;
    if (check_pointer(tensor, what, operand) < 0)
        return -1;
    operand->data = (char *)tensor->data + tensor->byte_offset;
    if ((uintptr_t)operand->data % component_size[dtype_table[operand->dtype].component])
        return refuse(PyExc_ValueError, "%s: its pointer %p is not aligned to its elements", what, operand->data);
    if (captured_on >= 0 && !device_knows_pointer(operand->data)) {
        operand->device = captured_on;
        return 0;
    }
    struct device_range unknown = {0};
    return device_operand_locate(state, what, &unknown, result);
}

/* Starting a device waits while a stream's queue is full, perhaps for a host function of CuPy's that needs the GIL. */
static int
start_device(int device, struct status *status)
{
    if (device_is_started(device))
        return 0;
    return WITHOUT_GIL(device_start(device, status));
}

/* dlpack_import with the tensor's device current: the producer gets only a stream's handle, and that of the legacy
 * default stream is the same on every device. */
static int
import_on(struct module_state *state, int device, PyObject *object, const char *what, const struct library *library,
          void *stream, bool *captured, struct dlpack_import *import)
{
    struct status status;
    struct device_before before;
    if (start_device(device, &status) < 0 || stream_captures(device, stream, captured, &status) < 0 ||
        device_make_current(device, &before, &status) < 0)
        return fail_with(state, &status);
    /* A capturing stream may not wait for work outside, which ends the capture, nor the legacy default stream for work
     * inside: the order is left to the caller. Without a library it is -1, DLPack's value for no order. */
    OWNED PyObject *handle = *captured && library ? PyObject_GetAttrString(library->object, "no_order")
                             : *captured          ? PyLong_FromLong(-1)
                             : stream             ? PyLong_FromVoidPtr(stream)
                                                  : PyLong_FromLong(1);
    const int result = handle ? dlpack_import(state, object, what, handle, import) : -1;
    device_make_current_again(&before);
    return result;
}

int
dlpack_operand_from(struct module_state *state, PyObject *object, const char *what, void *stream,
                    struct owned_operand *result)
{
    struct dl_device device = {0};
    struct dlpack_import import;
    int found = dlpack_device_of(state, object, what, &device);
    if (found <= 0)
        return found;
    if (!is_of_cuda(device.type))
        return 0;
    bool captured = false, ordered = device.type != DL_CUDA_HOST; /* what the host wrote is already there */
    if ((ordered ? import_on(state, device.id, object, what, result->library, stream, &captured, &import)
                 : dlpack_import(state, object, what, Py_None, &import)) < 0)
        return -1;
    result->operand = (struct operand){.place = PLACE_DEVICE,
                                       .device = -1,
                                       .writable = import.writable,
                                       .has_stream = ordered,
                                       .stream = stream,
                                       .stream_kind = STREAM_HOME};
    if (read_dtype(import.tensor, what, &result->operand) < 0 || read_shape(import.tensor, what, result) < 0 ||
        read_strides(import.tensor, what, result) < 0 ||
        read_data(state, import.tensor, what, captured ? device.id : -1, result) < 0) {
        Py_DECREF(import.owner);
        return -1;
    }
    if (result->operand.device < 0 && ordered)
        result->operand.device = device.id;    /* without elements; JAX leaves its last GPU current, not the tensor's */
    OWNED PyObject *before = result->exported; /* goes last: its finalizer may visit the objects of a plan */
    result->exported = import.owner;
    result->needs_keepalive = true;
    return 1;
}

/* NumPy arrays in other libraries' memory on the host. numpy.from_dlpack does not know bfloat16, and makes unversioned
 * tensors read-only. */
static bool
is_on_host(struct dl_device device)
{
    return device.type == DL_CPU || device.type == DL_CUDA_HOST;
}

/* Nothing tells whether the memory exists, but elements beyond the address space are refused. */
static int
read_host_data(const struct dl_tensor *tensor, const char *what, struct owned_operand *result)
{
    struct operand *operand = &result->operand;
    const size_t itemsize = dtype_table[operand->dtype].itemsize;
    size_t bytes = operand->size * itemsize;
    Py_ssize_t low = 0;
    uintptr_t at, end;
    if (!operand->size)
        return 0;
    if (check_pointer(tensor, what, operand) < 0)
        return -1;
    operand->data = (void *)((uintptr_t)tensor->data + tensor->byte_offset);
    if (!__builtin_add_overflow((uintptr_t)tensor->data, tensor->byte_offset, &at) &&
        (!operand->strides || layout_bounds(operand->ndim, operand->shape, operand->strides, itemsize, &low, &bytes)) &&
        at >= (uintptr_t)-low && !__builtin_add_overflow(at - (uintptr_t)-low, bytes, &end))
        return 0;
    return refuse(PyExc_ValueError, "%s: its offset or strides lead to elements outside the address space", what);
}

/* Takes the reference to the owner, which becomes the array's base. */
static PyObject *
array_of(struct module_state *state, const struct dlpack_import *import)
{
    const struct dl_tensor *tensor = import->tensor;
    struct owned_operand view = {0};
    PyArray_Descr *descr = NULL;
    if (!is_on_host(tensor->device))
        PyErr_Format(PyExc_BufferError, "x has memory that is not on the host, but on DLPack's device (%d, %d)",
                     (int)tensor->device.type, (int)tensor->device.id);
    else if (read_dtype(tensor, "x", &view.operand) == 0 && read_shape(tensor, "x", &view) == 0 &&
             read_strides(tensor, "x", &view) == 0 && read_host_data(tensor, "x", &view) == 0)
        descr = dtype_descr(state, view.operand.dtype);
    PyObject *array =
        descr ? PyArray_NewFromDescr(&PyArray_Type, descr, view.operand.ndim, view.operand.shape, view.operand.strides,
                                     view.operand.data, import->writable ? NPY_ARRAY_WRITEABLE : 0, NULL)
              : NULL;
    if (!array)
        Py_DECREF(import->owner);
    else if (PyArray_SetBaseObject((PyArrayObject *)array, import->owner) < 0) /* takes the owner in either case */
        Py_CLEAR(array);
    return array;
}

PyObject *
py_host_view(PyObject *module, PyObject *object)
{
    struct module_state *state = PyModule_GetState(module);
    struct dl_device device = {0};
    struct dlpack_import import;
    int found = dlpack_device_of(state, object, "x", &device);
    if (found < 0)
        return NULL;
    if (found == 0 || !is_on_host(device))
        return PyErr_Format(PyExc_BufferError, "x has no __dlpack__, or its memory is not on the host");
    return dlpack_import(state, object, "x", Py_None, &import) < 0 ? NULL : array_of(state, &import);
}
