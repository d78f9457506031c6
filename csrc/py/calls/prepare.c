#include "py/calls/prepare.h"
#include "choose/plan.h"
#include "py/operands/where.h"

#include "gpu/device.h"
#include "gpu/stream.h"
#include "py/base/errors.h"
#include "py/calls/prepare_layout.h"
#include "py/operands/interop.h"
#include "py/operands/promotion.h"

static int
plan_call(struct module_state *state, const struct operand *const operands[ROLE_COUNT],
          const struct plan_request *request, struct prepared_call *call)
{
    struct status status;
    call->kind = CALL_PLANNED;
    if (plan_make(&call->plan, operands[ROLE_A], operands[ROLE_B], operands[ROLE_OUT], request, &status) == 0)
        return 0;
    status_raise(state, &status);
    return -1;
}

static int
prepare_host(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    if (arguments->stream) {
        PyErr_SetString(PyExc_TypeError, "stream orders work on device arrays, and the operands are in host memory");
        return -1;
    }
    bool on_device = arguments->choice == DEVICE_CUDA, hybrid = arguments->choice == DEVICE_HYBRID;
    if ((on_device || hybrid) && arguments->numpys_own) {
        PyErr_Format(PyExc_TypeError, "%s= is numpy.add's, for additions on the host: leave it or device out",
                     arguments->numpys_own);
        return -1;
    }
    struct operand operands[ROLE_COUNT];
    call->why = arguments->numpys_own ? "a keyword of NumPy's own" : host_operands(state, arguments->objects, operands);
    if (call->why) {
        const int tensors = arguments->numpys_own ? 0 : foreign_host_library(state, arguments->objects, &call->library);
        if (tensors) {
            call->kind = CALL_TENSORS;
            return tensors < 0 ? -1 : 0;
        }
        const bool staged = on_device || hybrid;
        const int found =
            staged || arguments->numpys_own ? 0 : host_rows_call_from(state, arguments->objects, &call->host_rows);
        call->kind = staged ? CALL_STAGED : found ? CALL_HOST_ROWS : CALL_NUMPY;
        return found < 0 ? -1 : 0;
    }
    const struct operand *const pointers[] = {&operands[ROLE_A], &operands[ROLE_B], &operands[ROLE_OUT]};
    const struct plan_request request = {.on_device = on_device,
                                         .hybrid = hybrid,
                                         .open = arguments->choice == DEVICE_UNSAID,
                                         .device = arguments->device};
    return plan_call(state, pointers, &request, call);
}

/* Reads the operands that wait for the stream that the others lead to. */
static int
read_deferred(struct module_state *state, const struct add_arguments *arguments, bool deferred[ROLE_COUNT],
              struct prepared_call *call)
{
    const struct operand *known[ROLE_COUNT];
    int result = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        known[role] = call->held[role] && !deferred[role] ? &call->devices[role].operand : NULL;
    const struct operand *leader = plan_leader(known);
    for (int role = 0; role < ROLE_COUNT && result == 0; role++) {
        if (!deferred[role])
            continue;
        int found = device_operand_read_deferred(state, arguments->objects[role], (enum role)role,
                                                 leader ? leader->stream : NULL, &call->devices[role]);
        call->held[role] = found > 0;
        result = found < 0 ? -1 : 0;
    }
    return result;
}

/* Describes those of the objects that are in device memory. Returns how many they are, or -1. */
static int
find_device_operands(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    struct operand_reader reader = {.defers = !arguments->stream};
    bool deferred[ROLE_COUNT] = {false, false, false}, any = false;
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyObject *object = arguments->objects[role];
        int found = object ? device_operand_read(state, object, (enum role)role, arguments->stream, &reader,
                                                 &call->devices[role])
                           : 0;
        if (found < 0)
            return -1;
        call->held[role] = found > 0;
        any |= deferred[role] = found == DEVICE_OPERAND_DEFERRED;
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

/* Whether each operand is one run of memory, and all are of one dtype and shape: what most calls are. */
static bool
are_alike(const struct prepared_call *call)
{
    const struct device_operand *a = &call->devices[ROLE_A], *out = &call->devices[ROLE_OUT];
    const enum dtype dtype = a->operand.dtype;
    return call->held[ROLE_A] && call->held[ROLE_B] && !a->strides &&
           device_operand_is(&call->devices[ROLE_B], dtype, a->ndim, a->shape) &&
           (!call->held[ROLE_OUT] || (device_operand_is(out, dtype, a->ndim, a->shape) && out->operand.writable));
}

/* An array without elements has no pointer to ask about: it is wherever the others are. */
static int
settle_devices(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    int device = arguments->device;
    bool settled = true;
    for (int role = ROLE_COUNT; role-- > 0;) {
        if (!call->held[role])
            continue;
        if (call->devices[role].operand.device >= 0)
            device = call->devices[role].operand.device;
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
        if (call->held[role] && call->devices[role].operand.device < 0)
            call->devices[role].operand.device = device;
    return 0;
}

/* A sum that is still to be made will be on a's device, used in the order of whatever stream is chosen. */
static int
prepare_run(struct module_state *state, const struct plan_request *request, struct prepared_call *call)
{
    const struct device_operand *a = &call->devices[ROLE_A];
    struct operand sum = a->operand;
    sum.data = NULL;
    sum.has_stream = false;
    const struct operand *const pointers[] = {&a->operand, &call->devices[ROLE_B].operand,
                                              call->held[ROLE_OUT] ? &call->devices[ROLE_OUT].operand : &sum};
    call->sum = (struct device_shape){a->operand.dtype, a->ndim, a->shape, ROLE_A, NULL};
    return plan_call(state, pointers, request, call);
}

static int
prepare_device(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (arguments->objects[role] && !call->held[role] &&
            (role == ROLE_OUT || !scalar_is(arguments->objects[role]) || !(call->held[ROLE_A] || call->held[ROLE_B])))
            return refuse_host_operand((enum role)role);
    if (arguments->numpys_own) {
        PyErr_Format(PyExc_TypeError, "%s= is numpy.add's, for additions on the host; device arrays do not take it",
                     arguments->numpys_own);
        return -1;
    }
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
    int failed =
        are_alike(call) ? prepare_run(state, &request, call) : prepare_layout(state, arguments, &request, call);
    if (failed)
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
    call->held[ROLE_A] = call->held[ROLE_B] = call->held[ROLE_OUT] = false;
    if (PyArray_CheckExact(objects[ROLE_A]) && PyArray_CheckExact(objects[ROLE_B]) &&
        (!objects[ROLE_OUT] || PyArray_CheckExact(objects[ROLE_OUT])))
        return prepare_host(state, arguments, call);

    int result = -1;
    int on_device = find_device_operands(state, arguments, call);
    if (on_device >= 0)
        result = on_device ? prepare_device(state, arguments, call) : prepare_host(state, arguments, call);
    if (result < 0)
        call_clear(call);
    return result;
}

void
call_clear(struct prepared_call *call)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (call->held[role])
            device_operand_clear(&call->devices[role]);
    Py_CLEAR(call->library);
    if (call->kind == CALL_HOST_ROWS)
        host_rows_call_clear(&call->host_rows);
}
