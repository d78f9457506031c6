#include "py/calls/prepare_layout.h"
#include "choose/plan.h"

#include <stdint.h>
#include <string.h>

#include "base/scalar.h"
#include "py/base/errors.h"
#include "py/operands/interop.h"
#include "py/operands/promotion.h"

/* As NumPy writes a shape in its errors: "(2,3)", "(3,)", "()". A new reference. */
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

/* Numbers have no dimension. */
static int
refuse_together(const struct prepared_call *call)
{
    PyObject *all = PyUnicode_FromString("");
    for (int role = 0; all && role < ROLE_COUNT; role++) {
        if (role == ROLE_OUT && !call->held[role])
            break;
        PyObject *text = text_of(call->held[role] ? call->devices[role].ndim : 0,
                                 call->held[role] ? call->devices[role].shape : NULL);
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
refuse_out(const struct device_operand *out, const struct device_shape *sum)
{
    PyObject *given = text_of(out->ndim, out->shape), *due = text_of(sum->ndim, sum->shape);
    if (given && due)
        PyErr_Format(PyExc_ValueError,
                     "non-broadcastable output operand with shape %U doesn't match the broadcast shape %U", given, due);
    Py_XDECREF(given);
    Py_XDECREF(due);
    return -1;
}

/* Widens the sum's shape by an operand's. */
static bool
widen(struct prepared_call *call, const struct device_operand *operand)
{
    Py_ssize_t *shape = call->sum_extents;
    int ndim = call->sum.ndim;
    if (operand->ndim > ndim) {
        int more = operand->ndim - ndim;
        memmove(shape + more, shape, (size_t)ndim * sizeof *shape);
        memcpy(shape, operand->shape, (size_t)more * sizeof *shape);
        ndim = call->sum.ndim = operand->ndim;
    }
    for (int i = 1; i <= operand->ndim; i++) {
        Py_ssize_t extent = operand->shape[operand->ndim - i], *widest = &shape[ndim - i];
        if (*widest == 1)
            *widest = extent;
        else if (extent != 1 && extent != *widest)
            return false;
    }
    return true;
}

/* An out is broadcast with the inputs, as NumPy has it, but never repeated: it may only be larger than they are. */
static int
find_shape(struct prepared_call *call)
{
    const struct device_operand *out = &call->devices[ROLE_OUT];
    struct device_shape *sum = &call->sum;
    sum->ndim = 0;
    sum->shape = call->sum_extents;
    sum->strides = NULL;
    for (int role = 0; role < ROLE_COUNT; role++)
        if (call->held[role] && !widen(call, &call->devices[role]))
            return refuse_together(call);
    if (!call->held[ROLE_OUT] ||
        (out->ndim == sum->ndim && memcmp(out->shape, sum->shape, (size_t)sum->ndim * sizeof *sum->shape) == 0))
        return 0;
    return refuse_out(out, sum);
}

/* Elements of the sum; -1 with an exception for more bytes than can be counted. */
static Py_ssize_t
size_of(const struct device_shape *sum)
{
    size_t size;
    if (layout_count(sum->ndim, sum->shape, dtype_table[sum->dtype].itemsize, &size))
        return (Py_ssize_t)size;
    PyObject *shape = tuple_of_sizes(sum->ndim, sum->shape);
    if (shape)
        PyErr_Format(PyExc_ValueError, "the sum's shape %R is larger than any memory", shape);
    Py_XDECREF(shape);
    return -1;
}

static int
check_out(const struct device_operand *out)
{
    if (!out->operand.writable) {
        PyErr_SetString(PyExc_ValueError, "output array is read-only");
        return -1;
    }
    if (!out->strides || !out->operand.size ||
        !layout_laps_itself(out->ndim, out->shape, out->strides, dtype_table[out->operand.dtype].itemsize))
        return 0;
    PyErr_SetString(PyExc_ValueError, "out overlaps itself: some of its elements share memory, or its axes are "
                                      "interleaved; pass an array of its own");
    return -1;
}

/* What the operands' library says of the sum's dtype, if all arrays among them are its own: 1, 0 or -1. */
static int
library_dtype(const struct add_arguments *arguments, const struct prepared_call *call, enum dtype *dtype)
{
    PyObject *library = NULL;
    for (int role = ROLE_A; role < ROLE_OUT; role++) {
        if (!call->held[role])
            continue;
        if (!call->devices[role].library || (library && library != call->devices[role].library))
            return 0;
        library = call->devices[role].library;
    }
    PyObject *name = foreign_result_dtype(library, arguments->objects[ROLE_A], arguments->objects[ROLE_B]);
    if (!name || Py_IsNone(name)) {
        Py_XDECREF(name);
        return name ? 0 : -1;
    }
    int found = -1;
    for (int i = 0; i < DTYPE_COUNT && found < 0; i++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, dtype_table[i].name) == 0) {
            *dtype = (enum dtype)i;
            found = 1;
        }
    if (found < 0)
        dtype_refuse("the sum", name);
    Py_DECREF(name);
    return found;
}

static int
find_dtype(struct module_state *state, const struct add_arguments *arguments, struct scalar scalars[],
           struct prepared_call *call)
{
    enum dtype dtypes[ROLE_OUT];
    enum weakness weak[ROLE_OUT] = {NOT_WEAK, NOT_WEAK};
    for (int role = ROLE_A; role < ROLE_OUT; role++) {
        dtypes[role] = call->devices[role].operand.dtype;
        if (call->held[role])
            continue;
        if (scalar_from(state, arguments->objects[role], (enum role)role, &scalars[role]) < 0)
            return -1;
        dtypes[role] = scalars[role].dtype;
        weak[role] = scalars[role].weak;
    }
    int found = library_dtype(arguments, call, &call->sum.dtype);
    if (found < 0)
        return -1;
    if (!found) {
        int sum = promoted_dtype(state, dtypes[ROLE_A], weak[ROLE_A], dtypes[ROLE_B], weak[ROLE_B]);
        if (sum < 0)
            return -1;
        call->sum.dtype = (enum dtype)sum;
    }
    for (int role = ROLE_A; role < ROLE_OUT; role++)
        if (!call->held[role] && scalar_settle(arguments->objects[role], call->sum.dtype, &scalars[role]) < 0)
            return -1;
    return call->held[ROLE_OUT] ? check_cast(state, call->sum.dtype, call->devices[ROLE_OUT].operand.dtype) : 0;
}

/* A number has no dimension, and the sum is that of its role. */
static struct layout_view
view_of(const struct prepared_call *call, enum role role, enum dtype dtype)
{
    const struct device_operand *operand = &call->devices[role];
    struct layout_view view = {.itemsize = dtype_table[dtype].itemsize};
    if (call->held[role])
        view = (struct layout_view){operand->ndim, operand->shape, operand->strides, view.itemsize};
    else if (role == ROLE_OUT)
        view = (struct layout_view){call->sum.ndim, call->sum.shape, call->sum.strides, view.itemsize};
    return view;
}

/* The order of a sum that is still to be made. Operands in C order give C order by every rule. */
static int
order_sum(struct prepared_call *call)
{
    struct device_shape *sum = &call->sum;
    struct layout_view views[ROLE_OUT];
    bool any = false;
    for (int role = ROLE_A; role < ROLE_OUT; role++) {
        const enum dtype dtype = call->held[role] ? call->devices[role].operand.dtype : sum->dtype;
        views[role] = view_of(call, (enum role)role, dtype);
        any |= views[role].strides != NULL;
    }
    enum order_rule rule;
    if (call->held[ROLE_OUT] || !any)
        return 0;
    if (foreign_order(call->devices[sum->like].library, &rule) < 0)
        return -1;
    if (sum_order(rule, sum->ndim, sum->shape, views, dtype_table[sum->dtype].itemsize, call->sum_steps))
        sum->strides = call->sum_steps;
    return 0;
}

/* What the elements are and where they lie, from which it is seen whether they are runs of memory. */
static void
describe(const struct scalar scalars[], struct prepared_call *call)
{
    struct strided *add = &call->strided;
    struct layout_view views[LAYOUT_OPERANDS];
    add->sum = call->sum.dtype;
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct device_operand *operand = &call->devices[role];
        add->dtype[role] = call->held[role]   ? operand->operand.dtype
                           : role == ROLE_OUT ? call->sum.dtype
                                              : scalars[role].dtype;
        views[role] = view_of(call, (enum role)role, add->dtype[role]);
    }
    for (int role = ROLE_A; role < ROLE_OUT; role++) {
        add->is_scalar[role] = !call->held[role];
        if (!add->is_scalar[role])
            continue;
        memcpy(add->scalar[role], scalars[role].value, MOST_ITEMSIZE);
        if (number_convert(add->scalar[role], add->dtype[role], add->sum))
            add->dtype[role] = add->sum;
    }
    layout_make(&add->layout, call->sum.ndim, call->sum.shape, views);
}

/* Whether the kernel for runs of lanes does it: one dtype, aligned, element after element alike. */
static bool
is_run(const struct prepared_call *call)
{
    const struct strided *add = &call->strided;
    const struct dtype_row *row = &dtype_table[add->sum];
    for (int role = 0; role < ROLE_COUNT; role++) {
        uintptr_t at = (uintptr_t)add->layout.offset[role];
        if (role < ROLE_OUT && add->is_scalar[role])
            return false;
        if (call->held[role])
            at += (uintptr_t)call->devices[role].operand.data;
        if (add->dtype[role] != add->sum || !layout_is_dense(&add->layout, role, row->itemsize) ||
            at % lane_size[row->lane] != 0)
            return false;
    }
    return true;
}

static void
plan_elements(struct prepared_call *call, Py_ssize_t size)
{
    struct plan *plan = &call->plan;
    const struct strided *add = &call->strided;
    const struct dtype_row *row = &dtype_table[add->sum];
    const ssize_t *offset = add->layout.offset;
    plan->n = (size_t)size;
    plan->strided = add;
    if (!is_run(call))
        return;
    plan->strided = NULL;
    plan->lane = row->lane;
    plan->n *= row->lanes;
    plan->a = (const char *)plan->a + offset[ROLE_A];
    plan->b = (const char *)plan->b + offset[ROLE_B];
    if (plan->c)
        plan->c = (char *)plan->c + offset[ROLE_OUT];
}

int
prepare_layout(struct module_state *state, const struct add_arguments *arguments, const struct plan_request *request,
               struct prepared_call *call)
{
    struct scalar scalars[ROLE_OUT];
    if (find_shape(call) < 0 || (call->held[ROLE_OUT] && check_out(&call->devices[ROLE_OUT]) < 0))
        return -1;
    if (find_dtype(state, arguments, scalars, call) < 0)
        return -1;
    const Py_ssize_t size = size_of(&call->sum);
    if (size < 0)
        return -1;

    /* A number, and a sum that is still to be made, are where the array is, and have no stream of their own. */
    call->sum.like = call->held[ROLE_A] ? ROLE_A : ROLE_B;
    struct operand elsewhere = call->devices[call->sum.like].operand;
    elsewhere.data = NULL;
    elsewhere.has_stream = false;
    const struct operand *operands[ROLE_COUNT];
    for (int role = 0; role < ROLE_COUNT; role++)
        operands[role] = call->held[role] ? &call->devices[role].operand : &elsewhere;
    struct status status;
    if (plan_make(&call->plan, operands[ROLE_A], operands[ROLE_B], operands[ROLE_OUT], request, &status) < 0) {
        status_raise(state, &status);
        return -1;
    }
    call->kind = CALL_PLANNED;
    call->plan.n = 0;
    if (size) {
        if (order_sum(call) < 0)
            return -1;
        describe(scalars, call);
        plan_elements(call, size);
    }
    return 0;
}
