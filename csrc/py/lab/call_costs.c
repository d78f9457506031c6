/* Where a call of add spends its nanoseconds: its stages, and the bare launches that it is compared with. */
#include <string.h>

#include "base/util.h"
#include "choose/plan.h"
#include "gpu/stream.h"
#include "lab/ladder/latency.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/calls/prepare.h"
#include "py/calls/result.h"

/* A call of add with three device arrays, to be made `calls` times. */
struct repeated_call {
    PyObject *objects[ROLE_COUNT]; /* borrowed */
    int calls;
    enum raw_launch_way way;
    struct prepared_call prepared;
};

static int
way_of(const char *name, enum raw_launch_way *way)
{
    static const char *const names[] = {
        [RAW_LAUNCH_PLAIN] = "plain", [RAW_LAUNCH_PROGRAMMATIC] = "programmatic", [RAW_LAUNCH_GRAPH] = "graph"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *way = (enum raw_launch_way)i;
            return 0;
        }
    return refuse(PyExc_ValueError, "way must be 'plain', 'programmatic' or 'graph', not '%s'", name);
}

/* Parses "OOO|$i:NAME" or, with a way, "OOO|$is:NAME". */
static int
parse(PyObject *arguments, PyObject *keywords, const char *format, struct repeated_call *call)
{
    static char *names[] = {"", "", "", "calls", "way", NULL}, *without_way[] = {"", "", "", "calls", NULL};
    const bool takes_way = format[strcspn(format, ":") - 1] == 's';
    const char *way = "plain";
    call->calls = 0; /* keyword-only, but required: 0 is refused below */
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, takes_way ? names : without_way,
                                     &call->objects[ROLE_A], &call->objects[ROLE_B], &call->objects[ROLE_OUT],
                                     &call->calls, &way))
        return -1;
    if (call->calls > 0)
        return way_of(way, &call->way);
    return refuse(PyExc_ValueError, "calls must be at least 1, not %d", call->calls);
}

/* Parses the arguments and plans the call. Returns 0, and the caller calls call_clear(&call->prepared); or -1 with an
 * exception set. */
static int
prepare(struct module_state *state, PyObject *arguments, PyObject *keywords, const char *format,
        struct repeated_call *call)
{
    struct add_arguments parsed;
    if (parse(arguments, keywords, format, call) < 0 ||
        add_arguments_parse(state, "add", ADD_ARRAYS, call->objects, ROLE_COUNT, NULL, &parsed) < 0 ||
        call_prepare(state, &parsed, &call->prepared) < 0)
        return -1;
    const struct plan *plan = &call->prepared.plan;
    if (call->prepared.kind == CALL_PLANNED && plan->route == ROUTE_DEVICE && plan->joins == 0 && plan->n > 0)
        return 0;
    call_clear(&call->prepared);
    return refuse(PyExc_ValueError, "a, b and out must be device arrays with elements, on one stream");
}

PyObject *
py_raw_launches(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    struct module_state *state = PyModule_GetState(module);
    struct repeated_call call;
    struct status status;
    double seconds;
    if (prepare(state, arguments, keywords, "OOO|$is:raw_launches", &call) < 0)
        return NULL;
    const int failed = WITHOUT_GIL(raw_launches(&call.prepared.plan, call.way, call.calls, &seconds, &status));
    call_clear(&call.prepared);
    return failed ? status_raise(state, &status) : PyFloat_FromDouble(seconds);
}

struct stages {
    double parse, describe, plan, allocate, launch;
};

/* Times each stage by itself, in the order of a call. Returns 0, or -1 with an exception set. */
static int
time_stages(struct module_state *state, PyObject *const objects[ROLE_COUNT], int calls, struct stages *stages)
{
    struct add_arguments arguments;
    struct prepared_call call;
    struct owned_operand operand, made;
    struct status status;
    unsigned flags;
    double begin = now_seconds();
    for (int i = 0; i < calls; i++)
        if (add_arguments_parse(state, "add", ADD_ARRAYS, objects, ROLE_COUNT, NULL, &arguments) < 0)
            return -1;
    stages->parse = now_seconds() - begin;

    begin = now_seconds();
    for (int i = 0; i < calls; i++) {
        struct operand_reader reader = {0};
        for (int role = 0; role < ROLE_COUNT; role++) {
            if (device_operand_read(state, objects[role], (enum role)role, NULL, &reader, &operand) <= 0)
                return -1;
            device_operand_clear(&operand);
        }
    }
    stages->describe = now_seconds() - begin;

    begin = now_seconds();
    for (int i = 0; i < calls; i++) {
        if (call_prepare(state, &arguments, &call) < 0)
            return -1;
        call_clear(&call);
    }
    stages->plan = now_seconds() - begin - stages->describe;

    if (call_prepare(state, &arguments, &call) < 0)
        return -1;
    int failed = 0;
    begin = now_seconds();
    for (int i = 0; i < calls && !failed; i++) {
        struct sum_stream stream = {.objects = objects};
        failed = stream_of_memory(call.plan.device, call.plan.stream, call.plan.join, (size_t)call.plan.joins,
                                  &stream.stream, &status);
        if (failed) {
            status_raise(state, &status);
            break;
        }
        PyObject *sum =
            device_result(state, &call.operands[call.sum.like], &call.sum, call.plan.device, &stream, NULL, &made);
        sum_stream_clear(&stream);
        failed = sum ? 0 : -1;
        if (sum)
            device_operand_clear(&made);
        Py_XDECREF(sum);
    }
    stages->allocate = now_seconds() - begin;

    begin = now_seconds();
    for (int i = 0; i < calls && !failed; i++) {
        failed = WITHOUT_GIL(plan_run(&call.plan, &flags, &status));
        if (failed)
            status_raise(state, &status);
    }
    stages->launch = now_seconds() - begin;
    call_clear(&call);
    return failed;
}

PyObject *
py_call_stages(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    struct module_state *state = PyModule_GetState(module);
    struct repeated_call call;
    struct stages stages;
    if (prepare(state, arguments, keywords, "OOO|$i:call_stages", &call) < 0)
        return NULL;
    call_clear(&call.prepared);
    const int calls = call.calls;
    if (time_stages(state, call.objects, calls, &stages) < 0)
        return NULL;
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d}", "parse", stages.parse / calls, "describe", stages.describe / calls,
                         "plan", stages.plan / calls, "allocate", stages.allocate / calls, "launch",
                         stages.launch / calls);
}
