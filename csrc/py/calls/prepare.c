#include "py/calls/prepare.h"

#include "choose/plan.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "py/base/python.h"
#include "py/operands/dtypes.h"
#include "py/operands/library.h"
#include "py/operands/operands.h"
#include "py/operands/where.h"

/* The object that out= means: numpy.add takes out=(c,) as out=c, out=(None,) as no out, and no other tuple. A plan of
 * lists takes a tuple of arrays. Returns NULL with an exception set. */
static PyObject *
unpacked_out(PyObject *out, enum purpose purpose, PyObject *const *values)
{
    if (!PyTuple_CheckExact(out) || purpose == ADD_LISTS ||
        (purpose == PLAN_ADDITION && is_list_of_arrays(values[0]) && is_list_of_arrays(values[1])))
        return out;
    if (PyTuple_Size(out) == 1)
        return PyTuple_GetItem(out, 0);
    return PyErr_Format(PyExc_ValueError, "The 'out' tuple must have exactly one entry per ufunc output");
}

static int
refuse_keyword(const char *function, PyObject *keyword, const char *hint)
{
    return refuse(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'%s", function, keyword, hint);
}

int
add_arguments_parse(const struct module_state *state, const char *function, enum purpose purpose,
                    PyObject *const *values, Py_ssize_t positional, PyObject *keywords, struct add_arguments *arguments)
{
    if (positional < 2 || positional > 3)
        return refuse(PyExc_TypeError, "%s() takes from 2 to 3 positional arguments but %zd were given", function,
                      positional);
    PyObject *out = positional == 3 ? values[2] : Py_None;
    PyObject *device = Py_None, *stream = Py_None;
    *arguments =
        (struct add_arguments){.purpose = purpose, .values = values, .positional = positional, .keywords = keywords};

    Py_ssize_t count = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *keyword = PyTuple_GetItem(keywords, i);
        PyObject *value = values[positional + i];
        switch (keyword_name(state, keyword)) {
        case NAME_OUT:
            if (positional == 3)
                return refuse(PyExc_TypeError, "%s() got multiple values for argument 'out'", function);
            out = unpacked_out(value, purpose, values);
            if (!out)
                return -1;
            break;
        case NAME_DEVICE:
            if (purpose == ADD_LISTS)
                return refuse_keyword(function, keyword,
                                      ": it adds where the arrays are; call add(x, y, device=...) for each pair");
            device = value;
            break;
        case NAME_STREAM:
            stream = value;
            break;
        default:
            if (purpose == ADD_LISTS)
                return refuse_keyword(function, keyword, "");
            arguments->numpys_own = PyUnicode_AsUTF8AndSize(keyword, NULL);
            if (!arguments->numpys_own)
                return -1;
        }
    }
    arguments->objects[ROLE_A] = values[0];
    arguments->objects[ROLE_B] = values[1];
    arguments->objects[ROLE_OUT] = Py_IsNone(out) ? NULL : out;
    arguments->stream = Py_IsNone(stream) ? NULL : stream;
    return device_from_object(device, &arguments->choice, &arguments->device);
}

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
    OWNED PyObject *all = PyUnicode_FromString("");
    for (int k = 0; all && k < LAYOUT_OPERANDS && operands[k]; k++) {
        OWNED PyObject *text = text_of(operands[k]->ndim, operands[k]->shape);
        PyObject *longer = text ? PyUnicode_FromFormat("%U%U ", all, text) : NULL;
        Py_DECREF(all);
        all = longer;
    }
    if (all)
        PyErr_Format(PyExc_ValueError, "operands could not be broadcast together with shapes %U", all);
    return -1;
}

static int
refuse_out_shape(const struct addition *addition, const struct operand *out)
{
    OWNED PyObject *given = text_of(out->ndim, out->shape);
    OWNED PyObject *expected = text_of(addition->ndim, addition->shape);
    if (given && expected)
        PyErr_Format(PyExc_ValueError,
                     "non-broadcastable output operand with shape %U doesn't match the broadcast shape %U", given,
                     expected);
    return -1;
}

static int
refuse_size(const struct addition *addition)
{
    OWNED PyObject *shape = tuple_of_sizes(addition->ndim, addition->shape);
    if (shape)
        PyErr_Format(PyExc_ValueError, "the sum's shape %R is larger than any memory", shape);
    return -1;
}

/* Raises what NumPy raises for the same operands; absent ones are NULL. Returns -1. */
static int
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
        return refuse(PyExc_ValueError, "output array is read-only");
    case REFUSED_INTERNAL_OVERLAP:
        return refuse(PyExc_ValueError, "out overlaps itself: some of its elements share memory, or its axes are "
                                        "interleaved; pass an array of its own");
    case REFUSED_NOT:
    case REFUSED_LESS_THAN_LEAST:
        break;
    }
    return refuse(PyExc_SystemError, "nothing was refused");
}

/* The sum's dtype by the rules of the operands' library, if all arrays are that library's: 1, 0 or -1. */
static int
library_dtype(const struct add_arguments *arguments, const struct prepared_call *call, enum dtype *dtype)
{
    const struct library *library = NULL;
    for (int role = ROLE_A; role < ROLE_OUT; role++) {
        if (!call->described[role])
            continue;
        if (!call->operands[role].library || (library && library != call->operands[role].library))
            return 0;
        library = call->operands[role].library;
    }
    OWNED PyObject *name = PyObject_CallMethod(library->object, "result_dtype", "OO", arguments->objects[ROLE_A],
                                               arguments->objects[ROLE_B]);
    if (!name || Py_IsNone(name))
        return name ? 0 : -1;
    int found = -1;
    for (int i = 0; i < DTYPE_COUNT && found < 0; i++)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, dtype_table[i].name) == 0) {
            *dtype = (enum dtype)i;
            found = 1;
        }
    if (found < 0)
        dtype_refuse("the sum", name);
    return found;
}

/* Finds the sum's dtype, by a library's rules if all arrays are that library's, else by NumPy's, and checks that out
 * can take it. Inputs that are not described are numbers: they become operands, with their values in `numbers`. Returns
 * 0, or -1 with an exception set. */
static int
find_sum_dtype(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call,
               struct scalar numbers[ROLE_OUT])
{
    enum dtype dtypes[ROLE_OUT];
    enum weakness weak[ROLE_OUT] = {NOT_WEAK, NOT_WEAK};
    for (int role = ROLE_A; role < ROLE_OUT; role++) {
        dtypes[role] = call->operands[role].operand.dtype;
        if (call->described[role])
            continue;
        if (scalar_from(state, arguments->objects[role], (enum role)role, &numbers[role]) < 0)
            return -1;
        dtypes[role] = numbers[role].dtype;
        weak[role] = numbers[role].weak;
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
    const bool numbers_there = !call->described[ROLE_A] || !call->described[ROLE_B];
    const bool as_torch =
        found && numbers_there && library_is(call->operands[call->sum.like].library, LIBRARY_NUMBERS_AS_TORCH);
    for (int role = ROLE_A; role < ROLE_OUT; role++) {
        if (call->described[role])
            continue;
        if ((as_torch ? scalar_as_torch : scalar_settle)(arguments->objects[role], call->sum.dtype, &numbers[role]) < 0)
            return -1;
        call->operands[role].operand = (struct operand){
            .data = numbers[role].value, .size = 1, .dtype = numbers[role].dtype, .place = PLACE_NUMBER, .device = -1};
    }
    return call->described[ROLE_OUT] ? check_cast(state, call->sum.dtype, call->operands[ROLE_OUT].operand.dtype) : 0;
}

static int
plan_call(struct module_state *state, const struct addition *addition, const struct operand *const operands[ROLE_COUNT],
          const struct plan_request *request, struct prepared_call *call)
{
    struct status status;
    if (plan_make(&call->plan, addition, operands, request, &status) < 0)
        return fail_with(state, &status);
    call->kind = call->plan.route == ROUTE_NONE ? CALL_NUMPY : CALL_PLANNED;
    return 0;
}

/* Returns 0; -1 where reading the operands has raised what clear_refusal() leaves. */
static int
leave_to_numpy(struct prepared_call *call, const char *why)
{
    if (PyErr_Occurred())
        return -1;
    call->kind = CALL_NUMPY;
    call->plan.route = ROUTE_NONE;
    call->plan.why = why;
    return 0;
}

/* Whether NumPy copies the sum into out, which it describes for its shape: out may have any layout. */
static bool
is_taken_by(PyObject *out, const struct host_sum *sum, struct operand *operand)
{
    if (!PyArray_Check(out) ||
        !PyArray_CanCastTypeTo(sum->descr, PyArray_DESCR((PyArrayObject *)out), NPY_SAME_KIND_CASTING))
        return false;
    PyArrayObject *array = (PyArrayObject *)out;
    *operand = (struct operand){.ndim = PyArray_NDIM(array),
                                .shape = PyArray_DIMS(array),
                                .dtype = sum->dtype,
                                .writable = PyArray_ISWRITEABLE(array)};
    return true;
}

/* Whether a Python int has 64 bits at most and is of the dtype; true for any other operand. */
static bool
fits(PyObject *operand, enum dtype dtype)
{
    struct scalar number = {.weak = WEAK_INT};
    int overflow = 0;
    if (!PyLong_CheckExact(operand))
        return true;
    PyLong_AsLongLongAndOverflow(operand, &overflow);
    const bool fits = !overflow && scalar_settle(operand, dtype, &number) == 0;
    PyErr_Clear();
    return fits;
}

/* Host operands that a GPU is to add and does not take as they are. NumPy's own errors come first where it may have
 * one: its check may run Python code that resizes an array, so that the shapes are kept here. The plan's a and b are
 * the objects until there are copies. */
static int
prepare_copies(struct module_state *state, PyObject *const objects[ROLE_COUNT], const struct plan_request *request,
               struct prepared_call *call)
{
    struct host_sum sum;
    struct operand described[ROLE_COUNT];
    ssize_t shapes[ROLE_COUNT][LAYOUT_DIMENSIONS];
    struct status status;
    const struct operand *operands[] = {&described[ROLE_A], &described[ROLE_B], NULL};
    if (host_any_pair_from(state, objects, call->operands, &sum) < 0)
        return -1;
    call->kind = CALL_COPIES;
    call->described[ROLE_A] = call->described[ROLE_B] = true;
    call->descr = sum.descr;
    PyObject *a = call->operands[ROLE_A].exported, *b = call->operands[ROLE_B].exported, *out = objects[ROLE_OUT];
    described[ROLE_A] = call->operands[ROLE_A].operand;
    described[ROLE_B] = call->operands[ROLE_B].operand;
    if (out && is_taken_by(out, &sum, &described[ROLE_OUT]))
        operands[ROLE_OUT] = &described[ROLE_OUT];
    for (int role = 0; role < ROLE_COUNT; role++)
        if (operands[role] && described[role].ndim > 0) {
            memcpy(shapes[role], described[role].shape, (size_t)described[role].ndim * sizeof shapes[role][0]);
            described[role].shape = shapes[role];
        }
    const struct addition_rules rules = {sum.dtype, ORDER_C, 0};
    const enum refusal refusal = addition_resolve(&call->addition, operands, &rules);
    if ((refusal != REFUSED_NOT || !fits(a, sum.dtype) || !fits(b, sum.dtype) ||
         (out && (!operands[ROLE_OUT] || !PyArray_CheckExact(out)))) &&
        check_by_numpy((PyObject *[]){a, b, out ? out : Py_None}) < 0)
        return -1;
    if (refusal != REFUSED_NOT)
        return raise_refusal(refusal, &call->addition, operands);
    if (operands[ROLE_OUT] && call->addition.size > 0) { /* out may be larger: NumPy repeats the sum into it */
        operands[ROLE_OUT] = NULL;
        addition_resolve(&call->addition, operands, &rules);
    }
    call->addition.ordered = false;
    const struct dtype_row *row = &dtype_table[sum.dtype];
    const struct batch_add run = {
        .a = a, .b = b, .n = call->addition.size * row->components, .component = row->component};
    return plan_host_run(&call->plan, &run, request, &status) < 0 ? fail_with(state, &status) : 0;
}

/* Host operands that differ in dtype or shape or are not contiguous. NumPy gets what vecadd refuses, for its own
 * errors. */
static int
prepare_host_layout(struct module_state *state, PyObject *const objects[ROLE_COUNT], const struct plan_request *request,
                    const char *why_no_run, struct prepared_call *call)
{
    struct host_sum sum;
    call->differs = why_no_run;
    if (request->on_device || request->hybrid)
        return prepare_copies(state, objects, request, call);
    const char *not_ours = host_pair_from(state, objects, PLAN_STRIDED_MIN, call->operands, &sum);
    if (not_ours)
        return leave_to_numpy(call, not_ours);
    call->described[ROLE_A] = call->described[ROLE_B] = true;
    call->descr = sum.descr;
    PyObject *out = objects[ROLE_OUT];
    if (out && !(call->described[ROLE_OUT] = host_out_from(state, out, &call->operands[ROLE_OUT])))
        return leave_to_numpy(call, "out is not a plain array of a supported dtype");

    static const char *const why[] = {
        [REFUSED_SHAPES] = "the shapes do not go together",
        [REFUSED_OUT_SHAPE] = "out has the wrong shape",
        [REFUSED_READ_ONLY] = "out is read-only, or writing to it warns",
        [REFUSED_INTERNAL_OVERLAP] = "out overlaps itself",
        [REFUSED_SIZE] = "the sum is larger than any memory",
        [REFUSED_LESS_THAN_LEAST] = "numpy.add is as fast for so few elements",
    };
    const struct addition_rules rules = {sum.dtype, ORDER_NUMPY, PLAN_STRIDED_MIN};
    const struct operand *const operands[] = {&call->operands[ROLE_A].operand, &call->operands[ROLE_B].operand,
                                              out ? &call->operands[ROLE_OUT].operand : NULL};
    const enum refusal refusal = addition_resolve(&call->addition, operands, &rules);
    if (refusal != REFUSED_NOT)
        return leave_to_numpy(call, why[refusal]);
    return plan_call(state, &call->addition, operands, request, call);
}

static int
prepare_host(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    if (arguments->stream)
        return refuse(PyExc_TypeError, "stream orders work on device arrays, and the operands are in host memory");
    const struct plan_request request = {.on_device = arguments->choice == DEVICE_CUDA,
                                         .hybrid = arguments->choice == DEVICE_HYBRID,
                                         .open = arguments->choice == DEVICE_UNSAID,
                                         .device = arguments->device,
                                         .repeats = arguments->purpose != ADD_ARRAYS};
    if (arguments->numpys_own && (request.on_device || request.hybrid))
        return refuse(PyExc_TypeError, "%s= is numpy.add's, for additions on the host: leave it or device out",
                      arguments->numpys_own);
    if (arguments->numpys_own)
        return leave_to_numpy(call, "it has a keyword of numpy.add's own");
    struct batch_add run;
    const char *why = host_run_from(state, arguments->objects, &run);
    if (!why) {
        struct status status;
        call->kind = CALL_PLANNED;
        if (plan_host_run(&call->plan, &run, &request, &status) == 0)
            return 0;
        return fail_with(state, &status);
    }
    if (PyErr_Occurred())
        return -1;
    const int found = library_of_host_arrays(state, arguments->objects, &call->library);
    if (found < 0)
        return -1;
    if (found) {
        call->kind = CALL_HOST_TENSORS;
        return 0;
    }
    return prepare_host_layout(state, arguments->objects, &request, why, call);
}

/* Reads the deferred operands, whose stream the other operands decide. */
static int
read_deferred(struct module_state *state, const struct add_arguments *arguments, bool deferred[ROLE_COUNT],
              struct prepared_call *call)
{
    const struct operand *known[ROLE_COUNT];
    int result = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        known[role] = call->described[role] && !deferred[role] ? &call->operands[role].operand : NULL;
    const struct stream_leader leader = plan_leader(known);
    for (int role = 0; role < ROLE_COUNT && result == 0; role++) {
        if (!deferred[role])
            continue;
        int found = device_operand_read_deferred(state, arguments->objects[role], (enum role)role, leader.stream,
                                                 &call->operands[role]);
        call->described[role] = found > 0;
        result = found < 0 ? -1 : 0;
    }
    return result;
}

/* Describes the objects that are in device memory. Returns how many there are, or -1. Stops at one that only its
 * library can add, and sets call->library. */
static int
find_device_operands(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    struct operand_reader reader = {.defers = !arguments->stream, .leaves = arguments->purpose != PLAN_ADDITION};
    bool deferred[ROLE_COUNT] = {false, false, false}, any = false;
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyObject *object = arguments->objects[role];
        int found = object ? device_operand_read(state, object, (enum role)role, arguments->stream, &reader,
                                                 &call->operands[role])
                           : 0;
        if (found < 0)
            return -1;
        call->described[role] = found > 0;
        any |= deferred[role] = found == DEVICE_OPERAND_DEFERRED;
        if (found == DEVICE_OPERAND_LEFT) {
            call->library = call->operands[role].library;
            return 0;
        }
    }
    if (any && read_deferred(state, arguments, deferred, call) < 0)
        return -1;
    return call->described[ROLE_A] + call->described[ROLE_B] + call->described[ROLE_OUT];
}

static int
refuse_host_operand(enum role role)
{
    const char *name = role_name[role];
    if (role == ROLE_OUT)
        return refuse(PyExc_TypeError, "the operands are in device memory and out is not: make out with "
                                       "vecadd.to_device, or add first and call the sum's numpy()");
    return refuse(PyExc_TypeError,
                  "%s is in host memory and another operand in device memory: copy it with vecadd.to_device(%s)", name,
                  name);
}

static int
refuse_number_with_rules(enum role role, PyObject *number)
{
    OWNED PyObject *type = PyObject_GetAttrString((PyObject *)Py_TYPE(number), "__name__");
    if (type)
        PyErr_Format(PyExc_TypeError,
                     "%s is a %S, which has rules of its own for additions; the GPU adds plain numbers only",
                     role_name[role], type);
    return -1;
}

/* Whether all operands are of one dtype and shape, and contiguous: the case of most calls. */
static bool
are_runs(const struct prepared_call *call)
{
    const struct operand *a = &call->operands[ROLE_A].operand, *out = &call->operands[ROLE_OUT].operand;
    return call->described[ROLE_A] && call->described[ROLE_B] && !a->strides &&
           operand_is(&call->operands[ROLE_B].operand, a->dtype, a->ndim, a->shape) &&
           (!call->described[ROLE_OUT] || (operand_is(out, a->dtype, a->ndim, a->shape) && out->writable));
}

/* An array without elements has no pointer that tells its device: it takes that of the others. */
static int
settle_devices(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    int device = arguments->device;
    bool settled = true;
    for (int role = ROLE_COUNT; role-- > 0;) {
        if (!call->described[role])
            continue;
        if (call->operands[role].operand.device >= 0)
            device = call->operands[role].operand.device;
        else
            settled = false;
    }
    if (settled)
        return 0;
    struct status status;
    if (device < 0 && device_current(&device, &status) < 0)
        return fail_with(state, &status);
    for (int role = 0; role < ROLE_COUNT; role++)
        if (call->described[role] && call->operands[role].operand.device < 0)
            call->operands[role].operand.device = device;
    return 0;
}

/* A sum not yet made will be on a's device, in the order of the stream chosen. */
static int
prepare_device_runs(struct module_state *state, const struct plan_request *request, struct prepared_call *call)
{
    const struct operand *a = &call->operands[ROLE_A].operand;
    struct operand sum = *a;
    sum.data = NULL;
    sum.has_stream = false;
    const struct operand *const operands[] = {a, &call->operands[ROLE_B].operand,
                                              call->described[ROLE_OUT] ? &call->operands[ROLE_OUT].operand : &sum};
    call->sum = (struct device_shape){a->dtype, a->ndim, a->shape, ROLE_A, NULL};
    return plan_call(state, NULL, operands, request, call);
}

/* Device operands of any layout and dtypes, and numbers. */
static int
prepare_device_layout(struct module_state *state, const struct add_arguments *arguments,
                      const struct plan_request *request, struct prepared_call *call)
{
    struct scalar numbers[ROLE_OUT];
    struct addition *addition = &call->addition;
    struct addition_rules rules = {.order = ORDER_C};
    call->sum.like = call->described[ROLE_A] ? ROLE_A : ROLE_B;
    if (find_sum_dtype(state, arguments, call, numbers) < 0)
        return -1;
    rules.dtype = call->sum.dtype;
    const struct operand *const operands[] = {&call->operands[ROLE_A].operand, &call->operands[ROLE_B].operand,
                                              call->described[ROLE_OUT] ? &call->operands[ROLE_OUT].operand : NULL};
    if (!operands[ROLE_OUT] && (operands[ROLE_A]->strides || operands[ROLE_B]->strides))
        rules.order = library_order(call->operands[call->sum.like].library);
    const enum refusal refusal = addition_resolve(addition, operands, &rules);
    if (refusal != REFUSED_NOT)
        return raise_refusal(refusal, addition, operands);
    call->sum.ndim = addition->ndim;
    call->sum.shape = addition->shape;
    call->sum.strides = addition->size && addition->ordered ? addition->strides : NULL;
    return plan_call(state, addition, operands, request, call);
}

static int
refuse_numpys_keyword(const struct add_arguments *arguments)
{
    return refuse(PyExc_TypeError, "%s= is numpy.add's, for additions on the host; device arrays do not take it",
                  arguments->numpys_own);
}

static int
prepare_library(const struct add_arguments *arguments, struct prepared_call *call)
{
    call->kind = CALL_LIBRARY;
    return arguments->numpys_own ? refuse_numpys_keyword(arguments) : 0;
}

static int
prepare_device(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyObject *object = arguments->objects[role];
        if (!object || call->described[role])
            continue;
        if (role == ROLE_OUT || !scalar_is(object) || !(call->described[ROLE_A] || call->described[ROLE_B]))
            return refuse_host_operand((enum role)role);
        const int has_rules = scalar_has_rules(state, object);
        if (has_rules)
            return has_rules < 0 ? -1 : refuse_number_with_rules((enum role)role, object);
    }
    if (arguments->numpys_own)
        return refuse_numpys_keyword(arguments);
    if (arguments->choice == DEVICE_CPU || arguments->choice == DEVICE_HYBRID)
        return refuse(PyExc_ValueError, "device is '%s', but the operands are in device memory: leave device out",
                      arguments->choice == DEVICE_CPU ? "cpu" : "hybrid");
    struct plan_request request = {.on_device = arguments->choice == DEVICE_CUDA,
                                   .device = arguments->device,
                                   .has_stream = arguments->stream != NULL};
    if (arguments->stream && stream_from_object(state, arguments->stream, &request.stream) < 0)
        return -1;
    if (settle_devices(state, arguments, call) < 0)
        return -1;
    if ((are_runs(call) ? prepare_device_runs(state, &request, call)
                        : prepare_device_layout(state, arguments, &request, call)) < 0)
        return -1;
    struct status status;
    if (stream_check_device(call->plan.device, call->plan.stream, &status) == 0)
        return 0;
    return fail_with(state, &status);
}

int
call_prepare(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    PyObject *const *objects = arguments->objects;
    call->kind = CALL_NUMPY;
    call->library = NULL;
    call->descr = NULL;
    call->described[ROLE_A] = call->described[ROLE_B] = call->described[ROLE_OUT] = false;
    if (PyArray_CheckExact(objects[ROLE_A]) && PyArray_CheckExact(objects[ROLE_B]) &&
        (!objects[ROLE_OUT] || PyArray_CheckExact(objects[ROLE_OUT]))) {
        const int result = prepare_host(state, arguments, call);
        if (result < 0)
            call_clear(call);
        return result;
    }
    int result = -1;
    const int on_device = find_device_operands(state, arguments, call);
    if (on_device >= 0)
        result = call->library ? prepare_library(arguments, call)
                 : on_device   ? prepare_device(state, arguments, call)
                               : prepare_host(state, arguments, call);
    if (result < 0)
        call_clear(call);
    return result;
}

int
check_by_numpy(PyObject *const objects[ROLE_COUNT])
{
    OWNED PyObject *checked = call_imported("vecadd._called_by_core", "check_numpy_call", "(OOO)", objects[ROLE_A],
                                            objects[ROLE_B], objects[ROLE_OUT]);
    return checked ? 0 : -1;
}

void
call_clear(struct prepared_call *call)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (call->described[role])
            device_operand_clear(&call->operands[role]);
    Py_CLEAR(call->descr);
}
