#include "py/calls/refusals.h"

#include "py/operands/sizes.h"

/* A shape as in NumPy's errors: "(2,3)", "(3,)", "()". A new reference. */
static PyObject *
text_of(int ndim, const Py_ssize_t *shape)
{
    char text[MAX_DIMENSIONS * 21 + 4] = "(";
    size_t length = 1;
    for (int i = 0; i < ndim; i++)
        length += (size_t)PyOS_snprintf(text + length, sizeof text - length, "%s%zd", i ? "," : "", shape[i]);
    PyOS_snprintf(text + length, sizeof text - length, ndim == 1 ? ",)" : ")");
    return PyUnicode_FromString(text);
}

static int
refuse_together(const struct operand *const operands[LAYOUT_OPERANDS])
{
    PyObject *all = PyUnicode_FromString("");
    for (int k = 0; all && k < LAYOUT_OPERANDS && operands[k]; k++) {
        PyObject *text = text_of(operands[k]->ndim, operands[k]->shape);
        PyObject *longer = text ? PyUnicode_FromFormat("%U%U ", all, text) : NULL;
        Py_XDECREF(text);
        Py_DECREF(all);
        all = longer;
    }
    if (all)
        PyErr_Format(PyExc_ValueError, "operands could not be broadcast together with shapes %U", all);
    Py_XDECREF(all);
    return -1;
}

static int
refuse_out_shape(const struct addition *addition, const struct operand *out)
{
    PyObject *given = text_of(out->ndim, out->shape), *expected = text_of(addition->ndim, addition->shape);
    if (given && expected)
        PyErr_Format(PyExc_ValueError,
                     "non-broadcastable output operand with shape %U doesn't match the broadcast shape %U", given,
                     expected);
    Py_XDECREF(given);
    Py_XDECREF(expected);
    return -1;
}

static int
refuse_size(const struct addition *addition)
{
    PyObject *shape = tuple_of_sizes(addition->ndim, addition->shape);
    if (shape)
        PyErr_Format(PyExc_ValueError, "the sum's shape %R is larger than any memory", shape);
    Py_XDECREF(shape);
    return -1;
}

int
raise_refusal(enum refusal refusal, const struct addition *addition,
              const struct operand *const operands[LAYOUT_OPERANDS])
{
    switch (refusal) {
    case REFUSED_SHAPES:
        return refuse_together(operands);
    case REFUSED_OUT_SHAPE:
        return refuse_out_shape(addition, operands[LAYOUT_SUM]);
    case REFUSED_SIZE:
        return refuse_size(addition);
    case REFUSED_READ_ONLY:
        PyErr_SetString(PyExc_ValueError, "output array is read-only");
        return -1;
    case REFUSED_INTERNAL_OVERLAP:
        PyErr_SetString(PyExc_ValueError, "out overlaps itself: some of its elements share memory, or its axes are "
                                          "interleaved; pass an array of its own");
        return -1;
    case REFUSED_NOT:
    case REFUSED_LESS_THAN_LEAST:
        break;
    }
    PyErr_SetString(PyExc_SystemError, "nothing was refused");
    return -1;
}
