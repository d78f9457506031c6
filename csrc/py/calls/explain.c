/* explain_route: what add would do with a call, without doing it, and the reasons. */
#include "base/plan.h"
#include "choose/plan.h"
#include "cuda/facts.h"
#include "host/simd.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/calls/add.h"
#include "py/calls/prepare.h"
#include "py/operands/where.h"

/* Seconds by route; empty unless the formula decides. */
static PyObject *
predicted(const struct routes_explanation *found)
{
    PyObject *dict = PyDict_New();
    for (enum route route = ROUTE_HOST; dict && route < ROUTE_DEVICE; route++)
        if (found->seconds[route] > 0)
            dict = dict_with(dict, route_name[route], PyFloat_FromDouble(found->seconds[route]));
    return dict;
}

/* The dict that explains a plan of host operands, with "reason", "memory", "predicted" and, after a failure, "failure".
 * `asked`: the caller named the device. Takes the reference; NULL with an exception set. */
static PyObject *
add_reason(PyObject *dict, const struct plan *plan, bool asked)
{
    static const char *const reasons[] = {
        [ROUTES_ASKED] = "asked",
        [ROUTES_NO_CUDA] = "no CUDA",
        [ROUTES_FORBIDDEN] = "forbidden",
        [ROUTES_FAILED] = "failed",
        [ROUTES_SMALL_OR_ORDINARY] = "small or ordinary",
        [ROUTES_ROUNDING] = "rounding",
        [ROUTES_PREDICTED] = "predicted",
    };
    struct routes_explanation found;
    routes_explain(plan, asked, &found);
    dict = dict_with(dict, "reason", PyUnicode_FromString(reasons[found.reason]));
    dict = dict_with(dict, "memory", PyUnicode_FromString(found.pinned ? "pinned" : "ordinary"));
    dict = dict_with(dict, "predicted", predicted(&found));
    return found.reason == ROUTES_FAILED ? dict_with(dict, "failure", PyUnicode_FromString(found.failure)) : dict;
}

static PyObject *
explain_plan(const struct plan *plan)
{
    const char *route = route_name[plan->route];
    switch (plan->route) {
    case ROUTE_HOST:
        return Py_BuildValue(plan->strided ? "{s:s,s:s,s:i,s:s,s:s}" : "{s:s,s:s,s:i,s:s}", "route", route, "simd",
                             plan->schedule.simd->name, "threads", plan->schedule.threads, "stores",
                             plan->schedule.streaming ? "streaming" : "ordinary", "layout", "rows");
    case ROUTE_HYBRID:
        return Py_BuildValue("{s:s,s:s,s:i}", "route", route, "simd", plan->schedule.simd->name, "threads",
                             plan->schedule.threads);
    case ROUTE_TRANSFER:
        if (plan->device < 0)
            return Py_BuildValue("{s:s,s:O}", "route", route, "device", Py_None);
        return Py_BuildValue("{s:s,s:i}", "route", route, "device", plan->device);
    case ROUTE_NONE:
        return Py_BuildValue("{s:s,s:s}", "route", route, "why", plan->why);
    case ROUTE_DEVICE:
        break;
    }
    const char *form = plan->strided ? strided_form_name(plan->strided, plan->a, plan->b, plan->c) : "run";
    return Py_BuildValue("{s:s,s:s,s:s,s:i,s:N,s:i}", "route", route, "kernel",
                         plan->strided ? "strided" : "contiguous", "layout", form, "device", plan->device, "stream",
                         PyLong_FromVoidPtr(plan->stream), "joins", plan->joins);
}

PyObject *
py_explain_route(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords)
{
    struct module_state *state = PyModule_GetState(module);
    struct add_arguments arguments;
    struct prepared_call call;
    call.differs = NULL;
    if (add_arguments_parse(state, "explain", EXPLAIN_ADDITION, values, count, keywords, &arguments) < 0 ||
        call_prepare(state, &arguments, &call) < 0)
        return NULL;
    PyObject *result = NULL;
    const struct plan *plan = &call.plan;
    struct status status;
    switch (call.kind) {
    case CALL_PLANNED:
    case CALL_COPIES:
        if (plan_check_device(plan, &status) < 0 ||
            (!plan->c && plan->route != ROUTE_DEVICE && plan_new_sum(&call.plan, NULL, &status) < 0)) {
            status_raise(state, &status);
            break;
        }
        result = explain_plan(plan);
        if (result && plan->route != ROUTE_DEVICE && !plan->strided)
            result = add_reason(result, plan, arguments.choice != DEVICE_UNSAID);
        break;
    case CALL_NUMPY:
        result = explain_plan(plan);
        break;
    case CALL_HOST_TENSORS:
        result = call_host_tensors("explain", call.library, &arguments);
        break;
    case CALL_LIBRARY:
        result = call_library(state, "explain", call.library, &arguments);
        break;
    }
    if (result && call.differs)
        result = dict_with(result, "differs", PyUnicode_FromString(call.differs));
    call_clear(&call);
    return result;
}
