#include "py/calls/plan_batch.h"

#include <string.h>

#include "choose/plan.h"
#include "py/base/errors.h"
#include "py/calls/batch.h"

struct batch_plan {
    struct batch_call call;
    struct graph *graph; /* of device arrays; else NULL */
};

static bool
is_list(PyObject *object)
{
    return object && (PyList_Check(object) || PyTuple_Check(object));
}

bool
batch_plan_meant(const struct add_arguments *arguments)
{
    return is_list(arguments->objects[ROLE_A]) && is_list(arguments->objects[ROLE_B]) &&
           is_list(arguments->objects[ROLE_OUT]);
}

static int
check_outs(const struct batch_call *call)
{
    for (Py_ssize_t pair = 0; pair < call->count; pair++)
        if (Py_IsNone(PyTuple_GetItem(call->lists[ROLE_OUT], pair))) {
            PyErr_Format(PyExc_TypeError, "pair %zd: plan() needs an out for it", pair);
            return -1;
        }
    return 0;
}

static bool
same_memory(const struct batch_add *p, const struct batch_add *q)
{
    return p->a == q->a && p->b == q->b && p->c == q->c;
}

/* Refuses operands whose memory differs at each look, as a conjugated view's in PyTorch does: a plan would go stale. */
static int
check_memory_stays(struct module_state *state, const struct batch_arguments *arguments, const struct batch_call *call)
{
    struct batch_call again;
    if (batch_prepare(state, arguments, &again) < 0)
        return -1;
    Py_ssize_t wrong = -1;
    for (size_t i = 0; i < call->add_count && wrong < 0; i++)
        if (i >= again.add_count || !same_memory(&call->adds[i], &again.adds[i]))
            wrong = call->add_pair[i];
    batch_clear(&again);
    if (wrong < 0)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "pair %zd: an operand is a view whose values are computed anew for each addition (conjugated or "
                 "negated): plan with a tensor of its own, as resolve_conj().resolve_neg() gives it",
                 wrong);
    return -1;
}

static int
open_graph(struct module_state *state, const struct batch_arguments *arguments, struct batch_plan *plan)
{
    if (plan->call.count == 0 || plan->call.place == PLACE_HOST)
        return 0;
    if (plan->call.held && check_memory_stays(state, arguments, &plan->call) < 0)
        return -1;
    if (batch_record(state, &plan->call) < 0) /* once for all runs: it takes effect whenever the memory is freed */
        return -1;
    const struct device_batch batch = batch_of_call(&plan->call);
    struct status status;
    PyThreadState *released = PyEval_SaveThread();
    int failed = graph_of_batch(&plan->graph, &batch, &status);
    PyEval_RestoreThread(released);
    if (failed)
        status_raise(state, &status);
    return failed;
}

struct batch_plan *
batch_plan_open(PyObject *module, const struct add_arguments *given)
{
    struct module_state *state = PyModule_GetState(module);
    const struct batch_arguments arguments = {given->objects[ROLE_A], given->objects[ROLE_B], given->objects[ROLE_OUT],
                                              given->stream, true};
    struct batch_plan *plan = PyMem_Calloc(1, sizeof *plan);
    if (!plan)
        return PyErr_NoMemory(), NULL;
    if (batch_prepare(state, &arguments, &plan->call) == 0) {
        if (check_outs(&plan->call) == 0 && open_graph(state, &arguments, plan) == 0)
            return plan;
        batch_clear(&plan->call);
    }
    PyMem_Free(plan);
    return NULL;
}

/* Looks at the arrays again: NumPy's can be resized or made read-only at any time. */
static PyObject *
run_on_host(struct batch_plan *plan, PyObject *module)
{
    const struct batch_arguments arguments = {plan->call.lists[ROLE_A], plan->call.lists[ROLE_B],
                                              plan->call.lists[ROLE_OUT], NULL, true};
    struct batch_call call;
    if (batch_prepare(PyModule_GetState(module), &arguments, &call) < 0)
        return NULL;
    int failed = batch_run(module, &call, NULL);
    batch_clear(&call);
    return failed < 0 ? NULL : Py_NewRef(plan->call.result);
}

PyObject *
batch_plan_run(struct batch_plan *plan, PyObject *module)
{
    if (!plan->graph)
        return run_on_host(plan, module);
    return batch_run(module, &plan->call, plan->graph) < 0 ? NULL : Py_NewRef(plan->call.result);
}

const char *
batch_plan_route(const struct batch_plan *plan)
{
    return route_name[plan->graph ? ROUTE_DEVICE : ROUTE_HOST];
}

Py_ssize_t
batch_plan_count(const struct batch_plan *plan)
{
    return plan->call.count;
}

struct device_batch
batch_plan_device(const struct batch_plan *plan)
{
    return batch_of_call(&plan->call);
}

int
batch_plan_traverse(const struct batch_plan *plan, visitproc visit, void *arg)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        Py_VISIT(plan->call.lists[role]);
    Py_VISIT(plan->call.result);
    Py_VISIT(plan->call.gaps);
    Py_VISIT(plan->call.held);
    Py_VISIT(plan->call.count_writes);
    Py_VISIT(plan->call.written);
    Py_VISIT(plan->call.stream_object);
    return 0;
}

/* The graph goes first: the owners held here may be the last of the memory that it uses. */
void
batch_plan_close(struct batch_plan *plan)
{
    if (!plan)
        return;
    if (plan->graph) {
        PyThreadState *released = PyEval_SaveThread(); /* destroying a graph waits while a stream's queue is full */
        graph_close(plan->graph);
        PyEval_RestoreThread(released);
    }
    batch_clear(&plan->call);
    PyMem_Free(plan);
}
