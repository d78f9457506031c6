/* What every reader of device arrays fills in and checks. */
#include <stdint.h>
#include <string.h>

#include "base/layout.h"
#include "gpu/device.h"
#include "py/base/errors.h"
#include "py/operands/operand_from.h"

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
    Py_CLEAR(operand->count_writes);
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

int
device_operand_measure(const char *what, struct device_operand *result)
{
    bool negative = false;
    result->shape = result->extents;
    if (layout_count(result->ndim, result->shape, dtype_table[result->operand.dtype].itemsize, &result->operand.size))
        return 0;
    for (int i = 0; i < result->ndim; i++)
        negative = negative || result->extents[i] < 0;
    PyObject *shape = tuple_of_sizes(result->ndim, result->shape);
    if (shape)
        PyErr_Format(PyExc_ValueError,
                     negative ? "%s: a negative extent in its shape %R" : "%s: its shape %R is larger than any memory",
                     what, shape);
    Py_XDECREF(shape);
    return -1;
}
