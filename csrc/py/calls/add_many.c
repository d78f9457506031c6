/* vecadd.add_many: the additions of two lists as one piece of work: one launch, or one pass of the threads, and a call
 * of add for each other pair. */
#include "py/calls/add_many.h"

#include "base/operand.h"
#include "gpu/stream.h"
#include "host/add.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/calls/add.h"
#include "py/calls/deferred_release.h"
#include "py/calls/pairs.h"
#include "py/calls/prepare.h"
#include "py/calls/result.h"
#include "py/operands/library.h"

/* The keyword names of a pair's call of add. Their values follow the three positional arguments in values_of. */
static PyObject *
names_of(const struct module_state *state, const struct pairs *pairs)
{
    return pairs->stream_object ? Py_BuildValue("(O)", state->names[NAME_STREAM]) : PyTuple_New(0);
}

static void
values_of(const struct pairs *pairs, Py_ssize_t pair, PyObject *values[ROLE_COUNT + 1])
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyObject *object = pairs_object(pairs, (enum role)role, pair);
        values[role] = object ? object : Py_None;
    }
    values[ROLE_COUNT] = pairs->stream_object;
}

/* Whether the three are arrays and `out` has the dtype of the sum: 1, 0 or -1. */
static int
out_has_sums_dtype(PyObject *const values[ROLE_COUNT])
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (!PyArray_CheckExact(values[role]))
            return 0;
    PyArrayObject *operands[] = {(PyArrayObject *)values[ROLE_A], (PyArrayObject *)values[ROLE_B]};
    OWNED PyArray_Descr *sum = PyArray_ResultType(ROLE_OUT, operands, 0, NULL);
    if (!sum)
        return clear_refusal();
    const int type = PyArray_TYPE((PyArrayObject *)values[ROLE_OUT]);
    return (PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type) || PyTypeNum_ISOBJECT(type)) &&
           PyArray_EquivTypes(sum, PyArray_DESCR((PyArrayObject *)values[ROLE_OUT]));
}

/* numpy.add with where=False: 1 us for a small pair, and a pass over a large one. */
static PyObject *
add_nowhere(const struct module_state *state, PyObject *const values[ROLE_COUNT])
{
    OWNED PyObject *positional = PyTuple_Pack(ROLE_COUNT, values[ROLE_A], values[ROLE_B], values[ROLE_OUT]);
    OWNED PyObject *keywords = Py_BuildValue("{s:O}", "where", Py_False);
    return positional && keywords ? PyObject_Call(state->numpy_add, positional, keywords) : NULL;
}

/* Raises the error that numpy.add would raise for a pair that is left to it. If `out` has the sum's dtype, numpy.add is
 * tried with where=False; into another dtype that would convert the contents of `out`, and warn. The shape errors of
 * where=False name `where`, so check_by_numpy() raises the error itself. */
static int
check_pair_by_numpy(const struct module_state *state, PyObject *const values[ROLE_COUNT])
{
    const int fits = out_has_sums_dtype(values);
    OWNED PyObject *out = fits > 0 ? add_nowhere(state, values) : NULL;
    if (out)
        return 0;
    return fits < 0 || clear_refusal() < 0 ? -1 : check_by_numpy(values);
}

static int
check_pair(struct module_state *state, PyObject *const values[], PyObject *names)
{
    struct add_arguments arguments;
    struct prepared_call prepared;
    if (add_arguments_parse(state, "add_many", ADD_ARRAYS, values, ROLE_COUNT, names, &arguments) < 0 ||
        call_prepare(state, &arguments, &prepared) < 0)
        return -1;
    int failed = 0;
    if (prepared.kind == CALL_NUMPY)
        failed = check_pair_by_numpy(state, values);
    else if (prepared.kind == CALL_HOST_TENSORS && arguments.objects[ROLE_OUT]) {
        OWNED PyObject *checked =
            call_imported("vecadd.interop.host_tensors", "check", "(OOOO)", prepared.library->object, values[ROLE_A],
                          values[ROLE_B], values[ROLE_OUT]);
        failed = checked ? 0 : -1;
    }
    call_clear(&prepared);
    return failed;
}

/* Has add, or NumPy for what add leaves to it, report what is wrong with one of pairs->single before any pair is added.
 * Returns 0, or -1 with its exception. */
static int
check_single_pairs(struct module_state *state, const struct pairs *pairs)
{
    if (pairs->single_count == 0 ||
        (pairs->place == PLACE_HOST && !pairs->lists[ROLE_OUT])) /* new sums can be dropped */
        return 0;
    PyObject *values[ROLE_COUNT + 1];
    OWNED PyObject *names = names_of(state, pairs);
    int failed = !names;
    for (size_t i = 0; i < pairs->single_count && !failed; i++) {
        values_of(pairs, pairs->single[i], values);
        failed = check_pair(state, values, names) < 0;
        if (failed)
            prefix_error_with_pair(pairs->single[i]);
    }
    return failed ? -1 : 0;
}

/* Adds them one after the other, and puts sums without an out into pairs->result. `module` is vecadd._core. Returns 0,
 * or -1 with an exception set. */
static int
add_single_pairs(PyObject *module, const struct pairs *pairs)
{
    if (pairs->single_count == 0)
        return 0;
    PyObject *values[ROLE_COUNT + 1];
    OWNED PyObject *names = names_of(PyModule_GetState(module), pairs);
    int failed = !names;
    for (size_t i = 0; i < pairs->single_count && !failed; i++) {
        Py_ssize_t pair = pairs->single[i];
        values_of(pairs, pair, values);
        PyObject *sum = py_add(module, values, ROLE_COUNT, names);
        if (!sum)
            prefix_error_with_pair(pair);
        failed = !sum ||
                 (Py_IsNone(values[ROLE_OUT]) ? PyList_SetItem(pairs->result, pair, sum) < 0 : (Py_DECREF(sum), false));
    }
    return failed ? -1 : 0;
}

/* Whether x, read again, still has the memory that is to be added: Python code that ran since the first reading, in its
 * own interface or a later pair's, may have resized it. */
static bool
is_as_read(const struct operand *x, const struct batch_add *add)
{
    const struct dtype_row *dtype = &dtype_table[x->dtype];
    return x->size * dtype->components == add->n && dtype->component == add->component;
}

/* Makes the sum of an addition without an out. */
static PyObject *
make_pair_sum(struct module_state *state, struct pairs *pairs, struct sum_stream *stream, struct operand_reader *reader,
              struct tensor_form *form, struct batch_add *add, PyObject *a)
{
    if (pairs->place == PLACE_HOST)
        return host_result_like(state, a, &add->c);
    struct owned_operand like, made;
    PyObject *sum = NULL;
    int found = device_operand_read(state, a, ROLE_A, pairs->stream_object, reader, &like);
    if (found > 0 && !is_as_read(&like.operand, add)) {
        PyErr_SetString(PyExc_ValueError, "x has been resized while the lists were looked at");
        device_operand_clear(&like);
    } else if (found > 0) {
        const struct device_shape expected = {like.operand.dtype, like.operand.ndim, like.operand.shape, ROLE_A, NULL};
        sum = device_result(state, &like, &expected, pairs->device, stream, form, &made);
        device_operand_clear(&like);
    } else if (found == 0)
        PyErr_SetString(PyExc_RuntimeError, "x is not a device array any more");
    if (sum) {
        add->c = made.operand.data;
        if (made.operand.stream != pairs->stream && pairs_join(pairs, &made.operand) < 0)
            Py_CLEAR(sum);
        device_operand_clear(&made);
    }
    return sum;
}

/* Whether some pair has no out. */
static bool
some_out_is_none(const struct pairs *pairs)
{
    bool found = pairs->missing > 0;
    for (size_t i = 0; i < pairs->single_count && !found; i++)
        found = !pairs_object(pairs, ROLE_OUT, pairs->single[i]);
    return found;
}

/* Sets pairs->result and outs_with_none, and makes a sum for each of pairs->adds without an out, whose address goes
 * there. `out` and `given`, a stream, are the caller's, or NULL. Returns 0, or -1 with an exception set. */
static int
make_sums(struct module_state *state, struct pairs *pairs, PyObject *out, PyObject *given)
{
    struct operand_reader reader = {.again = true};
    struct tensor_form form = {0};
    struct sum_stream stream = {.given = given, .objects = pairs->lists, .lists = true};
    bool failed = false;
    struct status status;
    const bool is_list = out && PyList_Check(out);
    if (pairs->missing && pairs->place == PLACE_DEVICE &&
        stream_of_memory(pairs->device, pairs->stream, pairs->join, pairs->joins, &stream.stream, &status) < 0)
        return fail_with(state, &status);
    if (is_list && some_out_is_none(pairs))
        pairs->outs_with_none = Py_NewRef(out);
    pairs->result = is_list && !pairs->outs_with_none ? Py_NewRef(out) : PyList_New(pairs->count);
    if (!pairs->result)
        return -1;
    for (Py_ssize_t pair = 0; pairs->result != out && pair < pairs->count; pair++) {
        PyObject *object = pairs_object(pairs, ROLE_OUT, pair);
        PyList_SetItem(pairs->result, pair, Py_NewRef(object ? object : Py_None));
    }
    for (size_t i = 0; i < pairs->add_count && pairs->missing && !failed; i++) {
        Py_ssize_t pair = pairs->add_pair[i];
        if (pairs_object(pairs, ROLE_OUT, pair))
            continue;
        PyObject *x = PyTuple_GetItem(pairs->lists[ROLE_A], pair);
        PyObject *sum = make_pair_sum(state, pairs, &stream, &reader, &form, &pairs->adds[i], x);
        if (!sum)
            prefix_error_with_pair(pair);
        failed = !sum || PyList_SetItem(pairs->result, pair, sum) < 0;
    }
    tensor_form_clear(&form);
    sum_stream_clear(&stream);
    return failed ? -1 : 0;
}

/* Puts the sums into the caller's list once they are made, which then is pairs->result. Returns 0, or -1 with an
 * exception set. */
static int
fill_outs(struct pairs *pairs)
{
    if (!pairs->outs_with_none)
        return 0;
    for (Py_ssize_t pair = 0; pair < pairs->count; pair++) {
        if (pairs_object(pairs, ROLE_OUT, pair))
            continue;
        PyObject *sum = PyList_GetItem(pairs->result, pair);
        if (!sum || PyList_SetItem(pairs->outs_with_none, pair, Py_NewRef(sum)) < 0)
            return -1;
    }
    Py_DECREF(pairs->result);
    pairs->result = Py_NewRef(pairs->outs_with_none);
    return 0;
}

int
add_many_prepare(struct module_state *state, const struct add_arguments *arguments, struct pairs *pairs)
{
    if (pairs_read(state, arguments, pairs) < 0)
        return -1;
    if (check_single_pairs(state, pairs) == 0 &&
        make_sums(state, pairs, arguments->objects[ROLE_OUT], arguments->stream) == 0)
        return 0;
    pairs_clear(pairs);
    return -1;
}

struct device_work
work_of_pairs(const struct pairs *pairs)
{
    return (struct device_work){.adds = pairs->adds,
                                .count = pairs->add_count,
                                .device = pairs->device,
                                .stream = pairs->stream,
                                .join = pairs->join,
                                .joins = pairs->joins};
}

static int
run_on_device(struct module_state *state, const struct pairs *pairs, struct graph *graph)
{
    const struct device_work work = work_of_pairs(pairs);
    struct status status;
    /* A launch may wait, as in add.c, and so may the graph's lock. */
    int failed = WITHOUT_GIL(graph ? graph_run(graph, &status) : device_add(&work, &status));
    if (failed)
        status_raise(state, &status);
    else
        deferred_release_sweep();
    return failed;
}

int
add_many_record(struct module_state *state, const struct pairs *pairs)
{
    for (int role = 0; role < ROLE_COUNT && pairs->joins; role++)
        if (record_objects(state, pairs->lists[role], pairs->stream) < 0)
            return -1;
    return pairs->joins ? record_objects(state, pairs->exports, pairs->stream) : 0;
}

/* Whether a pair's arrays are unchanged. Its out may be the sum made for it. */
static bool
is_unchanged(struct module_state *state, const struct pairs *pairs, size_t i)
{
    const Py_ssize_t pair = pairs->add_pair[i];
    PyObject *objects[ROLE_COUNT];
    for (int role = 0; role < ROLE_COUNT; role++)
        objects[role] = pairs_object(pairs, (enum role)role, pair);
    if (!objects[ROLE_OUT])
        objects[ROLE_OUT] = PyList_GetItem(pairs->result, pair);
    return host_run_is(state, objects, &pairs->adds[i]);
}

/* Called last before the work, with no Python code in between. */
static int
check_unchanged(struct module_state *state, const struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->add_count; i++)
        if (!is_unchanged(state, pairs, i)) {
            PyErr_SetString(PyExc_ValueError, "one of its arrays has been resized or changed in another way while the "
                                              "lists were looked at");
            prefix_error_with_pair(pairs->add_pair[i]);
            return -1;
        }
    return 0;
}

static int
run_on_host(struct module_state *state, const struct pairs *pairs, unsigned *flags)
{
    struct status status;
    if (check_unchanged(state, pairs) < 0)
        return -1;
    size_t bytes = 0;
    for (size_t i = 0; i < pairs->add_count; i++)
        bytes += pairs->adds[i].n * component_size[pairs->adds[i].component];
    struct host_schedule schedule;
    if (host_batch_schedule(&schedule, bytes, &status) < 0)
        return fail_with(state, &status);
    PyThreadState *released = schedule.threads > 1 || bytes >= RELEASE_BYTES ? PyEval_SaveThread() : NULL;
    int failed = host_add_batch(&schedule, pairs->adds, pairs->add_count, flags, &status);
    if (released)
        PyEval_RestoreThread(released);
    return failed ? fail_with(state, &status) : 0;
}

/* Lets the library of x adopt a sum made as a DeviceArray. Takes the reference to `sum`. */
static PyObject *
adopt_sum(struct module_state *state, PyObject *x, PyObject *sum)
{
    const struct library *library;
    if (library_of(state, x, &library) < 0) {
        Py_DECREF(sum);
        return NULL;
    }
    return library_adopt(library, sum);
}

/* Called once the kernels are queued: each pair's library adopts its sum if it adopts sums at all. */
static int
adopt_sums(struct module_state *state, const struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->add_count && pairs->missing; i++) {
        const Py_ssize_t pair = pairs->add_pair[i];
        PyObject *x = pairs_object(pairs, ROLE_A, pair);
        if (pairs_object(pairs, ROLE_OUT, pair) || Py_TYPE(x) == state->device_array_type)
            continue;
        PyObject *sum = PyList_GetItem(pairs->result, pair);
        if (sum && Py_TYPE(sum) != state->device_array_type)
            continue;
        sum = sum ? adopt_sum(state, x, Py_NewRef(sum)) : NULL;
        if (!sum)
            prefix_error_with_pair(pair);
        if (!sum || PyList_SetItem(pairs->result, pair, sum) < 0)
            return -1;
    }
    return 0;
}

/* Tells the outs' library of the writes. */
static int
count_writes(const struct pairs *pairs)
{
    if (pairs->first_written) {
        OWNED PyObject *outs = PyTuple_GetSlice(pairs->lists[ROLE_OUT], 0, pairs->first_written);
        if (library_count_writes(pairs->counting, outs) < 0)
            return -1;
    }
    return pairs->written ? library_count_writes(pairs->counting, pairs->written) : 0;
}

int
add_many_run(PyObject *module, struct pairs *pairs, struct graph *graph)
{
    struct module_state *state = PyModule_GetState(module);
    unsigned flags = 0;
    if (pairs->add_count &&
        (pairs->place == PLACE_HOST ? run_on_host(state, pairs, &flags) : run_on_device(state, pairs, graph)) < 0)
        return -1;
    if (!graph && add_many_record(state, pairs) < 0) /* a plan told them when it was made */
        return -1;
    if (count_writes(pairs) < 0)
        return -1;
    if (pairs->place == PLACE_DEVICE && adopt_sums(state, pairs) < 0)
        return -1;
    /* Reported last: a warning may be an error, and all sums are to be written first. */
    return add_single_pairs(module, pairs) < 0 || fill_outs(pairs) < 0 ? -1 : give_floating_errors(flags);
}

const char add_many_doc[] = PyDoc_STR(
    "add_many($module, xs, ys, /, out=None, *, stream=None)\n--\n\n"
    "[x + y for x, y in zip(xs, ys)], made together: one launch on a GPU, one pass of the threads on the host.\n\n"
    "The pairs may differ in shape and dtype; each is added as vecadd.add adds it, and the list that is given\n"
    "back has the sums in the pairs' order, each of its own pair's library. All are in host memory, or all on\n"
    "one device. Pairs of contiguous arrays of one shape and one dtype, aligned in any way, are what is made\n"
    "together (1023 a launch); every other pair is added by itself after them. Floating-point warnings on the host\n"
    "are given once for those made together. On a device the call returns when the work is queued.\n\n"
    "out\n"
    "    Where the sums go, a list of arrays; it is given back. An out may be its own pair's x or y. The additions\n"
    "    are made in any order: an out that overlaps an array of another pair is an error, where both are\n"
    "    contiguous; overlaps of strided arrays are not looked for. An error that is found before the work starts\n"
    "    leaves every out as it was.\n"
    "stream\n"
    "    As add's, for all pairs.\n\n"
    "Raises what add raises, the message begun with the pair's number, counted from 0; TypeError for\n"
    "anything but a list, for example a dict, and for pairs of host and of device memory in one call; ValueError for "
    "lists of different\n"
    "lengths, pairs on two devices and an out that overlaps an array of another pair.\n\n"
    ">>> xs, ys = [np.ones(2), np.arange(3)], [np.ones(2), 10]\n"
    ">>> vecadd.add_many(xs, ys)\n"
    "[array([2., 2.]), array([10, 11, 12])]");

PyObject *
py_add_many(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords)
{
    struct module_state *state = PyModule_GetState(module);
    struct add_arguments arguments;
    struct pairs pairs;
    if (add_arguments_parse(state, "add_many", ADD_LISTS, values, count, keywords, &arguments) < 0 ||
        add_many_prepare(state, &arguments, &pairs) < 0)
        return NULL;
    PyObject *result = add_many_run(module, &pairs, NULL) < 0 ? NULL : Py_NewRef(pairs.result);
    pairs_clear(&pairs);
    return result;
}
