#include "py/lab/matrix_arguments.h"

#include "py/operands/device_array.h"

/* The array if it is what matrix rungs take, else NULL with a TypeError. */
static const struct device_array *
matrix_from(struct module_state *state, const struct rung *rung, PyObject *object, const char *what)
{
    if (Py_TYPE(object) == state->device_array_type) {
        const struct device_array *array = (struct device_array *)object;
        if (array->ndim == 2 && array->contiguous && array->dtype == DTYPE_FLOAT32)
            return array;
    }
    PyErr_Format(PyExc_TypeError, "rung %s takes two-dimensional DeviceArrays of float32 in C order, and %s is none",
                 rung->name, what);
    return NULL;
}

static bool
overlap(const struct device_array *x, const struct device_array *y)
{
    const uintptr_t of_x = (uintptr_t)x->data, of_y = (uintptr_t)y->data;
    return of_x < of_y + device_array_nbytes(y) && of_y < of_x + device_array_nbytes(x);
}

/* The operands as matrices; a stands for b where the rung takes one matrix. */
static int
arrays_from(struct module_state *state, const struct rung *rung, PyObject *const objects[ROLE_COUNT],
            const struct device_array *arrays[ROLE_COUNT])
{
    const bool product = rung->sum == LEFT_PRODUCT;
    if (!product && !Py_IsNone(objects[ROLE_B])) {
        PyErr_Format(PyExc_TypeError, "rung %s takes one matrix: b must be None", rung->name);
        return -1;
    }
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyObject *object = role == ROLE_B && !product ? objects[ROLE_A] : objects[role];
        arrays[role] = matrix_from(state, rung, object, role_name[role]);
        if (!arrays[role])
            return -1;
        if (arrays[role]->device != arrays[ROLE_A]->device) {
            PyErr_Format(PyExc_ValueError, "a is on cuda:%d and %s on cuda:%d", arrays[ROLE_A]->device, role_name[role],
                         arrays[role]->device);
            return -1;
        }
    }
    return 0;
}

/* No input may have the result's memory: threads read an input while others write. */
static int
check_shapes(const struct rung *rung, const struct device_array *const arrays[ROLE_COUNT])
{
    const bool product = rung->sum == LEFT_PRODUCT, turned = rung->sum == LEFT_TRANSPOSE;
    const Py_ssize_t *const a = arrays[ROLE_A]->shape, *const b = arrays[ROLE_B]->shape;
    const Py_ssize_t *const out = arrays[ROLE_OUT]->shape;
    const Py_ssize_t rows = turned ? a[1] : a[0], columns = turned ? a[0] : b[1];
    if (product && b[0] != a[1])
        PyErr_Format(PyExc_ValueError, "rung %s: a has %zd columns and b %zd rows: they must be as many", rung->name,
                     a[1], b[0]);
    else if (out[0] != rows || out[1] != columns)
        PyErr_Format(PyExc_ValueError, "rung %s: out has shape (%zd, %zd), and the result (%zd, %zd)", rung->name,
                     out[0], out[1], rows, columns);
    else if (overlap(arrays[ROLE_A], arrays[ROLE_OUT]) || overlap(arrays[ROLE_B], arrays[ROLE_OUT]))
        PyErr_Format(PyExc_ValueError, "rung %s: out overlaps an input", rung->name);
    else
        return 0;
    return -1;
}

int
matrices_from(struct module_state *state, const struct rung *rung, PyObject *const objects[ROLE_COUNT],
              struct operand operands[ROLE_COUNT], struct rung_call *call)
{
    const struct device_array *arrays[ROLE_COUNT];
    if (arrays_from(state, rung, objects, arrays) < 0 || check_shapes(rung, arrays) < 0)
        return -1;
    for (int role = 0; role < ROLE_COUNT; role++)
        operands[role] = device_array_operand(arrays[role]);
    *call = (struct rung_call){.component = COMPONENT_F32,
                               .rows = (size_t)arrays[ROLE_A]->shape[0],
                               .columns = (size_t)arrays[ROLE_B]->shape[1],
                               .inner = (size_t)arrays[ROLE_A]->shape[1]};
    return 0;
}

int
matrix_shape_from(const struct rung *rung, PyObject *shape, struct rung_call *call)
{
    const bool product = rung->sum == LEFT_PRODUCT;
    Py_ssize_t extents[3] = {0, 0, 0};
    if (!PyTuple_Check(shape) || PyTuple_Size(shape) != (product ? 3 : 2)) {
        PyErr_Format(PyExc_TypeError, "rung %s: n must be the tuple %s of whole numbers, not %R", rung->name,
                     product ? "(rows, columns, inner)" : "(rows, columns)", shape);
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(shape); i++) {
        extents[i] = PyNumber_AsSsize_t(PyTuple_GetItem(shape, i), PyExc_OverflowError);
        if (extents[i] == -1 && PyErr_Occurred())
            return -1;
        if (extents[i] < 0 || extents[i] > INT32_MAX) {
            PyErr_Format(PyExc_ValueError, "rung %s: extents must be 0 to %d, not %zd", rung->name, INT32_MAX,
                         extents[i]);
            return -1;
        }
    }
    call->rows = (size_t)extents[0];
    call->columns = (size_t)extents[1];
    call->inner = (size_t)extents[2];
    return 0;
}
