/* Steps shared by all readers of device arrays, and the reader of __cuda_array_interface__, versions 0 to 3. */
#include <stdint.h>
#include <string.h>

#include "base/layout.h"
#include "gpu/device.h"
#include "py/base/python.h"
#include "py/operands/dtypes.h"
#include "py/operands/library.h"
#include "py/operands/operands.h"
#include "py/operands/where.h"

void
device_operand_set_strides(struct owned_operand *result, const Py_ssize_t *strides)
{
    struct operand *operand = &result->operand;
    const struct dtype_row *row = &dtype_table[operand->dtype];
    const bool aligned = (uintptr_t)operand->data % component_size[row->component] == 0;
    operand->strides = NULL;
    if (aligned && (!strides || layout_is_contiguous(operand->ndim, operand->shape, strides, row->itemsize)))
        return;
    operand->strides = result->steps;
    if (strides && strides != result->steps)
        memcpy(result->steps, strides, (size_t)operand->ndim * sizeof *strides);
    Py_ssize_t step = (Py_ssize_t)row->itemsize;
    for (int i = operand->ndim; !strides && i-- > 0; step *= operand->shape[i])
        result->steps[i] = step;
}

int
device_operand_locate(struct module_state *state, const char *what, struct device_range *known,
                      struct owned_operand *result)
{
    struct operand *operand = &result->operand;
    const size_t itemsize = dtype_table[operand->dtype].itemsize;
    struct status status;
    Py_ssize_t low = 0;
    size_t bytes = operand->size * itemsize;
    if (operand->strides && (!layout_bounds(operand->ndim, operand->shape, operand->strides, itemsize, &low, &bytes) ||
                             (uintptr_t)operand->data < (uintptr_t)-low))
        return refuse(PyExc_ValueError, "%s: its strides lead to elements outside the address space", what);
    if (device_check_pointer_near((const char *)operand->data + low, bytes, what, known, &operand->device, &status) ==
        0)
        return 0;
    return fail_with(state, &status);
}

void
device_operand_clear(struct owned_operand *operand)
{
    Py_CLEAR(operand->exported);
}

bool
operand_is(const struct operand *operand, enum dtype dtype, int ndim, const Py_ssize_t *shape)
{
    bool is = operand->dtype == dtype && operand->ndim == ndim && !operand->strides;
    for (int i = 0; i < ndim && is; i++)
        is = operand->shape[i] == shape[i];
    return is;
}

bool
operand_is_expected(const struct operand *operand, const struct device_shape *expected)
{
    if (!expected->strides)
        return operand_is(operand, expected->dtype, expected->ndim, expected->shape);
    bool is = operand->dtype == expected->dtype && operand->ndim == expected->ndim && operand->strides;
    for (int i = 0; is && i < expected->ndim; i++)
        is = operand->shape[i] == expected->shape[i] &&
             (expected->shape[i] == 1 || operand->strides[i] == expected->strides[i]);
    return is;
}

struct operand
operand_of_sum(const struct device_shape *expected, int device, void *data, void *stream)
{
    struct operand sum = {.data = data,
                          .size = 1,
                          .dtype = expected->dtype,
                          .place = PLACE_DEVICE,
                          .device = device,
                          .writable = true,
                          .has_stream = true,
                          .stream = stream,
                          .ndim = expected->ndim,
                          .shape = expected->shape,
                          .strides = expected->strides};
    for (int i = 0; i < expected->ndim; i++)
        sum.size *= (size_t)expected->shape[i];
    return sum;
}

int
device_operand_measure(const char *what, struct owned_operand *result)
{
    struct operand *operand = &result->operand;
    bool negative = false;
    operand->shape = result->extents;
    if (layout_count(operand->ndim, operand->shape, dtype_table[operand->dtype].itemsize, &operand->size))
        return 0;
    for (int i = 0; i < operand->ndim; i++)
        negative = negative || result->extents[i] < 0;
    OWNED PyObject *shape = tuple_of_sizes(operand->ndim, operand->shape);
    if (shape)
        PyErr_Format(PyExc_ValueError,
                     negative ? "%s: a negative extent in its shape %R" : "%s: its shape %R is larger than any memory",
                     what, shape);
    return -1;
}

/* __cuda_array_interface__, versions 0 to 3, read strictly. */

#define INTERFACE "__cuda_array_interface__"

/* Borrowed. NULL where the key is missing or, with an exception set, where the lookup fails. */
static PyObject *
entry(PyObject *interface, const char *key)
{
    OWNED PyObject *name = PyUnicode_FromString(key);
    return name ? PyDict_GetItemWithError(interface, name) : NULL;
}

static PyObject *
required(PyObject *interface, const char *key, const char *what)
{
    PyObject *value = entry(interface, key);
    if (!value && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%s: its " INTERFACE " has no '%s'", what, key);
    return value;
}

static int
wrong_type(const char *what, const char *key, const char *expected, PyObject *given)
{
    OWNED PyObject *type = PyType_GetName(Py_TYPE(given));
    if (type)
        PyErr_Format(PyExc_TypeError, "%s: '%s' of its " INTERFACE " must be %s, not %U", what, key, expected, type);
    return -1;
}

static int
read_sizes(PyObject *tuple, const char *what, const char *key, Py_ssize_t *sizes)
{
    char entry_of[80];
    PyOS_snprintf(entry_of, sizeof entry_of, "%s: '%s' of its " INTERFACE, what, key);
    return sizes_of_tuple(tuple, entry_of, sizes);
}

static int
read_shape(PyObject *interface, const char *what, struct owned_operand *result)
{
    PyObject *shape = required(interface, "shape", what);
    if (!shape)
        return -1;
    result->operand.ndim = read_sizes(shape, what, "shape", result->extents);
    return result->operand.ndim < 0 ? -1 : device_operand_measure(what, result);
}

/* Whether a void of this size is the dtype `expected` of ml_dtypes. The interface cannot name such dtypes, so the
 * array's library or its dtype attribute tells. */
static int
void_is(struct module_state *state, const struct owned_operand *result, enum dtype expected)
{
    OWNED PyObject *dtype = NULL;
    if (library_has_dtype(result->library, expected))
        return 1;
    if (optional_attribute(result->exported, state->names[NAME_DTYPE], &dtype) < 0)
        return -1;
    const int known =
        dtype && PyArray_DescrCheck(dtype) && dtype_of_descr(state, (PyArray_Descr *)dtype) == (int)expected;
    return PyErr_Occurred() ? -1 : known;
}

static int
read_typestr(struct module_state *state, PyObject *interface, const char *what, struct owned_operand *result)
{
    PyObject *given = required(interface, "typestr", what);
    if (!given)
        return -1;
    if (!PyUnicode_Check(given))
        return wrong_type(what, "typestr", "a str", given);
    Py_ssize_t length = 0;
    const char *typestr = PyUnicode_AsUTF8AndSize(given, &length);
    if (!typestr && !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) /* half a character: no dtype's */
        return -1;
    PyErr_Clear(); /* UnicodeEncodeError */

    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        const char *native = dtype_table[dtype].typestr;
        bool orderless = native[0] == '|' || dtype_is_ml((enum dtype)dtype);
        if ((size_t)length != strlen(native) || memcmp(typestr + 1, native + 1, (size_t)length - 1) != 0 ||
            !strchr(orderless ? "|<=" : "<=", *typestr))
            continue;
        int taken = dtype_is_ml((enum dtype)dtype) ? void_is(state, result, (enum dtype)dtype) : 1;
        if (taken < 0)
            return -1;
        if (!taken)
            continue;
        result->operand.dtype = (enum dtype)dtype;
        return 0;
    }
    dtype_refuse(what, given);
    return -1;
}

/* Refuses a 'descr' that differs from typestr: it describes a structure's elements. */
static int
check_descr(PyObject *interface, const char *what)
{
    PyObject *given = entry(interface, "descr"), *typestr = entry(interface, "typestr");
    if (!given || Py_IsNone(given))
        return PyErr_Occurred() ? -1 : 0;
    if (!PyList_Check(given))
        return wrong_type(what, "descr", "a list of fields", given);
    PyObject *field = PyList_Size(given) == 1 ? PyList_GetItem(given, 0) : NULL;
    const bool pair = field && PyTuple_Check(field) && PyTuple_Size(field) == 2;
    PyObject *name = pair ? PyTuple_GetItem(field, 0) : NULL, *type = pair ? PyTuple_GetItem(field, 1) : NULL;
    if (pair && PyUnicode_Check(name) && PyUnicode_GetLength(name) == 0 && PyUnicode_Check(type) &&
        PyUnicode_Compare(type, typestr) == 0)
        return 0;
    return refuse(PyExc_TypeError,
                  "%s: 'descr' of its " INTERFACE " is %R, which is not one element of its typestr %R; vecadd does not "
                  "add structures",
                  what, given, typestr);
}

static int
read_data(PyObject *interface, const char *what, struct owned_operand *result)
{
    PyObject *data = required(interface, "data", what);
    if (!data)
        return -1;
    bool pair = PyTuple_Check(data) && PyTuple_Size(data) == 2;
    PyObject *pointer = pair ? PyTuple_GetItem(data, 0) : NULL;
    if (!pair || !PyLong_Check(pointer) || !PyBool_Check(PyTuple_GetItem(data, 1)))
        return wrong_type(what, "data", "a pair (pointer, read-only) of int and bool", data);

    unsigned long long address = PyLong_AsUnsignedLongLong(pointer);
    if (PyErr_Occurred()) { /* OverflowError: nothing else is raised for an int */
        PyErr_Clear();
        return refuse(PyExc_ValueError, "%s: %R is not a pointer", what, pointer);
    }
    if (!address && result->operand.size)
        return refuse(PyExc_ValueError, "%s: a null pointer for %zu elements", what, result->operand.size);
    result->operand.data = (void *)(uintptr_t)address;
    result->operand.writable = Py_IsFalse(PyTuple_GetItem(data, 1));
    return 0;
}

/* Returns the version, or -1 with an exception set. */
static int
read_version(PyObject *interface, const char *what)
{
    PyObject *given = required(interface, "version", what);
    if (!given)
        return -1;
    if (!PyLong_Check(given))
        return wrong_type(what, "version", "an int", given);
    long version = PyLong_AsLong(given);
    PyErr_Clear(); /* OverflowError: a number too large for a long is -1 */
    if (version >= 0 && version <= 3)
        return (int)version;
    return refuse(PyExc_ValueError, "%s: version %R of " INTERFACE "; vecadd knows 0 to 3", what, given);
}

/* Any int is accepted as a stride where it means nothing: of axes of one element and of arrays without elements. */
static int
read_strides(PyObject *interface, const char *what, struct owned_operand *result)
{
    PyObject *given = entry(interface, "strides");
    result->operand.strides = NULL;
    if (!given || Py_IsNone(given)) {
        if (result->operand.size)
            device_operand_set_strides(result, NULL);
        return PyErr_Occurred() ? -1 : 0;
    }
    int count = read_sizes(given, what, "strides", result->steps);
    if (count < 0)
        return -1;
    if (count != result->operand.ndim)
        return refuse(PyExc_ValueError, "%s: %d strides for %d dimensions", what, count, result->operand.ndim);
    if (result->operand.size)
        device_operand_set_strides(result, result->steps);
    return 0;
}

static int
check_mask(PyObject *interface, const char *what)
{
    PyObject *mask = entry(interface, "mask");
    if (!mask || Py_IsNone(mask))
        return PyErr_Occurred() ? -1 : 0;
    return refuse(PyExc_NotImplementedError, "%s has a mask, and vecadd does not add masked device arrays", what);
}

static int
read_stream(PyObject *interface, const char *what, struct operand *operand)
{
    PyObject *given = entry(interface, "stream");
    if (!given || Py_IsNone(given))
        return PyErr_Occurred() ? -1 : 0;
    if (!PyLong_Check(given) || PyBool_Check(given))
        return wrong_type(what, "stream", "None or an int", given);
    int truth = PyObject_IsTrue(given);
    if (truth == 0)
        PyErr_Format(PyExc_ValueError,
                     "%s: stream 0 in " INTERFACE " is ambiguous and not allowed: 1 is the legacy default stream, 2 "
                     "the per-thread one",
                     what);
    if (truth <= 0 || stream_from_handle(given, what, &operand->stream) < 0)
        return -1;
    operand->has_stream = true;
    operand->stream_kind = STREAM_EXPORTED;
    return 0;
}

/* Asks the driver for the memory's device, and the library for its stream there. */
static int
locate(struct module_state *state, const char *what, struct owned_operand *result)
{
    struct operand *operand = &result->operand;
    if (operand->size == 0)
        return 0;
    struct device_range unknown = {0};
    if (device_operand_locate(state, what, &unknown, result) < 0)
        return -1;
    int found = library_current_stream(result->library, operand->device, &operand->stream);
    if (found > 0) {
        operand->has_stream = true;
        operand->stream_kind = STREAM_CURRENT;
    }
    return found < 0 ? -1 : 0;
}

int
cai_operand_from(struct module_state *state, PyObject *interface, const char *what, struct owned_operand *result)
{
    if (!PyDict_Check(interface))
        return refuse(PyExc_TypeError, "%s: its " INTERFACE " must be a dict, not %R", what, interface);
    result->operand = (struct operand){.place = PLACE_DEVICE, .device = -1};
    OWNED PyObject *copy = PyDict_Copy(interface); /* keeps the values alive whatever their own code does to the dict */
    if (!copy)
        return -1;
    const int version = read_version(copy, what);
    int failed = version < 0 || read_typestr(state, copy, what, result) < 0 || check_descr(copy, what) < 0 ||
                 read_shape(copy, what, result) < 0 || read_data(copy, what, result) < 0 ||
                 read_strides(copy, what, result) < 0 || check_mask(copy, what) < 0 ||
                 (version >= 3 && read_stream(copy, what, &result->operand) < 0) || locate(state, what, result) < 0;
    return failed ? -1 : 0;
}
