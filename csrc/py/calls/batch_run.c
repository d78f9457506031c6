/* Adds the pairs: one launch, or one pass of the threads, and a call of add for each other pair. */
#include "host/add.h"
#include "py/base/errors.h"
#include "py/base/floating_errors.h"
#include "py/calls/add.h"
#include "py/calls/batch.h"
#include "py/calls/batch_others.h"
#include "py/calls/batch_sums.h"
#include "py/calls/deferred_release.h"
#include "py/operands/interop.h"

struct device_batch
batch_of_call(const struct batch_call *call)
{
    return (struct device_batch){.adds = call->adds,
                                 .count = call->add_count,
                                 .device = call->device,
                                 .stream = call->stream,
                                 .join = call->join,
                                 .joins = call->joins};
}

static int
run_on_device(struct module_state *state, const struct batch_call *call, struct graph *graph)
{
    const struct device_batch batch = batch_of_call(call);
    struct status status;
    PyThreadState *released = PyEval_SaveThread(); /* a launch may wait, as in add.c, and so may the graph's lock */
    int failed = graph ? graph_run(graph, &status) : device_add_batch(&batch, &status);
    PyEval_RestoreThread(released);
    if (failed)
        status_raise(state, &status);
    else
        deferred_release_sweep();
    return failed;
}

int
batch_record(struct module_state *state, const struct batch_call *call)
{
    for (int role = 0; role < ROLE_COUNT && call->joins; role++)
        if (record_objects(state, call->lists[role], call->stream) < 0)
            return -1;
    return call->joins ? record_objects(state, call->held, call->stream) : 0;
}

/* Whether a pair's arrays are unchanged. Its out may be the sum made for it. */
static bool
is_as_looked_at(struct module_state *state, const struct batch_call *call, size_t i)
{
    const Py_ssize_t pair = call->add_pair[i];
    PyObject *objects[ROLE_COUNT];
    for (int role = 0; role < ROLE_COUNT; role++)
        objects[role] = batch_object(call, (enum role)role, pair);
    if (!objects[ROLE_OUT])
        objects[ROLE_OUT] = PyList_GetItem(call->result, pair);
    return host_run_is(state, objects, &call->adds[i]);
}

/* Called last before the work, with no Python code in between. */
static int
check_unchanged(struct module_state *state, const struct batch_call *call)
{
    for (size_t i = 0; i < call->add_count; i++)
        if (!is_as_looked_at(state, call, i)) {
            PyErr_SetString(PyExc_ValueError, "one of its arrays has been resized or changed in another way while the "
                                              "lists were looked at");
            batch_name_pair(call->add_pair[i]);
            return -1;
        }
    return 0;
}

static int
run_on_host(struct module_state *state, const struct batch_call *call, unsigned *flags)
{
    struct status status;
    if (check_unchanged(state, call) < 0)
        return -1;
    const struct host_simd *simd = host_simd_chosen(&status);
    if (!simd) {
        status_raise(state, &status);
        return -1;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < call->add_count; i++)
        bytes += call->adds[i].n * component_size[call->adds[i].component];
    const struct host_schedule schedule = host_add_batch_schedule(bytes);
    PyThreadState *released = schedule.threads > 1 || bytes >= RELEASE_BYTES ? PyEval_SaveThread() : NULL;
    int failed = host_add_batch(simd, &schedule, call->adds, call->add_count, flags, &status);
    if (released)
        PyEval_RestoreThread(released);
    if (failed)
        status_raise(state, &status);
    return failed;
}

/* Lets the library of x adopt a sum made as a DeviceArray. Takes the reference to `sum`. */
static PyObject *
adopt_sum(struct module_state *state, PyObject *x, PyObject *sum)
{
    PyObject *library;
    if (interop_library(state, x, &library) < 0) {
        Py_DECREF(sum);
        return NULL;
    }
    sum = library ? interop_adopt(library, sum) : sum;
    Py_XDECREF(library);
    return sum;
}

/* Called once the kernels are queued: each pair's library adopts its sum if it adopts sums at all. */
static int
adopt_sums(struct module_state *state, const struct batch_call *call)
{
    for (size_t i = 0; i < call->add_count && call->missing; i++) {
        const Py_ssize_t pair = call->add_pair[i];
        PyObject *x = batch_object(call, ROLE_A, pair);
        if (batch_object(call, ROLE_OUT, pair) || Py_TYPE(x) == state->device_array_type)
            continue;
        PyObject *sum = PyList_GetItem(call->result, pair);
        if (sum && Py_TYPE(sum) != state->device_array_type)
            continue;
        sum = sum ? adopt_sum(state, x, Py_NewRef(sum)) : NULL;
        if (!sum)
            batch_name_pair(pair);
        if (!sum || PyList_SetItem(call->result, pair, sum) < 0)
            return -1;
    }
    return 0;
}

/* Tells the outs' library of the writes. */
static int
count_writes(const struct batch_call *call)
{
    if (call->first_written) {
        PyObject *outs = PyTuple_GetSlice(call->lists[ROLE_OUT], 0, call->first_written);
        const int failed = outs ? interop_written(call->count_writes, outs) : -1;
        Py_XDECREF(outs);
        if (failed)
            return -1;
    }
    return call->written ? interop_written(call->count_writes, call->written) : 0;
}

int
batch_run(PyObject *module, struct batch_call *call, struct graph *graph)
{
    struct module_state *state = PyModule_GetState(module);
    unsigned flags = 0;
    if (call->add_count &&
        (call->place == PLACE_HOST ? run_on_host(state, call, &flags) : run_on_device(state, call, graph)) < 0)
        return -1;
    if (!graph && batch_record(state, call) < 0) /* a plan told them when it was made */
        return -1;
    if (count_writes(call) < 0)
        return -1;
    if (call->place == PLACE_DEVICE && adopt_sums(state, call) < 0)
        return -1;
    /* Reported last: a warning may be an error, and all sums are to be written first. */
    return batch_run_others(module, call) < 0 || batch_fill_gaps(call) < 0 ? -1 : give_floating_errors(flags);
}
