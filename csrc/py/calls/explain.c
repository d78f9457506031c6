/* explain_route: what add would do with a call, told without doing it. */
#include "choose/plan.h"
#include "choose/routes.h"
#include "cuda/strided_form.h"
#include "py/base/methods.h"
#include "py/calls/add.h"
#include "py/calls/prepare.h"
#include "py/calls/route_facts.h"
#include "py/operands/where.h"

static PyObject *
explain_plan(const struct plan *plan)
{
    const char *route = route_name[plan->route];
    switch (plan->route) {
    case ROUTE_HOST:
        return Py_BuildValue("{s:s,s:s,s:i,s:s}", "route", route, "simd", plan->simd->name, "threads",
                             plan->schedule.threads, "stores", plan->schedule.streaming ? "streaming" : "ordinary");
    case ROUTE_HYBRID:
        return Py_BuildValue("{s:s,s:s,s:i}", "route", route, "simd", plan->simd->name, "threads",
                             plan->schedule.threads);
    case ROUTE_TRANSFER:
        if (plan->device < 0)
            return Py_BuildValue("{s:s,s:O}", "route", route, "device", Py_None);
        return Py_BuildValue("{s:s,s:i}", "route", route, "device", plan->device);
    case ROUTE_DEVICE:
        break;
    }
    const char *form = plan->strided ? strided_form_name(plan->strided, plan->a, plan->b, plan->c) : "run";
    return Py_BuildValue("{s:s,s:s,s:s,s:i,s:N,s:i}", "route", route, "kernel", plan->strided ? "strided" : "tuned",
                         "layout", form, "device", plan->device, "stream", PyLong_FromVoidPtr(plan->stream), "joins",
                         plan->joins);
}

static PyObject *
explain_host_rows(const struct host_rows *call)
{
    return Py_BuildValue("{s:s,s:s,s:i,s:s,s:s}", "route", route_name[ROUTE_HOST], "simd", call->simd->name, "threads",
                         call->schedule.threads, "stores", call->schedule.streaming ? "streaming" : "ordinary",
                         "layout", "rows");
}

const char explain_route_doc[] =
    PyDoc_STR("explain_route($module, a, b, /, out=None, *, device=None, stream=None, **numpy_keywords)\n--\n\n"
              "What add would do with these arguments, a dict: 'route' is 'host', 'transfer', 'hybrid', 'device' or\n"
              "'numpy'. Raises what add would raise before it starts to work.");

PyObject *
py_explain_route(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords)
{
    struct module_state *state = PyModule_GetState(module);
    struct add_arguments arguments;
    struct prepared_call call;
    if (add_arguments_parse(state, "explain_route", values, count, keywords, &arguments) < 0 ||
        call_prepare(state, &arguments, &call) < 0)
        return NULL;
    PyObject *result = NULL;
    switch (call.kind) {
    case CALL_PLANNED:
        result = explain_plan(&call.plan);
        if (result && call.plan.route != ROUTE_DEVICE &&
            route_facts_add(result, &call.plan, arguments.choice != DEVICE_UNSAID) < 0)
            Py_CLEAR(result);
        break;
    case CALL_HOST_ROWS:
        result = explain_host_rows(&call.host_rows.core);
        break;
    case CALL_TENSORS:
        result = call_in_python("vecadd._tensors", "explain", call.library, &arguments);
        break;
    case CALL_NUMPY:
        result = Py_BuildValue("{s:s,s:s}", "route", "numpy", "why", call.why);
        break;
    case CALL_STAGED:
        result = Py_BuildValue("{s:s,s:s}", "route",
                               route_name[arguments.choice == DEVICE_HYBRID ? ROUTE_HYBRID : ROUTE_TRANSFER], "staged",
                               call.why);
        break;
    }
    call_clear(&call);
    return result;
}
