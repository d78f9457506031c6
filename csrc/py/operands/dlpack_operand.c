/* Device arrays as operands that offer DLPack alone, JAX's arrays above all. */
#include <stdint.h>

#include "gpu/device.h"
#include "gpu/stream.h"
#include "py/base/errors.h"
#include "py/operands/dlpack_import.h"
#include "py/operands/interop.h"
#include "py/operands/operand_from.h"

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
    PyObject *given = PyUnicode_FromFormat("of DLPack's type code %d, %d bits, %d lanes", (int)tensor->dtype.code,
                                           (int)tensor->dtype.bits, (int)tensor->dtype.components);
    if (given)
        dtype_refuse(what, given);
    Py_XDECREF(given);
    return -1;
}

static int
read_shape(const struct dl_tensor *tensor, const char *what, struct owned_operand *result)
{
    if (tensor->ndim < 0 || tensor->ndim > MAX_DIMENSIONS || (tensor->ndim > 0 && !tensor->shape)) {
        PyErr_Format(PyExc_ValueError, "%s: its DLPack tensor has %d dimensions, %s; an array has up to %d", what,
                     (int)tensor->ndim, tensor->shape ? "and a shape" : "and no shape", MAX_DIMENSIONS);
        return -1;
    }
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
        if (__builtin_mul_overflow(stride, itemsize, &result->steps[i])) {
            PyErr_Format(PyExc_ValueError, "%s: its stride of %lld elements passes the end of the address space", what,
                         (long long)stride);
            return -1;
        }
    }
    device_operand_set_strides(result, result->steps);
    return 0;
}

/* `captured_on`: the tensor's device where its stream captures, else -1. The driver does not know memory that a capture
 * allocates before the graph runs: there the producer's word on the device has to do. */
static int
read_data(struct module_state *state, const struct dl_tensor *tensor, const char *what, int captured_on,
          struct owned_operand *result)
{
    struct operand *operand = &result->operand;
    if (operand->size == 0)
        return 0;
    if (!tensor->data) {
        PyErr_Format(PyExc_ValueError, "%s: a null pointer for %zu elements", what, operand->size);
        return -1;
    }
    operand->data = (char *)tensor->data + tensor->byte_offset;
    if ((uintptr_t)operand->data % component_size[dtype_table[operand->dtype].component]) {
        PyErr_Format(PyExc_ValueError, "%s: its pointer %p is not aligned to its elements", what, operand->data);
        return -1;
    }
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
    PyThreadState *released = PyEval_SaveThread();
    int failed = device_start(device, status);
    PyEval_RestoreThread(released);
    return failed;
}

/* dlpack_import with the tensor's device current: the producer gets only a stream's handle, and that of the legacy
 * default stream is the same on every device. */
static int
import_on(struct module_state *state, int device, PyObject *object, const char *what, PyObject *library, void *stream,
          bool *captured, struct dlpack_import *import)
{
    struct status status;
    struct device_before before;
    if (start_device(device, &status) < 0 || stream_captures(device, stream, captured, &status) < 0 ||
        device_make_current(device, &before, &status) < 0) {
        status_raise(state, &status);
        return -1;
    }
    /* A capturing stream may not wait for work outside, which ends the capture, nor the legacy default stream for work
     * inside: the order is left to the caller. */
    PyObject *handle = *captured ? interop_no_order(library) : stream ? PyLong_FromVoidPtr(stream) : PyLong_FromLong(1);
    const int result = handle ? dlpack_import(state, object, what, handle, import) : -1;
    Py_XDECREF(handle);
    device_make_current_again(&before);
    return result;
}

int
dlpack_operand_from(struct module_state *state, PyObject *object, const char *what, void *stream,
                    struct owned_operand *result)
{
    struct dl_device device;
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
        result->operand.device = device.id; /* without elements; JAX leaves its last GPU current, not the tensor's */
    PyObject *before = result->exported;
    result->exported = import.owner;
    result->needs_keepalive = true;
    Py_XDECREF(before); /* last: its finalizer may collect garbage, which visits what a plan holds */
    return 1;
}
