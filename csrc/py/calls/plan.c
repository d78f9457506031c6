/* vecadd.plan and its Plan: an addition, or those of two lists, checked once and repeated. */
#include <string.h>

#include "choose/plan.h"
#include "gpu/add.h"
#include "gpu/graph.h"
#include "gpu/stream.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/calls/add.h"
#include "py/calls/add_many.h"
#include "py/calls/deferred_release.h"
#include "py/calls/pairs.h"
#include "py/calls/prepare.h"
#include "py/operands/kept_streams.h"
#include "py/operands/library.h"
#include "py/operands/where.h"

struct plan_object {
    PyObject_HEAD PyObject *objects[ROLE_COUNT]; /* the caller's; NULL once the garbage collector has cleared them */
    struct prepared_call call;                   /* keeps the memory of device operands */
    bool of_lists;                               /* the objects are lists: `pairs` in place of `call` */
    struct pairs pairs;
    struct graph *graph; /* of device arrays; else NULL */
    PyObject *streams;   /* a list of the owners of the streams that its calls use */
    bool stream_is_kept; /* whether the one that they run on is one of those, or needs no owner */
};

static struct module_state *
state_of(struct plan_object *self)
{
    return PyType_GetModuleState(Py_TYPE((PyObject *)self));
}

static PyObject *
run_graph(struct plan_object *self)
{
    struct status status;
    /* A launch may wait, as in add.c, and so may the graph's lock. */
    if (WITHOUT_GIL(graph_run(self->graph, &status)) < 0)
        return status_raise(state_of(self), &status);
    PyObject *out = Py_NewRef(self->objects[ROLE_OUT]);
    const int counted = count_write(&self->call, out);
    deferred_release_sweep();
    if (counted < 0)
        Py_CLEAR(out);
    return out;
}

static PyObject *
run_host(struct plan_object *self)
{
    const struct plan *plan = &self->call.plan;
    const struct batch_add planned = {plan->a, plan->b, plan->c, plan->n, plan->component};
    if (!host_run_is(state_of(self), self->objects, &planned))
        return PyErr_Format(PyExc_ValueError, "an array of the plan has been resized, changed its dtype or become "
                                              "read-only since: make a new plan");
    return add_run(state_of(self), plan) < 0 ? NULL : Py_NewRef(self->objects[ROLE_OUT]);
}

/* Reads lists of NumPy arrays again, which can be resized or made read-only at any time. */
static PyObject *
run_pairs(struct plan_object *self)
{
    PyObject *module = PyType_GetModule(Py_TYPE((PyObject *)self)), *const *lists = self->pairs.lists;
    if (self->graph)
        return add_many_run(module, &self->pairs, self->graph) < 0 ? NULL : Py_NewRef(self->pairs.result);
    const struct add_arguments arguments = {.objects = {lists[ROLE_A], lists[ROLE_B], lists[ROLE_OUT]},
                                            .purpose = PLAN_ADDITION};
    struct pairs again;
    if (add_many_prepare(state_of(self), &arguments, &again) < 0)
        return NULL;
    const int failed = add_many_run(module, &again, NULL);
    pairs_clear(&again);
    return failed ? NULL : Py_NewRef(self->pairs.result);
}

static PyObject *
run(struct plan_object *self)
{
    if (!self->objects[ROLE_OUT])
        return PyErr_Format(PyExc_RuntimeError, "the plan has been taken apart by the garbage collector");
    if (self->of_lists)
        return run_pairs(self);
    if (self->graph)
        return run_graph(self);
    if (self->call.kind == CALL_PLANNED && !self->call.plan.strided)
        return run_host(self);
    if (self->call.kind != CALL_NUMPY)
        return add_objects(state_of(self), self->objects[ROLE_A], self->objects[ROLE_B], self->objects[ROLE_OUT]);
    return PyObject_CallFunctionObjArgs(state_of(self)->numpy_add, self->objects[ROLE_A], self->objects[ROLE_B],
                                        self->objects[ROLE_OUT], NULL);
}

static PyObject *
plan_call(struct plan_object *self, PyObject *arguments, PyObject *keywords)
{
    if (PyTuple_Size(arguments) == 0 && (!keywords || PyDict_Size(keywords) == 0))
        return run(self);
    return PyErr_Format(PyExc_TypeError, "a Plan takes no arguments: its operands are those that it was made with");
}

static PyObject *
plan_method(PyObject *self, PyObject *Py_UNUSED(none))
{
    return run((struct plan_object *)self);
}

static int
plan_traverse(struct plan_object *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->streams);
    for (int role = 0; role < ROLE_COUNT; role++) {
        Py_VISIT(self->objects[role]);
        Py_VISIT(self->pairs.lists[role]);
        if (self->call.described[role])
            Py_VISIT(self->call.operands[role].exported);
    }
    Py_VISIT(self->pairs.result);
    Py_VISIT(self->pairs.outs_with_none);
    Py_VISIT(self->pairs.exports);
    Py_VISIT(self->pairs.written);
    Py_VISIT(self->pairs.stream_object);
    return 0;
}

/* The graph goes first: the owners kept here may be the last of the memory that it uses. */
static int
plan_clear(struct plan_object *self)
{
    struct graph *graph = self->graph;
    self->graph = NULL;
    if (graph) {
        defer_release_of_plan(&self->call, self->stream_is_kept);
        PyThreadState *released = PyEval_SaveThread(); /* destroying a graph waits while a stream's queue is full */
        graph_close(graph);
        PyEval_RestoreThread(released);
    }
    for (int role = 0; role < ROLE_COUNT; role++)
        Py_CLEAR(self->objects[role]);
    pairs_clear(&self->pairs);
    call_clear(&self->call);
    memset(self->call.described, 0, sizeof self->call.described);
    Py_CLEAR(self->streams);
    return 0;
}

static void
plan_dealloc(struct plan_object *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    PyObject_GC_UnTrack(self);
    plan_clear(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static const char *
route_of(const struct plan_object *self)
{
    return route_name[self->graph                            ? ROUTE_DEVICE
                      : self->of_lists                       ? ROUTE_HOST
                      : self->call.kind == CALL_HOST_TENSORS ? ROUTE_NONE
                                                             : self->call.plan.route];
}

static PyObject *
get_route(struct plan_object *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(route_of(self));
}

static PyObject *
plan_repr(struct plan_object *self)
{
    if (self->of_lists)
        return PyUnicode_FromFormat("<vecadd.Plan route=%s pairs=%zd>", route_of(self), self->pairs.count);
    PyObject *out = self->objects[ROLE_OUT];
    OWNED PyObject *shape = out ? PyObject_GetAttr(out, state_of(self)->names[NAME_SHAPE]) : NULL;
    OWNED PyObject *dtype = shape ? PyObject_GetAttr(out, state_of(self)->names[NAME_DTYPE]) : NULL;
    PyObject *text =
        dtype ? PyUnicode_FromFormat("<vecadd.Plan route=%s shape=%S dtype=%S>", route_of(self), shape, dtype) : NULL;
    if (text || clear_refusal() < 0)
        return text;
    return PyUnicode_FromFormat("<vecadd.Plan route=%s>", route_of(self));
}

/* The first pair whose memory has moved; `count` if none has; -1 with an exception set. */
static Py_ssize_t
first_that_moved(struct module_state *state, const struct add_arguments *arguments, const struct pairs *pairs)
{
    struct pairs again;
    if (pairs_read(state, arguments, &again) < 0)
        return -1;
    size_t i = 0;
    while (i < pairs->add_count && i < again.add_count && pairs->adds[i].a == again.adds[i].a &&
           pairs->adds[i].b == again.adds[i].b && pairs->adds[i].c == again.adds[i].c)
        i++;
    pairs_clear(&again);
    return i < pairs->add_count ? pairs->add_pair[i] : pairs->count;
}

/* 1, 0 or -1. */
static int
moved(struct module_state *state, const struct add_arguments *arguments, const struct plan *plan)
{
    struct prepared_call again;
    if (call_prepare(state, arguments, &again) < 0)
        return -1;
    const bool same = again.plan.a == plan->a && again.plan.b == plan->b && again.plan.c == plan->c;
    call_clear(&again);
    return !same;
}

/* Refuses operands whose memory differs each time they are read, as a conjugated view's in PyTorch does: a plan would
 * go stale. */
static int
check_memory_stays(struct module_state *state, const struct add_arguments *arguments, const struct plan_object *self)
{
    const struct pairs *pairs = &self->pairs;
    const Py_ssize_t pair = pairs->exports ? first_that_moved(state, arguments, pairs) : pairs->count;
    const int wrong = pair < 0 ? -1 : self->of_lists ? pair < pairs->count : moved(state, arguments, &self->call.plan);
    if (wrong <= 0)
        return wrong;
    PyErr_SetString(PyExc_ValueError,
                    "an operand is a view whose values are computed anew for each addition (conjugated "
                    "or negated): plan with a tensor of its own, as resolve_conj().resolve_neg() "
                    "gives it");
    if (self->of_lists)
        prefix_error_with_pair(pair);
    return -1;
}

/* Opens the graph of a plan of device arrays. */
static int
open_graph(struct plan_object *self, struct module_state *state, const struct add_arguments *arguments)
{
    const struct device_work work = self->of_lists ? work_of_pairs(&self->pairs) : device_work_of(&self->call.plan);
    struct status status;
    if (self->of_lists ? self->pairs.count == 0 || self->pairs.place == PLACE_HOST
                       : self->call.kind != CALL_PLANNED || self->call.plan.route != ROUTE_DEVICE)
        return 0;
    if (check_memory_stays(state, arguments, self) < 0)
        return -1;
    /* Once for all runs: it takes effect whenever the memory is freed. */
    if ((self->of_lists ? add_many_record(state, &self->pairs) : record_operands(&self->call)) < 0)
        return -1;
    return WITHOUT_GIL(graph_open(&self->graph, &work, &status)) < 0 ? fail_with(state, &status) : 0;
}

static int
check_arguments(const struct add_arguments *arguments)
{
    if (!arguments->objects[ROLE_OUT])
        PyErr_SetString(PyExc_TypeError,
                        "plan() needs out, the array that each call writes the sum to: make it as numpy.empty_like(a), "
                        "or with vecadd.to_device on a GPU");
    else if (arguments->numpys_own)
        PyErr_Format(PyExc_TypeError,
                     "plan() takes a, b, out and stream, not %s: call add(a, b, out, %s=...) each time, or "
                     "numpy.add",
                     arguments->numpys_own, arguments->numpys_own);
    else if (arguments->choice != DEVICE_UNSAID)
        PyErr_SetString(PyExc_TypeError,
                        "plan() takes a, b, out and stream, not device: a plan adds where the operands "
                        "are; call add(a, b, out, device=...) each time, or plan copies of them that "
                        "vecadd.to_device makes");
    else
        return 0;
    return -1;
}

/* Appends the object that keeps a stream, if there is one. Returns 1, 0 where nothing is known to keep it, or -1. */
static int
append_owner(PyObject *streams, void *stream, int device, PyObject *given, PyObject *arrays)
{
    if (stream == STREAM_PER_THREAD || stream_is_lasting(device, stream))
        return 1;
    OWNED PyObject *owner = stream_owner(stream, device, given, arrays);
    int found = !owner ? -1 : !Py_IsNone(owner);
    if (found > 0 && !PyBool_Check(owner) && PyList_Append(streams, owner) < 0)
        found = -1;
    return found;
}

/* CuPy destroys a stream when its object goes, and the plan queues its calls on it. */
static int
keep_streams(struct plan_object *self, const struct add_arguments *arguments)
{
    PyObject *given = arguments->stream && !PyIndex_Check(arguments->stream) ? arguments->stream : NULL;
    self->streams = PyList_New(0);
    if (!self->streams)
        return -1;
    if (!self->graph)
        return 0;
    const struct plan *plan = &self->call.plan;
    const struct pairs *pairs = &self->pairs;
    const int device = self->of_lists ? pairs->device : plan->device;
    const size_t joins = self->of_lists ? pairs->joins : (size_t)plan->joins;
    void *const *join = self->of_lists ? pairs->join : plan->join;
    OWNED PyObject *arrays = list_of_arrays(arguments->objects, ROLE_COUNT, self->of_lists);
    int found =
        arrays ? append_owner(self->streams, self->of_lists ? pairs->stream : plan->stream, device, given, arrays) : -1;
    self->stream_is_kept = found > 0;
    for (size_t i = 0; i < joins && found >= 0; i++)
        found = append_owner(self->streams, join[i], device, NULL, arrays);
    return found < 0 ? -1 : 0;
}

static bool
are_lists(const struct add_arguments *arguments)
{
    return is_list_of_arrays(arguments->objects[ROLE_A]) && is_list_of_arrays(arguments->objects[ROLE_B]) &&
           is_list_of_arrays(arguments->objects[ROLE_OUT]);
}

static int
prepare_pairs(struct plan_object *self, struct module_state *state, const struct add_arguments *arguments)
{
    if (add_many_prepare(state, arguments, &self->pairs) < 0)
        return -1;
    for (Py_ssize_t pair = 0; pair < self->pairs.count; pair++)
        if (!pairs_object(&self->pairs, ROLE_OUT, pair))
            return refuse(PyExc_TypeError, "pair %zd: plan() needs an out for it", pair);
    return 0;
}

static int
prepare_call(struct plan_object *self, struct module_state *state, const struct add_arguments *arguments)
{
    if (call_prepare(state, arguments, &self->call) == 0)
        return self->call.kind == CALL_NUMPY ? check_by_numpy(arguments->objects) : 0;
    memset(self->call.described, 0, sizeof self->call.described); /* already cleared by call_prepare */
    return -1;
}

const char plan_doc[] = PyDoc_STR(
    "plan($module, a, b, /, out, *, stream=None)\n--\n\n"
    "add(a, b, out, stream=stream) as an object: checked once, then done by each call of it.\n\n"
    "A call of the Plan takes no arguments and returns out. Device arrays are added by a CUDA graph of one kernel,\n"
    "which takes the host half of a launch; the call returns when the work is queued, after the plan's own earlier\n"
    "calls. Threads may share a Plan. While its stream captures, the kernel is launched in the graph's place, and\n"
    "waits for no stream outside of the capture. NumPy arrays are added as by add, warnings included: a route that\n"
    "leads through a GPU is left where the calling thread rounds or flushes otherwise, and after use_gpu(False).\n\n"
    "out\n"
    "    Where the sums go. It may be a or b: then each call adds once more.\n"
    "stream\n"
    "    As add's. None: the stream that add would take now; a later change of the library's current stream does not\n"
    "    move the plan.\n\n"
    "Lists or tuples of arrays in place of all three give a planned add_many: its launches as one graph, and pairs\n"
    "that need add by itself added so in each call.\n\n"
    "The Plan keeps its operands and its stream. The operands' memory must stay where it is: PyTorch's resize_ and\n"
    "set_ move it unseen. Raises what add raises for its operands, TypeError without out, and ValueError for a\n"
    "conjugated or negated view of PyTorch's; a call raises ValueError once a NumPy array has been resized or made\n"
    "read-only.\n\n"
    ">>> x = vecadd.to_device(np.ones(4))\n"
    ">>> more = vecadd.plan(x, x, out=x)\n"
    ">>> more() is x\n"
    "True\n"
    ">>> more().numpy()\n"
    "array([4., 4., 4., 4.])");

PyObject *
py_plan(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords)
{
    struct module_state *state = PyModule_GetState(module);
    struct add_arguments arguments;
    if (add_arguments_parse(state, "plan", PLAN_ADDITION, values, count, keywords, &arguments) < 0 ||
        check_arguments(&arguments) < 0)
        return NULL;
    struct plan_object *self = (struct plan_object *)PyType_GenericAlloc(state->plan_type, 0);
    if (!self)
        return NULL;
    self->of_lists = are_lists(&arguments);
    if ((self->of_lists ? prepare_pairs(self, state, &arguments) : prepare_call(self, state, &arguments)) == 0 &&
        open_graph(self, state, &arguments) == 0 && keep_streams(self, &arguments) == 0) {
        for (int role = 0; role < ROLE_COUNT; role++)
            self->objects[role] = Py_NewRef(arguments.objects[role]);
        return (PyObject *)self;
    }
    Py_DECREF(self);
    return NULL;
}

PyDoc_STRVAR(plan_type_doc, "An addition that vecadd.plan has checked: calling it adds. `route` says how, as\n"
                            "'device', 'host', 'transfer', 'hybrid' or 'numpy'.\n\n"
                            ">>> a = np.ones(4)\n"
                            ">>> plan = vecadd.plan(a, a, np.empty(4))\n"
                            ">>> plan.route, plan()\n"
                            "('host', array([2., 2., 2., 2.]))");

PyTypeObject *
plan_make_type(PyObject *module)
{
    static PyGetSetDef properties[] = {
        {"route", (getter)get_route, NULL,
         PyDoc_STR("Which way the next call goes: 'device'; 'host', or 'transfer' and 'hybrid' through a GPU, of\n"
                   "NumPy arrays; or 'numpy' for what is left to numpy.add."),
         NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    /* A method beside the slot, for help() and signature(): the slot's own signature is (*args, **kwargs). */
    static PyMethodDef methods[] = {
        {"__call__", plan_method, METH_NOARGS | METH_COEXIST,
         PyDoc_STR("__call__($self, /)\n--\n\n"
                   "Adds, and gives out back; on a device when the work is queued. Raises RuntimeError where CUDA\n"
                   "cannot be used, and vecadd.DeviceLostError after a fault on the GPU; sums on the host warn as\n"
                   "numpy.add's do, and raise FloatingPointError where numpy.errstate asks for it.\n\n"
                   ">>> vecadd.plan(np.ones(2), np.ones(2), np.empty(2))()\n"
                   "array([2., 2.])")},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, (void *)plan_type_doc},
        {Py_tp_methods, methods},
        {Py_tp_dealloc, plan_dealloc},
        {Py_tp_traverse, plan_traverse},
        {Py_tp_clear, plan_clear},
        {Py_tp_call, plan_call},
        {Py_tp_repr, plan_repr},
        {Py_tp_getset, properties},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "vecadd.Plan",
        .basicsize = sizeof(struct plan_object),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
