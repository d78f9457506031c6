/* Steps shared by all readers of device arrays. */
#include <stdint.h>
#include <string.h>

#include "base/layout.h"
#include "gpu/device.h"
#include "py/base/errors.h"
#include "py/operands/operand_from.h"

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
device_operand_clear(struct owned_operand *operand)
{
    Py_CLEAR(operand->count_writes);
    Py_CLEAR(operand->library);
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
    PyObject *shape = tuple_of_sizes(operand->ndim, operand->shape);
    if (shape)
        PyErr_Format(PyExc_ValueError,
                     negative ? "%s: a negative extent in its shape %R" : "%s: its shape %R is larger than any memory",
                     what, shape);
    Py_XDECREF(shape);
    return -1;
}
