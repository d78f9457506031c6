/* CuPy's arrays by their attributes, 0.3 us an array where __cuda_array_interface__, which builds a dict, takes 2.
 *
 * Reads only plain arrays: a cupy.ndarray itself, C-contiguous and aligned, with elements. All others, and any with
 * unexpected attributes, are left to operands/device.c, which reports what is wrong with them. */
#include <limits.h>
#include <stdint.h>

#include "gpu/device.h"
#include "py/base/python.h"
#include "py/operands/dtypes.h"
#include "py/operands/library.h"
#include "py/operands/operands.h"

/* Attributes of cupy.ndarray; from PTR on of the MemoryPointer in DATA, from BEGIN on of the memory in MEM. */
enum attribute { CONTIGUOUS, DTYPE, NDIM, SIZE, SHAPE, DATA, PTR, MEM, BEGIN, BYTES, DEVICE, ATTRIBUTES };

static const enum name attribute_name[ATTRIBUTES] = {
    [CONTIGUOUS] = NAME_C_CONTIGUOUS,
    [DTYPE] = NAME_DTYPE,
    [NDIM] = NAME_NDIM,
    [SIZE] = NAME_SIZE,
    [SHAPE] = NAME_SHAPE,
    [DATA] = NAME_DATA,
    [PTR] = NAME_PTR,
    [MEM] = NAME_MEM,
    [BEGIN] = NAME_PTR,
    [BYTES] = NAME_SIZE,
    [DEVICE] = NAME_DEVICE_ID,
};

struct cupy_kind {
    struct kind kind;
    PyObject *current_stream; /* get_current_stream: owned */
    PyObject *pooled;         /* the type of memory from CuPy's own pool, owned; None: no such type */
    struct descriptor attribute[ATTRIBUTES];
};

static void
kind_clear(struct kind *given)
{
    struct cupy_kind *kind = (struct cupy_kind *)given;
    Py_XDECREF(kind->current_stream);
    Py_XDECREF(kind->pooled);
    for (int i = 0; i < ATTRIBUTES; i++)
        descriptor_clear(&kind->attribute[i]);
}

/* Returns 0, or -1 with an exception set. */
static int
find_attributes(const struct module_state *state, PyObject *array, struct cupy_kind *kind)
{
    OWNED PyObject *data = PyObject_GetAttr(array, state->names[NAME_DATA]);
    if (!data)
        return -1;
    for (int i = 0; i < ATTRIBUTES; i++) {
        PyObject *type = i < PTR ? (PyObject *)Py_TYPE(array) : i < BEGIN ? (PyObject *)Py_TYPE(data) : kind->pooled;
        kind->attribute[i] = descriptor_find(type, state->names[attribute_name[i]]);
    }
    return PyErr_Occurred() ? -1 : 0;
}

struct kind *
cupy_kind_make(struct module_state *state, PyObject *object, const struct library *library)
{
    OWNED PyObject *type = PyObject_GetAttrString(library->object, "array_type");
    if (type != (PyObject *)Py_TYPE(object))
        return NULL;
    struct cupy_kind *kind = PyMem_Calloc(1, sizeof *kind);
    if (!kind)
        return PyErr_NoMemory(), NULL;
    kind->kind = (struct kind){library, kind_clear};
    kind->current_stream = PyObject_GetAttrString(library->object, "stream_of");
    kind->pooled = kind->current_stream ? PyObject_GetAttrString(library->object, "pooled_type") : NULL;
    if (kind->pooled && find_attributes(state, object, kind) == 0)
        return &kind->kind;
    if (kind->pooled)
        clear_refusal(); /* an array without `data`: an unknown version of CuPy */
    kind_clear(&kind->kind);
    PyMem_Free(kind);
    return NULL;
}

/* Converts `value` to a number and takes its reference; false where it is not a number. */
static bool
take_number(PyObject *value, size_t *number)
{
    OWNED PyObject *given = value;
    *number = given ? PyLong_AsSize_t(given) : 0;
    return *number != (size_t)-1 && (*number || !PyErr_Occurred());
}

static bool
is_contiguous(const struct cupy_kind *kind, PyObject *array)
{
    OWNED PyObject *flag = descriptor_get(&kind->attribute[CONTIGUOUS], array);
    return flag && Py_IsTrue(flag);
}

static bool
read_dtype(struct module_state *state, const struct cupy_kind *kind, PyObject *array, struct operand *operand)
{
    OWNED PyObject *dtype = descriptor_get(&kind->attribute[DTYPE], array);
    const int found = dtype && PyArray_DescrCheck(dtype) ? dtype_of_descr(state, (PyArray_Descr *)dtype) : -1;
    operand->dtype = (enum dtype)found;
    return found >= 0;
}

static bool
read_extents(const struct cupy_kind *kind, PyObject *array, int ndim, Py_ssize_t *extents)
{
    OWNED PyObject *shape = descriptor_get(&kind->attribute[SHAPE], array);
    const bool found = shape && PyTuple_CheckExact(shape) && PyTuple_Size(shape) == ndim;
    for (int i = 0; found && i < ndim; i++)
        extents[i] = PyLong_AsSsize_t(PyTuple_GetItem(shape, i));
    return found;
}

/* CuPy builds the tuple `shape` from a list that it builds from a vector. For one dimension, `size` gives the same in
 * half the time. */
static bool
read_shape(const struct cupy_kind *kind, PyObject *array, struct owned_operand *result)
{
    size_t ndim, size;
    if (!take_number(descriptor_get(&kind->attribute[NDIM], array), &ndim) || ndim > MAX_DIMENSIONS ||
        !take_number(descriptor_get(&kind->attribute[SIZE], array), &size))
        return false;
    size_t product = size;
    if (ndim == 1)
        result->extents[0] = (Py_ssize_t)size;
    else if (read_extents(kind, array, (int)ndim, result->extents)) {
        product = 1;
        for (size_t i = 0; i < ndim; i++)
            if (result->extents[i] < 1 || __builtin_mul_overflow(product, (size_t)result->extents[i], &product))
                return false;
    } else
        return false;
    result->operand.ndim = (int)ndim;
    result->operand.shape = result->extents;
    result->operand.strides = NULL;
    result->operand.size = size;
    return size == product && size >= 1 && size <= (size_t)PY_SSIZE_T_MAX / dtype_table[result->operand.dtype].itemsize;
}

/* Sets *known to the range of an array's memory, where its pool tells it; an exception may stay set.
 *
 * Each block of CuPy's pool is its own allocation, so the driver would be asked for each array of a list, and is slower
 * with thousands of them. The pool knows its blocks' ranges. Memory of other origin is not trusted in this way. */
static void
know_block(const struct cupy_kind *kind, PyObject *data, struct device_range *known)
{
    OWNED PyObject *memory = descriptor_get(&kind->attribute[MEM], data);
    size_t begin, bytes, device;
    if (memory && (PyObject *)Py_TYPE(memory) == kind->pooled &&
        take_number(descriptor_get(&kind->attribute[BEGIN], memory), &begin) &&
        take_number(descriptor_get(&kind->attribute[BYTES], memory), &bytes) &&
        take_number(descriptor_get(&kind->attribute[DEVICE], memory), &device) && begin && device < INT_MAX)
        *known = (struct device_range){begin, begin + bytes, (int)device};
    clear_refusal();
}

/* Reads the address. `known` has the last array's range, and is set to this array's if known; NULL: not wanted. */
static bool
read_data(const struct cupy_kind *kind, PyObject *array, struct device_range *known, struct operand *operand)
{
    OWNED PyObject *data = descriptor_get(&kind->attribute[DATA], array);
    size_t address;
    const bool found = data && take_number(descriptor_get(&kind->attribute[PTR], data), &address);
    if (found && known && (address < known->begin || address >= known->end))
        know_block(kind, data, known);
    if (!found || PyErr_Occurred() || address % component_size[dtype_table[operand->dtype].component] != 0)
        return false;
    operand->data = (void *)(uintptr_t)address;
    return address != 0;
}

/* The current thread's stream in CuPy. */
static bool
read_stream(const struct module_state *state, const struct cupy_kind *kind, struct known_stream *known,
            struct operand *operand)
{
    if (known->device == operand->device + 1) {
        operand->stream = known->stream;
        return true;
    }
    OWNED PyObject *device = PyLong_FromLong(operand->device);
    OWNED PyObject *stream = device ? PyObject_CallFunctionObjArgs(kind->current_stream, device, NULL) : NULL;
    size_t handle;
    if (!stream || !take_number(PyObject_GetAttr(stream, state->names[NAME_PTR]), &handle))
        return false;
    operand->stream = handle == 1 ? NULL : (void *)(uintptr_t)handle; /* 1 and 0 both name the legacy default stream */
    *known = (struct known_stream){operand->device + 1, operand->stream};
    return true;
}

int
cupy_operand_from(struct module_state *state, PyObject *object, const struct kind *given, enum role role,
                  struct operand_reader *reader, struct owned_operand *result)
{
    const struct cupy_kind *kind = (const struct cupy_kind *)given;
    struct operand *operand = &result->operand;
    struct status status;
    *operand = (struct operand){
        .place = PLACE_DEVICE, .device = -1, .writable = true, .has_stream = true, .stream_kind = STREAM_CURRENT};
    if (!is_contiguous(kind, object) || !read_dtype(state, kind, object, operand) ||
        !read_shape(kind, object, result) || !read_data(kind, object, &reader->range[role], operand) ||
        device_check_pointer_near(operand->data, operand->size * dtype_table[operand->dtype].itemsize, role_name[role],
                                  &reader->range[role], &operand->device, &status) < 0 ||
        !read_stream(state, kind, &reader->cupy_stream, operand))
        return clear_refusal(); /* operands/device.c reads it again and reports any error */
    result->exported = Py_NewRef(object);
    result->library = given->library;
    return 1;
}

PyObject *
cupy_empty_like(struct module_state *state, const struct owned_operand *like, const struct device_shape *expected,
                struct owned_operand *result)
{
    const struct kind *found = like->exported ? kind_of(state, like->exported) : NULL;
    const struct cupy_kind *kind = (const struct cupy_kind *)found;
    struct status status;
    int device;
    if (!found || !library_is(found->library, LIBRARY_HAS_ATTRIBUTES) || like->operand.strides ||
        device_current(&device, &status) < 0 || device != like->operand.device)
        return NULL;
    PyObject *type = (PyObject *)Py_TYPE(like->exported);
    OWNED PyObject *shape = descriptor_get(&kind->attribute[SHAPE], like->exported);
    OWNED PyObject *dtype = shape ? descriptor_get(&kind->attribute[DTYPE], like->exported) : NULL;
    OWNED PyObject *made = dtype ? PyObject_CallFunctionObjArgs(type, shape, dtype, NULL) : NULL;
    if (made && (PyObject *)Py_TYPE(made) == type) {
        result->operand = operand_of_sum(expected, like->operand.device, NULL, like->operand.stream);
        if (read_data(kind, made, NULL, &result->operand)) {
            result->exported = Py_NewRef(made);
            result->library = like->library;
            return hand_out(&made);
        }
    }
    clear_refusal(); /* vecadd.interop makes one, or raises CuPy's own error */
    return NULL;
}
