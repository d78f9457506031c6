/* Device arrays as operands: __cuda_array_interface__, versions 0 to 3, read to the letter. */
#include <stdint.h>
#include <string.h>

#include "arguments.h"
#include "device.h"
#include "device_array.h"
#include "errors.h"
#include "foreign.h"
#include "layout.h"
#include "operand_from.h"

#define INTERFACE "__cuda_array_interface__"

/* Borrowed. NULL with or without an exception where the key is not there. */
static PyObject *
entry(PyObject *interface, const char *key)
{
    PyObject *name = PyUnicode_FromString(key);
    PyObject *value = name ? PyDict_GetItemWithError(interface, name) : NULL;
    Py_XDECREF(name);
    return value;
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
wrong_type(const char *what, const char *key, const char *due, PyObject *given)
{
    PyObject *type = PyType_GetName(Py_TYPE(given));
    if (type)
        PyErr_Format(PyExc_TypeError, "%s: '%s' of its " INTERFACE " must be %s, not %U", what, key, due, type);
    Py_XDECREF(type);
    return -1;
}

static int
read_sizes(PyObject *tuple, const char *what, const char *key, Py_ssize_t *sizes)
{
    char entry_of[80];
    PyOS_snprintf(entry_of, sizeof entry_of, "%s: '%s' of its " INTERFACE, what, key);
    return sizes_of_tuple(tuple, entry_of, sizes);
}

/* Every number of elements whose bytes can be counted is fine, and zero of anything is. */
int
device_operand_measure(const char *what, struct device_operand *result)
{
    size_t size = 1;
    bool empty = false, overflow = false, negative = false;
    for (int i = 0; i < result->ndim; i++) {
        Py_ssize_t extent = result->extents[i];
        negative |= extent < 0;
        empty |= extent == 0;
        overflow |= __builtin_mul_overflow(size, (size_t)extent, &size);
    }
    size_t itemsize = dtype_table[result->operand.dtype].itemsize;
    result->shape = result->extents;
    result->operand.size = empty ? 0 : size;
    if (!negative && (empty || (!overflow && size <= (size_t)PY_SSIZE_T_MAX / itemsize)))
        return 0;
    PyObject *shape = tuple_of_sizes(result->ndim, result->shape);
    if (shape)
        PyErr_Format(PyExc_ValueError,
                     negative ? "%s: a negative extent in its shape %R" : "%s: its shape %R is larger than any memory",
                     what, shape);
    Py_XDECREF(shape);
    return -1;
}

static int
read_shape(PyObject *interface, const char *what, struct device_operand *result)
{
    PyObject *shape = required(interface, "shape", what);
    if (!shape)
        return -1;
    result->ndim = read_sizes(shape, what, "shape", result->extents);
    return result->ndim < 0 ? -1 : device_operand_measure(what, result);
}

/* Whether a two-byte void is bfloat16: the interface has no name for it, so its library or its dtype has to say. */
static int
is_bfloat16(struct module_state *state, const struct device_operand *result)
{
    int known = foreign_says(result->library, "void2_is_bfloat16");
    if (known)
        return known;
    PyObject *dtype = PyObject_GetAttr(result->exported, state->names[NAME_DTYPE]);
    PyErr_Clear();
    known = dtype && PyArray_DescrCheck(dtype) && dtype_of_descr(state, (PyArray_Descr *)dtype) == DTYPE_BFLOAT16;
    Py_XDECREF(dtype);
    return known;
}

static int
read_typestr(struct module_state *state, PyObject *interface, const char *what, struct device_operand *result)
{
    PyObject *given = required(interface, "typestr", what);
    if (!given)
        return -1;
    if (!PyUnicode_Check(given))
        return wrong_type(what, "typestr", "a str", given);
    const char *typestr = PyUnicode_AsUTF8AndSize(given, NULL);
    if (!typestr)
        return -1;

    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        const char *native = dtype_table[dtype].typestr;
        bool orderless = native[0] == '|' || dtype == DTYPE_BFLOAT16;
        if (!*typestr || strcmp(typestr + 1, native + 1) != 0 || !strchr(orderless ? "|<=" : "<=", *typestr))
            continue;
        int taken = dtype == DTYPE_BFLOAT16 ? is_bfloat16(state, result) : 1;
        if (taken < 0)
            return -1;
        if (!taken)
            break;
        result->operand.dtype = (enum dtype)dtype;
        return 0;
    }
    dtype_refuse(what, given);
    return -1;
}

/* Fields that are not what typestr says: elements of a structure, which only a list of them describes. */
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
    PyErr_Format(PyExc_TypeError,
                 "%s: 'descr' of its " INTERFACE " is %R, which is not one element of its typestr %R; vecadd does not "
                 "add structures",
                 what, given, typestr);
    return -1;
}

static int
read_data(PyObject *interface, const char *what, struct device_operand *result)
{
    PyObject *data = required(interface, "data", what);
    if (!data)
        return -1;
    bool pair = PyTuple_Check(data) && PyTuple_Size(data) == 2;
    PyObject *pointer = pair ? PyTuple_GetItem(data, 0) : NULL;
    if (!pair || !PyLong_Check(pointer) || !PyBool_Check(PyTuple_GetItem(data, 1)))
        return wrong_type(what, "data", "a pair (pointer, read-only) of int and bool", data);

    unsigned long long address = PyLong_AsUnsignedLongLong(pointer);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%s: %R is no pointer", what, pointer);
        return -1;
    }
    if (!address && result->operand.size) {
        PyErr_Format(PyExc_ValueError, "%s: a null pointer for %zu elements", what, result->operand.size);
        return -1;
    }
    result->operand.data = (void *)(uintptr_t)address;
    result->operand.writable = Py_IsFalse(PyTuple_GetItem(data, 1));
    return 0;
}

/* Returns it, or -1 with an exception set. */
static int
read_version(PyObject *interface, const char *what)
{
    PyObject *given = required(interface, "version", what);
    if (!given)
        return -1;
    if (!PyLong_Check(given))
        return wrong_type(what, "version", "an int", given);
    long version = PyLong_AsLong(given);
    PyErr_Clear(); /* a number too large for a long is -1 */
    if (version >= 0 && version <= 3)
        return (int)version;
    PyErr_Format(PyExc_ValueError, "%s: version %R of " INTERFACE "; vecadd knows 0 to 3", what, given);
    return -1;
}

/* Any int is a stride, of axes of one element and of arrays of none as well, where it means nothing. */
static int
read_strides(PyObject *interface, const char *what, struct device_operand *result)
{
    PyObject *given = entry(interface, "strides");
    result->strides = NULL;
    if (!given || Py_IsNone(given)) {
        if (result->operand.size)
            device_operand_set_strides(result, NULL);
        return PyErr_Occurred() ? -1 : 0;
    }
    int count = read_sizes(given, what, "strides", result->steps);
    if (count < 0)
        return -1;
    if (count != result->ndim) {
        PyErr_Format(PyExc_ValueError, "%s: %d strides for %d dimensions", what, count, result->ndim);
        return -1;
    }
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
    PyErr_Format(PyExc_NotImplementedError, "%s has a mask, and vecadd does not add masked device arrays", what);
    return -1;
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

/* Asks the driver whose memory it is; and its library on which stream it works there. */
static int
locate(struct module_state *state, const char *what, struct device_operand *result)
{
    struct operand *operand = &result->operand;
    if (operand->size == 0)
        return 0;
    struct device_range unknown = {0};
    if (device_operand_locate(state, what, &unknown, result) < 0)
        return -1;
    int found = foreign_current_stream(result->library, operand->device, &operand->stream);
    if (found > 0) {
        operand->has_stream = true;
        operand->stream_kind = STREAM_CURRENT;
    }
    return found < 0 ? -1 : 0;
}

static int
read_interface(struct module_state *state, PyObject *interface, const char *what, struct device_operand *result)
{
    if (!PyDict_Check(interface)) {
        PyErr_Format(PyExc_TypeError, "%s: its " INTERFACE " must be a dict, not %R", what, interface);
        return -1;
    }
    PyObject *copy = PyDict_Copy(interface); /* it keeps the values alive whatever their own code does meanwhile */
    if (!copy)
        return -1;
    const int version = read_version(copy, what);
    int failed = version < 0 || read_typestr(state, copy, what, result) < 0 || check_descr(copy, what) < 0 ||
                 read_shape(copy, what, result) < 0 || read_data(copy, what, result) < 0 ||
                 read_strides(copy, what, result) < 0 || check_mask(copy, what) < 0 ||
                 (version >= 3 && read_stream(copy, what, &result->operand) < 0) || locate(state, what, result) < 0;
    Py_DECREF(copy);
    return failed ? -1 : 0;
}

/* Has the next tensor of this type go by a shorter way. */
static int
learn(struct module_state *state, PyObject *object, PyObject *library)
{
    int known = foreign_says(library, "has_exchange_table");
    if (known != 0)
        return known > 0 ? torch_learn(state, object, library) : -1;
    known = foreign_says(library, "has_attributes");
    return known > 0 ? cupy_learn(state, object, library) : known;
}

static int
read_finish(struct module_state *state, PyObject *object, int found, struct device_operand *result)
{
    if (found > 0 && learn(state, object, result->library) < 0)
        found = -1;
    if (found <= 0)
        device_operand_clear(result);
    return found;
}

int
device_operand_from(struct module_state *state, PyObject *object, enum role role, PyObject *stream,
                    struct device_operand *result)
{
    struct operand_reader reader = {0};
    return device_operand_read(state, object, role, stream, &reader, result);
}

int
device_operand_read(struct module_state *state, PyObject *object, enum role role, PyObject *stream,
                    struct operand_reader *reader, struct device_operand *result)
{
    result->exported = result->library = NULL;
    result->lent = false;
    if (Py_TYPE(object) == state->device_array_type) {
        struct device_array *array = (struct device_array *)object;
        result->operand = device_array_operand(array);
        result->ndim = array->ndim;
        result->shape = array->shape;
        result->strides = array->contiguous ? NULL : device_array_strides(array);
        return 1;
    }
    int found = torch_operand_from(state, object, role, reader, result);
    if (found == 0)
        found = cupy_operand_from(state, object, role, reader, result);
    if (found != 0)
        return found;
    found = foreign_export(state, object, role == ROLE_OUT, &result->library, &result->exported);
    if (found <= 0)
        return found;

    PyObject *interface;
    found = foreign_says(result->library, "by_dlpack_only");
    if (found >= 0)
        found = found ? 0 : optional_attribute(result->exported, state->names[NAME_CUDA_ARRAY_INTERFACE], &interface);
    if (found == 0) {
        void *handle = NULL;
        if (reader->defers)
            return DEVICE_OPERAND_DEFERRED;
        if (!stream || stream_from_object(state, stream, &handle) == 0)
            return device_operand_read_deferred(state, object, role, handle, result);
        found = -1;
    } else if (found > 0) {
        result->operand = (struct operand){.place = PLACE_DEVICE, .device = -1};
        found = read_interface(state, interface, role_name[role], result) < 0 ? -1 : 1;
        Py_DECREF(interface);
    }
    return read_finish(state, object, found, result);
}

int
device_operand_read_deferred(struct module_state *state, PyObject *object, enum role role, void *stream,
                             struct device_operand *result)
{
    int found = dlpack_operand_from(state, result->exported, role_name[role], stream, result);
    return read_finish(state, object, found, result);
}

void
device_operand_set_strides(struct device_operand *result, const Py_ssize_t *strides)
{
    const struct dtype_row *row = &dtype_table[result->operand.dtype];
    const bool aligned = (uintptr_t)result->operand.data % lane_size[row->lane] == 0;
    result->strides = NULL;
    if (aligned && (!strides || layout_is_contiguous(result->ndim, result->shape, strides, row->itemsize)))
        return;
    result->strides = result->steps;
    if (strides && strides != result->steps)
        memcpy(result->steps, strides, (size_t)result->ndim * sizeof *strides);
    Py_ssize_t step = (Py_ssize_t)row->itemsize;
    for (int i = result->ndim; !strides && i-- > 0; step *= result->shape[i])
        result->steps[i] = step;
}

int
device_operand_locate(struct module_state *state, const char *what, struct device_range *known,
                      struct device_operand *result)
{
    struct operand *operand = &result->operand;
    const size_t itemsize = dtype_table[operand->dtype].itemsize;
    struct status status;
    Py_ssize_t low = 0;
    size_t bytes = operand->size * itemsize;
    if (result->strides && (!layout_bounds(result->ndim, result->shape, result->strides, itemsize, &low, &bytes) ||
                            (uintptr_t)operand->data < (uintptr_t)-low)) {
        PyErr_Format(PyExc_ValueError, "%s: its strides lead to elements outside the address space", what);
        return -1;
    }
    if (device_check_pointer_near((const char *)operand->data + low, bytes, what, known, &operand->device, &status) ==
        0)
        return 0;
    status_raise(state, &status);
    return -1;
}

void
device_operand_clear(struct device_operand *operand)
{
    Py_CLEAR(operand->library);
    Py_CLEAR(operand->exported);
}

bool
device_operand_is(const struct device_operand *operand, enum dtype dtype, int ndim, const Py_ssize_t *shape)
{
    bool is = operand->operand.dtype == dtype && operand->ndim == ndim && !operand->strides;
    for (int i = 0; i < ndim && is; i++)
        is = operand->shape[i] == shape[i];
    return is;
}

bool
device_operand_is_due(const struct device_operand *operand, const struct device_shape *due)
{
    if (!due->strides)
        return device_operand_is(operand, due->dtype, due->ndim, due->shape);
    bool is = operand->operand.dtype == due->dtype && operand->ndim == due->ndim && operand->strides;
    for (int i = 0; is && i < due->ndim; i++)
        is = operand->shape[i] == due->shape[i] && (due->shape[i] == 1 || operand->strides[i] == due->strides[i]);
    return is;
}
