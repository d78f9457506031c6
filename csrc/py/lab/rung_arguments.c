#include "py/lab/rung_arguments.h"

#include "base/overlap.h"
#include "base/plan.h"
#include "gpu/stream.h"
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
    PyErr_Format(PyExc_TypeError, "rung %s takes two-dimensional DeviceArrays of float32 in C order, and %s is not one",
                 rung->name, what);
    return NULL;
}

static bool
overlap(const struct device_array *x, const struct device_array *y)
{
    const uintptr_t of_x = (uintptr_t)x->data, of_y = (uintptr_t)y->data;
    return of_x < of_y + device_array_nbytes(y) && of_y < of_x + device_array_nbytes(x);
}

/* The operands as matrices; a takes the place of b where the rung takes one matrix. */
static int
arrays_from(struct module_state *state, const struct rung *rung, PyObject *const objects[ROLE_COUNT],
            const struct device_array *arrays[ROLE_COUNT])
{
    const bool product = rung->sum == LEFT_PRODUCT;
    if (!product && !Py_IsNone(objects[ROLE_B]))
        return refuse(PyExc_TypeError, "rung %s takes one matrix: b must be None", rung->name);
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyObject *object = role == ROLE_B && !product ? objects[ROLE_A] : objects[role];
        arrays[role] = matrix_from(state, rung, object, role_name[role]);
        if (!arrays[role])
            return -1;
        if (arrays[role]->device != arrays[ROLE_A]->device)
            return refuse(PyExc_ValueError, "a is on cuda:%d and %s on cuda:%d", arrays[ROLE_A]->device,
                          role_name[role], arrays[role]->device);
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
    if (!PyTuple_Check(shape) || PyTuple_Size(shape) != (product ? 3 : 2))
        return refuse(PyExc_TypeError, "rung %s: n must be the tuple %s of whole numbers, not %R", rung->name,
                      product ? "(rows, columns, inner)" : "(rows, columns)", shape);
    for (Py_ssize_t i = 0; i < PyTuple_Size(shape); i++) {
        extents[i] = PyNumber_AsSsize_t(PyTuple_GetItem(shape, i), PyExc_OverflowError);
        if (extents[i] == -1 && PyErr_Occurred())
            return -1;
        if (extents[i] < 0 || extents[i] > INT32_MAX)
            return refuse(PyExc_ValueError, "rung %s: extents must be 0 to %d, not %zd", rung->name, INT32_MAX,
                          extents[i]);
    }
    call->rows = (size_t)extents[0];
    call->columns = (size_t)extents[1];
    call->inner = (size_t)extents[2];
    return 0;
}

enum { WARP = 32, LARGEST_BLOCK = 1024 };

const char *const rung_kind_name[] = {
    [RUNG_HOST] = "host",       [RUNG_DEVICE] = "device", [RUNG_TRANSFER] = "transfer",
    [RUNG_LATENCY] = "latency", [RUNG_MATRIX] = "matrix",
};

int
rung_operand(struct module_state *state, PyObject *object, const char *what, struct operand *operand)
{
    if (Py_TYPE(object) == state->device_array_type && ((struct device_array *)object)->contiguous) {
        *operand = device_array_operand((struct device_array *)object);
        return 0;
    }
    if (PyArray_CheckExact(object) && host_operand(state, (PyArrayObject *)object, operand))
        return 0;
    return refuse(PyExc_TypeError,
                  "%s, of %R, is neither a contiguous DeviceArray, which vecadd.to_device makes, nor a contiguous and "
                  "aligned NumPy array of a dtype that vecadd adds",
                  what, (PyObject *)Py_TYPE(object));
}

bool
rung_takes(const struct rung *rung, enum dtype dtype)
{
    const struct dtype_row *row = &dtype_table[dtype];
    return rung_takes_component(rung, row->component) && (rung->kind != RUNG_MATRIX || row->components == 1);
}

bool
rung_takes_device_arrays(const struct rung *rung)
{
    return rung->kind == RUNG_DEVICE || rung->kind == RUNG_LATENCY || rung->kind == RUNG_MATRIX;
}

static int
check_operand(const struct rung *rung, const struct operand *operand, const struct operand *first, const char *what)
{
    bool on_device = operand->place == PLACE_DEVICE;
    if (on_device != rung_takes_device_arrays(rung))
        PyErr_Format(PyExc_TypeError,
                     rung_takes_device_arrays(rung) ? "%s: a %s rung takes DeviceArrays, and %s is a NumPy array; "
                                                      "vecadd.to_device(%s) makes one of it"
                                                    : "%s: a %s rung takes NumPy arrays, and %s is a DeviceArray; "
                                                      "%s.numpy() makes one of it",
                     rung->name, rung_kind_name[rung->kind], what, what);
    else if (operand->dtype != first->dtype || operand->size != first->size)
        PyErr_Format(PyExc_ValueError, "%s has %zu elements of %s where a has %zu of %s", what, operand->size,
                     dtype_table[operand->dtype].name, first->size, dtype_table[first->dtype].name);
    else if (operand->device != first->device)
        PyErr_Format(PyExc_ValueError, "a is on cuda:%d and %s on cuda:%d", first->device, what, operand->device);
    else
        return 0;
    return -1;
}

static int
check_arrays(const struct rung *rung, const struct operand operands[ROLE_COUNT])
{
    const struct operand *a = &operands[ROLE_A], *out = &operands[ROLE_OUT];
    size_t bytes = a->size * dtype_table[a->dtype].itemsize;
    for (int role = 0; role < ROLE_COUNT; role++)
        if (check_operand(rung, &operands[role], a, role_name[role]) < 0)
            return -1;
    if (!rung_takes(rung, a->dtype))
        PyErr_Format(PyExc_TypeError, "rung %s does not take %s", rung->name, dtype_table[a->dtype].name);
    else if (!out->writable)
        PyErr_SetString(PyExc_ValueError, "output array is read-only");
    else if (overlaps_in_part(a->data, out->data, bytes) || overlaps_in_part(operands[ROLE_B].data, out->data, bytes))
        PyErr_SetString(PyExc_ValueError, "out overlaps an input in part");
    else
        return 0;
    return -1;
}

static int
check_block(const struct rung *rung, int block)
{
    if (block && rung->kind != RUNG_DEVICE)
        PyErr_Format(PyExc_ValueError, "block is for device rungs, and %s is a %s rung", rung->name,
                     rung_kind_name[rung->kind]);
    else if (block && rung->block <= 1)
        PyErr_Format(PyExc_ValueError, "rung %s has a block size of its own", rung->name);
    else if (block < 0 || block % WARP || block > LARGEST_BLOCK)
        PyErr_Format(PyExc_ValueError, "block must be a multiple of 32 up to 1024, not %d", block);
    else
        return 0;
    return -1;
}

static int
set_param(const struct rung *rung, struct rung_call *call, PyObject *name, PyObject *value)
{
    for (int i = 0; i < RUNG_PARAMS && rung->params[i].name; i++) {
        const struct rung_param *param = &rung->params[i];
        if (PyUnicode_CompareWithASCIIString(name, param->name) != 0)
            continue;
        long chosen = PyLong_AsLong(value);
        if (chosen == -1 && PyErr_Occurred())
            return -1;
        if (chosen < param->least || chosen > param->most)
            return refuse(PyExc_ValueError, "rung %s: %s (%s) must be %d to %d, not %ld", rung->name, param->name,
                          param->what, param->least, param->most, chosen);
        call->params[i] = (int)chosen;
        return 0;
    }
    return refuse(PyExc_TypeError, "rung %s has no parameter %S", rung->name, name);
}

/* `chosen` is a dict, or NULL. */
static int
set_params(const struct rung *rung, struct rung_call *call, PyObject *chosen)
{
    rung_usual_params(rung, call);
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (chosen && PyDict_Next(chosen, &position, &name, &value)) {
        if (!PyUnicode_Check(name))
            return refuse(PyExc_TypeError, "names of parameters are strings");
        if (set_param(rung, call, name, value) < 0)
            return -1;
    }
    return 0;
}

const struct rung *
rung_from_name(const char *name)
{
    const struct rung *rung = rung_named(name);
    if (!rung)
        PyErr_Format(PyExc_ValueError, "unknown rung %s; vecadd.ladder.names() lists them", name);
    return rung;
}

int
rung_choices_from(const struct rung *rung, int block, PyObject *params, struct rung_call *call)
{
    if (check_block(rung, block) < 0)
        return -1;
    call->block = (unsigned)block;
    return set_params(rung, call, params);
}

/* The operands of an addition: three arrays of one dtype and size. */
static int
addition_from(struct module_state *state, const struct rung *rung, PyObject *const objects[ROLE_COUNT],
              struct operand operands[ROLE_COUNT], struct rung_call *call)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (rung_operand(state, objects[role], role_name[role], &operands[role]) < 0)
            return -1;
    if (check_arrays(rung, operands) < 0)
        return -1;
    const struct operand *a = &operands[ROLE_A];
    const struct dtype_row *dtype = &dtype_table[a->dtype];
    *call = (struct rung_call){.component = dtype->component, .n = a->size * dtype->components};
    return 0;
}

int
rung_arguments_from(struct module_state *state, const char *name, PyObject *const objects[ROLE_COUNT], int block,
                    PyObject *params, struct rung_arguments *given)
{
    const struct rung *rung = given->rung = rung_from_name(name);
    if (!rung)
        return -1;
    if (rung->kind == RUNG_MATRIX ? matrices_from(state, rung, objects, given->operands, &given->call)
                                  : addition_from(state, rung, objects, given->operands, &given->call))
        return -1;
    const struct operand *out = &given->operands[ROLE_OUT];
    given->call.a = given->operands[ROLE_A].data;
    given->call.b = given->operands[ROLE_B].data;
    given->call.c = out->data;
    given->call.stream = out->stream;
    given->call.device = out->device;
    return rung_choices_from(rung, block, params, &given->call);
}

int
rung_arguments_join(const struct rung_arguments *given, struct status *status)
{
    for (int role = 0; role < ROLE_OUT; role++)
        if (stream_join(given->call.device, given->operands[role].stream, given->call.stream, status) < 0)
            return -1;
    return 0;
}
