/* vecadd.add: prepare, allocate the sum, run, report floating-point flags as NumPy does. */
#include "py/calls/add.h"

#include "choose/plan.h"
#include "gpu/add.h"
#include "gpu/stream.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/calls/deferred_release.h"
#include "py/calls/prepare.h"
#include "py/calls/result.h"
#include "py/operands/library.h"
#include "py/operands/where.h"

static bool
worth_releasing(const struct plan *plan)
{
    /* A launch waits while the queue is full, perhaps for a host function of CuPy's that needs the GIL. */
    if (plan->route != ROUTE_HOST || plan->strided)
        return true;
    return plan->schedule.wakes || plan->n * component_size[plan->component] >= RELEASE_BYTES;
}

int
add_run(struct module_state *state, const struct plan *plan)
{
    struct status status;
    unsigned flags;
    const int failed =
        worth_releasing(plan) ? WITHOUT_GIL(plan_run(plan, &flags, &status)) : plan_run(plan, &flags, &status);
    if (failed)
        return fail_with(state, &status);
    return give_floating_errors(flags);
}

/* Passes the caller's call, without device, to numpy.add. */
static PyObject *
add_by_numpy(const struct module_state *state, const struct add_arguments *arguments)
{
    const Py_ssize_t named = arguments->keywords ? PyTuple_Size(arguments->keywords) : 0;
    OWNED PyObject *positional = PyTuple_New(arguments->positional), *keywords = named ? PyDict_New() : NULL;
    if (!positional || (named && !keywords))
        return NULL;
    for (Py_ssize_t i = 0; i < arguments->positional; i++)
        if (PyTuple_SetItem(positional, i, Py_NewRef(arguments->values[i])) < 0)
            return NULL;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(arguments->keywords, i);
        const bool ours = PyUnicode_Compare(name, state->names[NAME_DEVICE]) == 0 ||
                          PyUnicode_Compare(name, state->names[NAME_STREAM]) == 0;
        if (!ours && PyDict_SetItem(keywords, name, arguments->values[arguments->positional + i]) < 0)
            return NULL;
    }
    return PyObject_Call(state->numpy_add, positional, keywords);
}

PyObject *
call_host_tensors(const char *function, const struct library *library, const struct add_arguments *arguments)
{
    static const char *const choices[] = {
        [DEVICE_UNSAID] = NULL, [DEVICE_CPU] = "cpu", [DEVICE_HYBRID] = "hybrid", [DEVICE_CUDA] = "cuda"};
    OWNED PyObject *device = arguments->device < 0 ? Py_BuildValue("z", choices[arguments->choice])
                                                   : PyUnicode_FromFormat("cuda:%d", arguments->device);
    PyObject *out = arguments->objects[ROLE_OUT] ? arguments->objects[ROLE_OUT] : Py_None;
    return device ? call_imported("vecadd.interop.host_tensors", function, "(OOOOO)", library->object,
                                  arguments->objects[ROLE_A], arguments->objects[ROLE_B], out, device)
                  : NULL;
}

/* Puts the memory of a new host sum, whose reference it takes, into the plan; NULL too where there is no sum. */
static PyObject *
planned_sum(struct module_state *state, struct plan *plan, PyObject *sum)
{
    struct status status;
    if (sum && plan_new_sum(plan, PyArray_DATA((PyArrayObject *)sum), &status) < 0) {
        status_raise(state, &status);
        Py_CLEAR(sum);
    }
    return sum;
}

/* A new array of the dtype and shape of a host sum whose operands differ in them. */
static PyObject *
make_layout_sum(struct module_state *state, struct prepared_call *call)
{
    const struct addition *addition = &call->addition;
    return planned_sum(state, &call->plan,
                       host_result(state, call->descr, addition->ndim, addition->shape, addition->ordered));
}

/* Makes a new array for the sum and puts its memory into the plan. */
static PyObject *
make_sum(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    void *memory;
    if (call->plan.route == ROUTE_HOST && call->plan.strided)
        return make_layout_sum(state, call);
    if (call->plan.route != ROUTE_DEVICE)
        return planned_sum(state, &call->plan, host_result_like(state, arguments->objects[ROLE_A], &memory));
    const struct plan *plan = &call->plan;
    struct owned_operand *made = &call->operands[ROLE_OUT];
    struct sum_stream stream = {.given = arguments->stream, .objects = arguments->objects};
    struct status status;
    if (stream_of_memory(plan->device, plan->stream, plan->join, (size_t)plan->joins, &stream.stream, &status) < 0)
        return status_raise(state, &status);
    PyObject *sum =
        device_result(state, &call->operands[call->sum.like], &call->sum, plan->device, &stream, NULL, made);
    sum_stream_clear(&stream);
    if (sum) {
        call->described[ROLE_OUT] = true;
        call->plan.c = made->operand.data;
        if (made->operand.has_stream)
            plan_join(&call->plan, made->operand.stream);
    }
    return sum;
}

int
count_write(const struct prepared_call *call, PyObject *out)
{
    const struct library *library = call->operands[ROLE_OUT].library;
    if (!library_counts_writes(library))
        return 0;
    OWNED PyObject *outs = PyTuple_Pack(1, out);
    return library_count_writes(library, outs);
}

static PyObject *
add_planned(struct module_state *state, const struct add_arguments *arguments, struct prepared_call *call)
{
    PyObject *out = arguments->objects[ROLE_OUT];
    PyObject *sum = out ? Py_NewRef(out) : make_sum(state, arguments, call);
    if (sum && add_run(state, &call->plan) < 0)
        Py_CLEAR(sum);
    if (call->plan.route == ROUTE_DEVICE)
        defer_release_of_operands(call);
    if (sum && call->plan.route == ROUTE_DEVICE && record_operands(call) < 0)
        Py_CLEAR(sum);
    if (sum && out && call->plan.route == ROUTE_DEVICE && count_write(call, out) < 0)
        Py_CLEAR(sum);
    if (sum && !out && Py_TYPE(sum) == state->device_array_type && call->operands[call->sum.like].library)
        return library_adopt(call->operands[call->sum.like].library, sum);
    return sum;
}

/* The operand in C order, in the sum's dtype and shape: itself where it is so, else a copy. A new reference. */
static PyObject *
copied(struct module_state *state, PyObject *operand, PyArray_Descr *dtype, const struct addition *addition)
{
    OWNED PyArrayObject *from = (PyArrayObject *)Py_NewRef(operand);
    if (!PyArray_Check(operand)) {
        Py_DECREF(operand);
        from = (PyArrayObject *)PyArray_FromAny(operand, (PyArray_Descr *)Py_NewRef((PyObject *)dtype), 0, 0, 0, NULL);
    }
    if (!from || (addition->ndim && PyArray_ISCARRAY_RO(from) && PyArray_TYPE(from) == dtype->type_num &&
                  dtype_of_descr(state, PyArray_DESCR(from)) >= 0 && PyArray_NDIM(from) == addition->ndim &&
                  PyArray_CompareLists(PyArray_DIMS(from), addition->shape, addition->ndim)))
        return Py_XNewRef((PyObject *)from);
    PyObject *copy = PyArray_Empty(addition->ndim, addition->shape, (PyArray_Descr *)Py_NewRef((PyObject *)dtype), 0);
    if (copy && PyArray_CopyInto((PyArrayObject *)copy, from) < 0)
        Py_CLEAR(copy);
    return copy;
}

/* Adds copies of host operands that a GPU does not take as they are, and gives the sum to out. */
static PyObject *
add_copies(struct module_state *state, PyObject *out, struct prepared_call *call)
{
    struct plan *plan = &call->plan;
    PyObject *given[] = {call->operands[ROLE_A].exported, call->operands[ROLE_B].exported}, *result = NULL;
    if (plan->n == 0) /* the GPU has to be there; NumPy converts an operand of one element, and may warn of it */
        return add_run(state, plan) < 0 ? NULL
                                        : PyObject_CallFunctionObjArgs(state->numpy_add, given[0], given[1], out, NULL);
    OWNED PyObject *a = copied(state, given[0], call->descr, &call->addition);
    OWNED PyObject *b = a ? copied(state, given[1], call->descr, &call->addition) : NULL;
    OWNED PyObject *sum = b ? make_layout_sum(state, call) : NULL;
    if (sum) {
        const struct batch_add run = {PyArray_DATA((PyArrayObject *)a), PyArray_DATA((PyArrayObject *)b), plan->c,
                                      plan->n, plan->component};
        plan->a = run.a;
        plan->b = run.b;
        /* A warning of the copy's runs Python code, which may resize an operand that needs none. */
        if (call->addition.ndim && !host_run_is(state, (PyObject *[]){a, b, sum}, &run))
            PyErr_SetString(PyExc_ValueError, "an operand has been resized while the other one was copied");
        else if (add_run(state, plan) == 0)
            result = out ? call_imported("numpy", "copyto", "(OO)", out, sum)
                         : PyArray_Return((PyArrayObject *)Py_NewRef(sum));
    }
    if (!result || !out)
        return result;
    Py_DECREF(result); /* numpy.copyto's None */
    return Py_NewRef(out);
}

PyObject *
call_library(struct module_state *state, const char *method, const struct library *library,
             const struct add_arguments *arguments)
{
    void *handle;
    if (arguments->stream && stream_from_object(state, arguments->stream, &handle) < 0)
        return NULL;
    PyObject *out = arguments->objects[ROLE_OUT] ? arguments->objects[ROLE_OUT] : Py_None;
    OWNED PyObject *stream = arguments->stream ? PyLong_FromVoidPtr(handle) : Py_NewRef(Py_None);
    return stream ? PyObject_CallMethod(library->object, method, "OOOO", arguments->objects[ROLE_A],
                                        arguments->objects[ROLE_B], out, stream)
                  : NULL;
}

static PyObject *
add_arguments_run(struct module_state *state, const struct add_arguments *arguments)
{
    struct prepared_call call;
    PyObject *sum = NULL;
    if (call_prepare(state, arguments, &call) < 0)
        return NULL;
    switch (call.kind) {
    case CALL_PLANNED:
        sum = add_planned(state, arguments, &call);
        break;
    case CALL_COPIES:
        sum = add_copies(state, arguments->objects[ROLE_OUT], &call);
        break;
    case CALL_HOST_TENSORS:
        sum = call_host_tensors("add", call.library, arguments);
        break;
    case CALL_LIBRARY:
        sum = call_library(state, "add", call.library, arguments);
        break;
    case CALL_NUMPY:
        sum = add_by_numpy(state, arguments);
        break;
    }
    call_clear(&call);
    return sum;
}

PyObject *
add_objects(struct module_state *state, PyObject *a, PyObject *b, PyObject *out)
{
    PyObject *values[] = {a, b, out};
    struct add_arguments arguments;
    if (add_arguments_parse(state, "add", ADD_ARRAYS, values, out ? 3 : 2, NULL, &arguments) < 0)
        return NULL;
    return add_arguments_run(state, &arguments);
}

const char add_doc[] = PyDoc_STR(
    "add($module, a, b, /, out=None, *, device=None, stream=None, **numpy_keywords)\n--\n\n"
    "a + b.\n\n"
    "Arrays in host memory give numpy.add's sum: its values, dtype, shape, kind and floating-point\n"
    "warnings, and every keyword of numpy.add is taken. Contiguous NumPy arrays of one shape and one dtype" DTYPE_NAMES
    ",\nare added by vecadd's own code, on several threads where that pays; so are large slices with rows that are "
    "contiguous\n"
    "by side, large arrays with a scalar or with what is broadcast along or across their rows, and those of\n"
    "two dtypes; all else is added by numpy.add itself.\n\n"
    "Arrays in device memory (vecadd.DeviceArray, CuPy, PyTorch, Numba, anything that has\n"
    "__cuda_array_interface__) may have any strides and are broadcast; one of the two may be a number. The sum\n"
    "has the dtype of numpy.add's, PyTorch's where both are its own. It is a contiguous array of the first array's\n"
    "library, or a DeviceArray, whose axes are in memory in the order of the operands' (NumPy's order=\"K\"; PyTorch's "
    "rule, or\n"
    "C order in JAX, for theirs); the call returns when the work is queued.\n\n"
    "PyTorch itself (torch.add) adds tensors that need their gradient, which they then get, and all that it traces\n"
    "or transforms; JAX (jax.numpy.add) what it traces. They add where the arrays are, whatever device= says.\n\n"
    "out\n"
    "    Where the sum goes; it is returned. It may be a or b. An error that is found before the work starts\n"
    "    leaves it as it was.\n"
    "device\n"
    "    'cuda', 'cuda:N' or N adds host arrays on that GPU, 'cpu' on the host, 'hybrid' on both at once where\n"
    "    they are page-locked and 32 MiB or more each, else on the host. None: on both for such arrays where CUDA is\n"
    "    in use, else on the host (see explain). The sum is a NumPy array.\n"
    "stream\n"
    "    For device arrays, the stream to work on: its handle, an int (0 is the legacy default stream), or an\n"
    "    object with __cuda_stream__, .cuda_stream or .ptr. None: PyTorch's or CuPy's current stream if the\n"
    "    arrays are theirs, else the stream that an array names, else the legacy default stream.\n\n"
    "Raises TypeError for dtypes that have no sum or one that out does not take (casting=\"same_kind\"), and for\n"
    "device arrays mixed with host arrays; OverflowError for a Python int beyond the sum's dtype; ValueError for\n"
    "shapes that do not go together, an out that is read-only or, on a device, overlaps itself, arrays on two\n"
    "devices and a device that is not there; NotImplementedError for device arrays with a mask; MemoryError;\n"
    "RuntimeError where CUDA cannot be used; vecadd.DeviceLostError after a fault on the GPU. Where PyTorch or JAX\n"
    "adds, the library's own errors.\n\n"
    ">>> vecadd.add(np.arange(3), 0.5)\n"
    "array([0.5, 1.5, 2.5])\n"
    ">>> a = np.ones(1_000_000, np.float32)\n"
    ">>> vecadd.add(a, a, out=a)[:3]\n"
    "array([2., 2., 2.], dtype=float32)\n"
    ">>> vecadd.add(a, a, device='cuda')[:3]\n"
    "array([4., 4., 4.], dtype=float32)\n"
    ">>> x = vecadd.to_device(a)\n"
    ">>> vecadd.add(x, 1).numpy()[:3]\n"
    "array([3., 3., 3.], dtype=float32)");

PyObject *
py_add(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords)
{
    struct module_state *state = PyModule_GetState(module);
    struct add_arguments arguments;
    if (add_arguments_parse(state, "add", ADD_ARRAYS, values, count, keywords, &arguments) < 0)
        return NULL;
    return add_arguments_run(state, &arguments);
}
