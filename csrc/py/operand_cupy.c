/* CuPy's arrays by their attributes, 0.3 us an array where __cuda_array_interface__ makes a dict of it in 2.
 *
 * Only what is plain goes this way: a cupy.ndarray itself, C-contiguous and aligned, with elements. All else, and
 * whatever surprises here, is left to operand_cai.c, which says what is wrong with it. */
#include <stdint.h>

#include "arguments.h"
#include "device.h"
#include "operand_from.h"

int
cupy_learn(struct module_state *state, PyObject *object, PyObject *library)
{
    if (state->cupy_type)
        return 0;
    PyObject *known = PyObject_GetAttrString(library, "array_type");
    PyObject *current_stream = known ? PyObject_GetAttrString(library, "stream_of") : NULL;
    const int result = current_stream ? 0 : -1;
    if (current_stream && known == (PyObject *)Py_TYPE(object)) {
        state->cupy_library = Py_NewRef(library);
        state->cupy_current_stream = Py_NewRef(current_stream);
        state->cupy_type = Py_NewRef(known);
    }
    Py_XDECREF(current_stream);
    Py_XDECREF(known);
    return result;
}

/* The number that an attribute of `object` is; false where it is none. */
static bool
read_number(PyObject *object, PyObject *name, size_t *number)
{
    PyObject *value = PyObject_GetAttr(object, name);
    *number = value ? PyLong_AsSize_t(value) : 0;
    Py_XDECREF(value);
    return !PyErr_Occurred();
}

static bool
is_contiguous(const struct module_state *state, PyObject *array)
{
    PyObject *flag = PyObject_GetAttr(array, state->names[NAME_C_CONTIGUOUS]);
    const bool contiguous = flag && Py_IsTrue(flag);
    Py_XDECREF(flag);
    return contiguous;
}

static bool
read_dtype(struct module_state *state, PyObject *array, struct operand *operand)
{
    PyObject *dtype = PyObject_GetAttr(array, state->names[NAME_DTYPE]);
    const int found = dtype && PyArray_DescrCheck(dtype) ? dtype_of_descr(state, (PyArray_Descr *)dtype) : -1;
    Py_XDECREF(dtype);
    operand->dtype = (enum dtype)found;
    return found >= 0;
}

static bool
read_shape(const struct module_state *state, PyObject *array, struct device_operand *result)
{
    PyObject *shape = PyObject_GetAttr(array, state->names[NAME_SHAPE]);
    result->ndim = shape && PyTuple_CheckExact(shape) ? (int)PyTuple_Size(shape) : MAX_DIMENSIONS + 1;
    size_t size = 1;
    bool fits = result->ndim <= MAX_DIMENSIONS;
    for (int i = 0; fits && i < result->ndim; i++) {
        result->extents[i] = PyLong_AsSsize_t(PyTuple_GetItem(shape, i));
        fits = result->extents[i] >= 1 && !__builtin_mul_overflow(size, (size_t)result->extents[i], &size);
    }
    Py_XDECREF(shape);
    result->shape = result->extents;
    result->strides = NULL;
    result->operand.size = size;
    return fits && size <= (size_t)PY_SSIZE_T_MAX / dtype_table[result->operand.dtype].itemsize;
}

static bool
read_data(const struct module_state *state, PyObject *array, struct operand *operand)
{
    PyObject *data = PyObject_GetAttr(array, state->names[NAME_DATA]);
    size_t address;
    const bool found = data && read_number(data, state->names[NAME_PTR], &address);
    Py_XDECREF(data);
    if (!found || address % lane_size[dtype_table[operand->dtype].lane] != 0)
        return false;
    operand->data = (void *)(uintptr_t)address;
    return address != 0;
}

/* CuPy's stream of this thread. */
static bool
read_stream(const struct module_state *state, struct known_stream *known, struct operand *operand)
{
    if (known->device == operand->device + 1) {
        operand->stream = known->stream;
        return true;
    }
    PyObject *device = PyLong_FromLong(operand->device);
    PyObject *stream = device ? PyObject_CallFunctionObjArgs(state->cupy_current_stream, device, NULL) : NULL;
    size_t handle;
    const bool found = stream && read_number(stream, state->names[NAME_PTR], &handle);
    Py_XDECREF(stream);
    Py_XDECREF(device);
    if (!found)
        return false;
    operand->stream = handle == 1 ? NULL : (void *)(uintptr_t)handle; /* the legacy default stream's two spellings */
    *known = (struct known_stream){operand->device + 1, operand->stream};
    return true;
}

int
cupy_operand_from(struct module_state *state, PyObject *object, enum role role, struct operand_reader *reader,
                  struct device_operand *result)
{
    if ((PyObject *)Py_TYPE(object) != state->cupy_type)
        return 0;
    struct operand *operand = &result->operand;
    struct status status;
    *operand = (struct operand){
        .place = PLACE_DEVICE, .device = -1, .writable = true, .has_stream = true, .stream_kind = STREAM_CURRENT};
    if (!is_contiguous(state, object) || !read_dtype(state, object, operand) || !read_shape(state, object, result) ||
        !read_data(state, object, operand) ||
        device_check_pointer_near(operand->data, operand->size * dtype_table[operand->dtype].itemsize, role_name[role],
                                  &reader->range[role], &operand->device, &status) < 0 ||
        !read_stream(state, &reader->cupy_stream, operand)) {
        PyErr_Clear(); /* whatever it is, operand_cai.c meets it again */
        return 0;
    }
    result->exported = Py_NewRef(object);
    result->library = Py_NewRef(state->cupy_library);
    return 1;
}

PyObject *
cupy_empty_like(struct module_state *state, const struct device_operand *like, struct device_operand *result)
{
    struct status status;
    int device;
    if (!like->exported || (PyObject *)Py_TYPE(like->exported) != state->cupy_type || like->strides ||
        device_current(&device, &status) < 0 || device != like->operand.device)
        return NULL;
    PyObject *shape = PyObject_GetAttr(like->exported, state->names[NAME_SHAPE]);
    PyObject *dtype = shape ? PyObject_GetAttr(like->exported, state->names[NAME_DTYPE]) : NULL;
    PyObject *made = dtype ? PyObject_CallFunctionObjArgs(state->cupy_type, shape, dtype, NULL) : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    if (made && (PyObject *)Py_TYPE(made) == state->cupy_type) {
        /* What was asked for is known; only the pointer is new. */
        *result = *like;
        for (int i = 0; i < like->ndim; i++)
            result->extents[i] = like->shape[i];
        result->shape = result->extents;
        result->operand.writable = true;
        if (read_data(state, made, &result->operand)) {
            result->exported = Py_NewRef(made);
            result->library = Py_NewRef(like->library);
            return made;
        }
    }
    Py_XDECREF(made);
    PyErr_Clear(); /* vecadd._foreign makes one, or says in CuPy's words why there is none */
    return NULL;
}
