#include "py/calls/prepare.h"

#include "choose/plan.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "py/base/errors.h"
#include "py/calls/refusals.h"
#include "py/calls/sum_dtype.h"
#include "py/operands/host_pair.h"
#include "py/operands/interop.h"
#include "py/operands/promotion.h"
#include "py/operands/where.h"

static int
plan_call(struct module_state *state, const struct addition *addition, const struct operand *const operands[ROLE_COUNT],
          const struct plan_request *request, struct prepared_call *call)
{
    struct status status;
    if (plan_make(&call->plan, addition, operands, request, &status) < 0) {
        status_raise(state, &status);
        return -1;
    }
    call->kind = call->plan.route == ROUTE_NONE ? CALL_NUMPY : CALL_PLANNED;
    return 0;
}

/* Returns 0; -1 where the look at the operands has raised what clear_refusal() leaves. */
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

/* Host operands that differ in dtype or shape or are not contiguous. NumPy gets what vecadd refuses, for its own
 * errors. */
static int
prepare_host_layout(struct module_state *state, PyObject *const objects[ROLE_COUNT], const struct plan_request *request,
                    const char *why_no_run, struct prepared_call *call)
{
    struct host_sum sum;
    call->differs = why_no_run;
    if (request->on_device || request->hybrid) {
        call->kind = CALL_MATERIALIZED;
        return 0;
    }
    const char *not_ours = host_pair_from(state, objects, PLAN_STRIDED_MIN, call->operands, &sum);
    if (not_ours)
        return leave_to_numpy(call, not_ours);
    call->held[ROLE_A] = call->held[ROLE_B] = true;
    call->descr = sum.descr;
    PyObject *out = objects[ROLE_OUT];
    if (out && !(call->held[ROLE_OUT] = host_out_from(state, out, &call->operands[ROLE_OUT])))
        return leave_to_numpy(call, "out is no plain array of a dtype that vecadd adds");

    static const char *const why[] = {
        [REFUSED_SHAPES] = "the shapes do not go together",
        [REFUSED_OUT_SHAPE] = "out has not the sum's shape",
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
    if (arguments->stream) {
        PyErr_SetString(PyExc_TypeError, "stream orders work on device arrays, and the operands are in host memory");
        return -1;
    }
    const struct plan_request request = {.on_device = arguments->choice == DEVICE_CUDA,
                                         .hybrid = arguments->choice == DEVICE_HYBRID,
                                         .open = arguments->choice == DEVICE_UNSAID,
                                         .device = arguments->device};
    if (arguments->numpys_own && (request.on_device || request.hybrid)) {
        PyErr_Format(PyExc_TypeError, "%s= is numpy.add's, for additions on the host: leave it or device out",
                     arguments->numpys_own);
        return -1;
    }
    if (arguments->numpys_own)
        return leave_to_numpy(call, "it has a keyword of numpy.add's own");
    struct batch_add run;
    const char *why = host_run_from(state, arguments->objects, &run);
    if (!why) {
        struct status status;
        call->kind = CALL_PLANNED;
        if (plan_host_run(&call->plan, &run, &request, &status) == 0)
            return 0;
        status_raise(state, &status);
        return -1;
    }
    if (PyErr_Occurred())
        return -1;
    const int found = interop_host_library(state, arguments->objects, &call->library);
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
        known[role] = call->held[role] && !deferred[role] ? &call->operands[role].operand : NULL;
    const struct stream_leader leader = plan_leader(known);
    for (int role = 0; role < ROLE_COUNT && result == 0; role++) {
        if (!deferred[role])
            continue;
        int found = device_operand_read_deferred(state, arguments->objects[role], (enum role)role, leader.stream,
                                                 &call->operands[role]);
        call->held[role] = found > 0;
        result = found < 0 ? -1 : 0;
    }
    return result;
}

/* Describes the objects that are in device memory. Returns how many there are, or -1. Stops at one that only its
 * library can add, and sets call->library. */
static int
find_device_operands(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    struct operand_reader reader = {.defers = !arguments->stream, .leaves = !arguments->plans};
    bool deferred[ROLE_COUNT] = {false, false, false}, any = false;
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyObject *object = arguments->objects[role];
        int found = object ? device_operand_read(state, object, (enum role)role, arguments->stream, &reader,
                                                 &call->operands[role])
                           : 0;
        if (found < 0)
            return -1;
        call->held[role] = found > 0;
        any |= deferred[role] = found == DEVICE_OPERAND_DEFERRED;
        if (found == DEVICE_OPERAND_LEFT) {
            call->library = Py_NewRef(call->operands[role].library);
            return 0;
        }
    }
    if (any && read_deferred(state, arguments, deferred, call) < 0)
        return -1;
    return call->held[ROLE_A] + call->held[ROLE_B] + call->held[ROLE_OUT];
}

static int
refuse_host_operand(enum role role)
{
    const char *name = role_name[role];
    if (role == ROLE_OUT)
        PyErr_SetString(PyExc_TypeError, "the operands are in device memory and out is not: make out with "
                                         "vecadd.to_device, or add first and call the sum's numpy()");
    else
        PyErr_Format(PyExc_TypeError,
                     "%s is in host memory and another operand in device memory: copy it with vecadd.to_device(%s)",
                     name, name);
    return -1;
}

/* What _materialize.py raises for host arrays that the GPU is to add. */
static int
refuse_number_with_rules(enum role role, PyObject *number)
{
    PyObject *type = PyObject_GetAttrString((PyObject *)Py_TYPE(number), "__name__");
    if (type)
        PyErr_Format(PyExc_TypeError,
                     "%s is a %S, which has rules of its own for additions; the GPU adds plain numbers only",
                     role_name[role], type);
    Py_XDECREF(type);
    return -1;
}

/* Whether all operands are of one dtype and shape, and contiguous: the case of most calls. */
static bool
are_runs(const struct prepared_call *call)
{
    const struct operand *a = &call->operands[ROLE_A].operand, *out = &call->operands[ROLE_OUT].operand;
    return call->held[ROLE_A] && call->held[ROLE_B] && !a->strides &&
           operand_is(&call->operands[ROLE_B].operand, a->dtype, a->ndim, a->shape) &&
           (!call->held[ROLE_OUT] || (operand_is(out, a->dtype, a->ndim, a->shape) && out->writable));
}

/* An array without elements has no pointer that tells its device: it takes that of the others. */
static int
settle_devices(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    int device = arguments->device;
    bool settled = true;
    for (int role = ROLE_COUNT; role-- > 0;) {
        if (!call->held[role])
            continue;
        if (call->operands[role].operand.device >= 0)
            device = call->operands[role].operand.device;
        else
            settled = false;
    }
    if (settled)
        return 0;
    struct status status;
    if (device < 0 && device_current(&device, &status) < 0) {
        status_raise(state, &status);
        return -1;
    }
    for (int role = 0; role < ROLE_COUNT; role++)
        if (call->held[role] && call->operands[role].operand.device < 0)
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
                                              call->held[ROLE_OUT] ? &call->operands[ROLE_OUT].operand : &sum};
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
    call->sum.like = call->held[ROLE_A] ? ROLE_A : ROLE_B;
    if (find_sum_dtype(state, arguments, call, numbers) < 0)
        return -1;
    rules.dtype = call->sum.dtype;
    const struct operand *const operands[] = {&call->operands[ROLE_A].operand, &call->operands[ROLE_B].operand,
                                              call->held[ROLE_OUT] ? &call->operands[ROLE_OUT].operand : NULL};
    if (!operands[ROLE_OUT] && (operands[ROLE_A]->strides || operands[ROLE_B]->strides) &&
        interop_order(call->operands[call->sum.like].library, &rules.order) < 0)
        return -1;
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
    PyErr_Format(PyExc_TypeError, "%s= is numpy.add's, for additions on the host; device arrays do not take it",
                 arguments->numpys_own);
    return -1;
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
        if (!object || call->held[role])
            continue;
        if (role == ROLE_OUT || !scalar_is(object) || !(call->held[ROLE_A] || call->held[ROLE_B]))
            return refuse_host_operand((enum role)role);
        const int has_rules = scalar_has_rules(state, object);
        if (has_rules)
            return has_rules < 0 ? -1 : refuse_number_with_rules((enum role)role, object);
    }
    if (arguments->numpys_own)
        return refuse_numpys_keyword(arguments);
    if (arguments->choice == DEVICE_CPU || arguments->choice == DEVICE_HYBRID) {
        PyErr_Format(PyExc_ValueError, "device is '%s', but the operands are in device memory: leave device out",
                     arguments->choice == DEVICE_CPU ? "cpu" : "hybrid");
        return -1;
    }
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
    status_raise(state, &status);
    return -1;
}

int
call_prepare(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    PyObject *const *objects = arguments->objects;
    call->kind = CALL_NUMPY;
    call->library = NULL;
    call->descr = NULL;
    call->held[ROLE_A] = call->held[ROLE_B] = call->held[ROLE_OUT] = false;
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

void
call_clear(struct prepared_call *call)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (call->held[role])
            device_operand_clear(&call->operands[role]);
    Py_CLEAR(call->library);
    Py_CLEAR(call->descr);
}
