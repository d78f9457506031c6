#include "py/operands/where.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "py/base/python.h"

static int
refuse_device(PyObject *type, PyObject *object)
{
    return refuse(type, "device must be None, 'cpu', 'hybrid', 'cuda', 'cuda:N' or the GPU's number N, not %R", object);
}

/* The driver says later whether the device exists. */
static int
ordinal_from_int(PyObject *object, int *device)
{
    const Py_ssize_t ordinal = PyNumber_AsSsize_t(object, NULL); /* too large: clipped */
    if (ordinal == -1 && PyErr_Occurred())
        return -1;
    if (ordinal < 0 || ordinal > INT_MAX)
        return refuse(PyExc_ValueError, "there is no device %S: devices are counted from 0", object);
    *device = (int)ordinal;
    return 0;
}

int
device_from_object(PyObject *object, enum device_choice *choice, int *device)
{
    *device = -1;
    *choice = DEVICE_UNSAID;
    if (Py_IsNone(object))
        return 0;
    if (!PyUnicode_Check(object)) {
        if (PyBool_Check(object) || !(PyLong_Check(object) || PyArray_IsScalar(object, Integer)))
            return refuse_device(PyExc_TypeError, object);
        *choice = DEVICE_CUDA;
        return ordinal_from_int(object, device);
    }
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(object, &length);
    if (!text)
        return -1;
    if (strlen(text) != (size_t)length)
        text = "";
    *choice = strcmp(text, "cpu") == 0 ? DEVICE_CPU : strcmp(text, "hybrid") == 0 ? DEVICE_HYBRID : DEVICE_CUDA;
    if (*choice != DEVICE_CUDA || strcmp(text, "cuda") == 0)
        return 0;

    const char *digits = text + 5;
    if (length >= 6 && length <= 9 && strncmp(text, "cuda:", 5) == 0 &&
        strspn(digits, "0123456789") == (size_t)length - 5) {
        *device = 0;
        for (; *digits; digits++)
            *device = 10 * *device + (*digits - '0');
        return 0;
    }
    return refuse_device(PyExc_ValueError, object);
}

/* 0 to 2 name the default streams. Every other handle is an address that the driver reads without a check: handle 3
 * crashed the process (driver 580), so addresses in the first page, which is never mapped, are refused here. */
enum { LAST_NAMED_STREAM = 2, MIN_POINTER = 4096 };

int
stream_from_handle(PyObject *handle, const char *what, void **stream)
{
    if (!PyIndex_Check(handle) || PyBool_Check(handle))
        return refuse(PyExc_TypeError, "%s must be a stream handle, an int, not %R", what, handle);
    OWNED PyObject *number = PyNumber_Index(handle);
    unsigned long long value = number ? PyLong_AsUnsignedLongLong(number) : 0;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError))
        return -1;
    if (PyErr_Occurred() || (value > LAST_NAMED_STREAM && value < MIN_POINTER)) {
        PyErr_Clear();
        return refuse(PyExc_ValueError, "%s: %R is not a stream handle", what, handle);
    }
    *stream = value == 1 ? NULL : (void *)(uintptr_t)value;
    return 0;
}

/* cuda.core's protocol: a method, or an attribute, whose value is (0, handle). */
static int
stream_from_protocol(PyObject *protocol, void **stream)
{
    OWNED PyObject *pair = PyCallable_Check(protocol) ? PyObject_CallNoArgs(protocol) : Py_NewRef(protocol);
    if (!pair)
        return -1;
    int result = -1;
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
        PyErr_Format(PyExc_TypeError, "stream: __cuda_stream__ must give (version, handle), not %R", pair);
    else {
        long version = PyLong_AsLong(PyTuple_GetItem(pair, 0));
        if (version != 0 && !PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "stream: version %ld of __cuda_stream__ is newer than 0", version);
        else if (!PyErr_Occurred())
            result = stream_from_handle(PyTuple_GetItem(pair, 1), "stream", stream);
    }
    return result;
}

/* Numba's handle: a ctypes pointer whose value is None for 0, or any object that int() takes. */
static int
stream_from_numba(PyObject *handle, void **stream)
{
    OWNED PyObject *value = PyObject_GetAttrString(handle, "value");
    if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        value = PyUnicode_Check(handle) || PyFloat_Check(handle) ? Py_NewRef(handle) : PyNumber_Long(handle);
    }
    return !value ? -1 : Py_IsNone(value) ? (*stream = NULL, 0) : stream_from_handle(value, "stream", stream);
}

int
stream_from_object(const struct module_state *state, PyObject *object, void **stream)
{
    static const enum name attributes[] = {NAME_CUDA_STREAM_PROTOCOL, NAME_CUDA_STREAM, NAME_PTR, NAME_HANDLE};
    if (PyIndex_Check(object))
        return stream_from_handle(object, "stream", stream);

    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        OWNED PyObject *value = NULL;
        const int found = optional_attribute(object, state->names[attributes[i]], &value);
        if (found < 0)
            return -1;
        if (!found)
            continue;
        return attributes[i] == NAME_CUDA_STREAM_PROTOCOL ? stream_from_protocol(value, stream)
               : attributes[i] == NAME_HANDLE             ? stream_from_numba(value, stream)
                                                          : stream_from_handle(value, "stream", stream);
    }
    return refuse(PyExc_TypeError,
                  "stream must be an int (0: the legacy default stream) or an object with __cuda_stream__, "
                  ".cuda_stream, .ptr or .handle, not %R",
                  object);
}
