/* Views of a DeviceArray: NumPy's basic indexing, and reshape. No element is read or moved. */
#include "base/layout.h"
#include "py/array/array.h"
#include "py/base/python.h"
#include "py/operands/device_array.h"

/* A view under construction. */
struct view {
    char *data;
    int ndim;
    Py_ssize_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
};

static int
add_axis(struct view *view, Py_ssize_t extent, Py_ssize_t stride)
{
    if (view->ndim == MAX_DIMENSIONS)
        return refuse(PyExc_IndexError, "the result would have more than %d dimensions", MAX_DIMENSIONS);
    view->shape[view->ndim] = extent;
    view->strides[view->ndim++] = stride;
    return 0;
}

static int
take_slice(struct view *view, PyObject *slice, Py_ssize_t extent, Py_ssize_t stride)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return -1;
    Py_ssize_t count = PySlice_AdjustIndices(extent, &start, &stop, step);
    if (count > 0)
        view->data += start * stride;
    /* A step longer than the axis, up to the largest Py_ssize_t, is never taken. */
    return add_axis(view, count, count > 1 ? step * stride : stride);
}

static int
take_index(struct view *view, PyObject *item, int axis, Py_ssize_t extent, Py_ssize_t stride)
{
    Py_ssize_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        return -1;
    if (index < -extent || index >= extent)
        return refuse(PyExc_IndexError, "index %zd is out of bounds for axis %d with size %zd", index, axis, extent);
    view->data += (index < 0 ? index + extent : index) * stride;
    return 0;
}

static bool
takes_axis(PyObject *item)
{
    return !Py_IsNone(item) && item != Py_Ellipsis;
}

/* The number of axes that the key indexes; -1 with an exception where it is not a basic index or has too many. */
static int
count_axes(PyObject *key, int ndim)
{
    Py_ssize_t count = PyTuple_Size(key);
    int axes = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(key, i);
        ellipses += item == Py_Ellipsis;
        axes += takes_axis(item);
        if (takes_axis(item) && (PyBool_Check(item) || !(PySlice_Check(item) || PyIndex_Check(item))))
            return refuse(PyExc_TypeError,
                          "a DeviceArray is indexed by ints, slices, ... and None, not by %R: choose elements on the "
                          "host, of its numpy()",
                          item);
    }
    if (ellipses > 1)
        PyErr_SetString(PyExc_IndexError, "an index can only have a single ellipsis ('...')");
    else if (axes > ndim)
        PyErr_Format(PyExc_IndexError, "too many indices for array: array is %d-dimensional, but %d were indexed", ndim,
                     axes);
    else
        return axes;
    return -1;
}

static PyObject *
subscript_by_tuple(struct device_array *self, PyObject *key)
{
    const Py_ssize_t *shape = self->shape, *strides = device_array_strides(self);
    struct view view = {.data = self->data};
    Py_ssize_t count = PyTuple_Size(key);
    int left = count_axes(key, self->ndim), axis = 0;
    if (left < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(key, i);
        int failed = 0;
        if (Py_IsNone(item))
            failed = add_axis(&view, 1, 0);
        else if (item == Py_Ellipsis)
            for (; axis + left < self->ndim && !failed; axis++)
                failed = add_axis(&view, shape[axis], strides[axis]);
        else {
            failed = PySlice_Check(item) ? take_slice(&view, item, shape[axis], strides[axis])
                                         : take_index(&view, item, axis, shape[axis], strides[axis]);
            axis++;
            left--;
        }
        if (failed)
            return NULL;
    }
    for (; axis < self->ndim; axis++)
        if (add_axis(&view, shape[axis], strides[axis]) < 0)
            return NULL;
    return device_array_view(self, self->dtype, view.data, view.ndim, view.shape, view.strides);
}

PyObject *
device_array_subscript(struct device_array *self, PyObject *key)
{
    OWNED PyObject *tuple = PyTuple_Check(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
    return tuple ? subscript_by_tuple(self, tuple) : NULL;
}

PyObject *
device_array_iterate(struct device_array *self)
{
    if (self->ndim > 0)
        return PySeqIter_New((PyObject *)self);
    return PyErr_Format(PyExc_TypeError, "iteration over a 0-d array");
}

/* For iteration, which ends at IndexError. */
PyObject *
device_array_item(struct device_array *self, Py_ssize_t index)
{
    OWNED PyObject *key = PyLong_FromSsize_t(index);
    return key ? device_array_subscript(self, key) : NULL;
}

static bool
are_same(struct device_array *p, struct device_array *q)
{
    if (p->block != q->block || p->data != q->data || p->dtype != q->dtype || p->ndim != q->ndim)
        return false;
    for (int i = 0; i < 2 * p->ndim; i++)
        if (p->shape[i] != q->shape[i])
            return false;
    return true;
}

/* Python ends x[key] += y with x[key] = sum, where the sum is in place already. Any other assignment is refused. */
int
device_array_assign(struct device_array *self, PyObject *key, PyObject *value)
{
    if (!value || Py_TYPE(value) != Py_TYPE((PyObject *)self))
        return refuse(PyExc_TypeError, "the elements of a DeviceArray change by vecadd.add(a, b, out=x[key]) and "
                                       "x[key] += y only");
    OWNED PyObject *view = device_array_subscript(self, key);
    if (!view)
        return -1;
    bool same = are_same((struct device_array *)view, (struct device_array *)value);
    if (same)
        return 0;
    return refuse(PyExc_TypeError, "elements are not copied by an assignment to a DeviceArray: write a sum by "
                                   "vecadd.add(a, b, out=x[key])");
}

/* Reads reshape's arguments, ints or one tuple of them, and replaces -1 by the extent that fits. */
static int
read_shape(const struct device_array *self, PyObject *arguments, Py_ssize_t *shape)
{
    PyObject *given = arguments;
    if (PyTuple_Size(arguments) == 1 && !PyIndex_Check(PyTuple_GetItem(arguments, 0)))
        given = PyTuple_GetItem(arguments, 0);
    OWNED PyObject *tuple = PySequence_Tuple(given);
    int ndim = tuple ? sizes_of_tuple(tuple, "shape", shape) : -1;
    size_t known = 1, elements;
    int unknown = -1;
    bool wrong = false;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] == -1 && unknown < 0)
            unknown = i;
        else
            wrong = wrong || shape[i] < 0 || __builtin_mul_overflow(known, (size_t)shape[i], &known);
    }
    if (ndim < 0)
        return -1;
    if (unknown >= 0 && !wrong && known > 0 && self->size % known == 0) {
        shape[unknown] = (Py_ssize_t)(self->size / known);
        known = self->size;
    } else if (unknown >= 0)
        wrong = true;
    if (!wrong && known == self->size) {
        if (layout_count(ndim, shape, dtype_table[self->dtype].itemsize, &elements))
            return ndim;
        return refuse(PyExc_ValueError, "array is too big; its bytes are more than can be counted");
    }
    return refuse(PyExc_ValueError, "cannot reshape array of size %zu into shape %R", self->size, given);
}

const char device_array_reshape_doc[] = PyDoc_STR(
    "reshape($self, /, *shape)\n--\n\n"
    "The elements, in C order, in another shape, given as ints or as one tuple; one of them may be -1 for\n"
    "what is left over. A view of a C-contiguous array, and of any other a copy. Raises ValueError where the\n"
    "number of elements differs.\n\n"
    ">>> vecadd.to_device(np.arange(6)).reshape(2, -1).shape\n"
    "(2, 3)");

PyObject *
device_array_reshape(struct device_array *self, PyObject *arguments)
{
    Py_ssize_t shape[MAX_DIMENSIONS];
    int ndim = read_shape(self, arguments, shape);
    OWNED PyObject *base = ndim < 0           ? NULL
                           : self->contiguous ? Py_NewRef((PyObject *)self)
                                              : device_array_copy(self, NULL);
    if (!base)
        return NULL;
    struct device_array *array = (struct device_array *)base;
    return device_array_view(array, array->dtype, array->data, ndim, shape, NULL);
}
