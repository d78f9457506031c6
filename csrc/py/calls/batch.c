#include "py/calls/batch.h"

#include <string.h>

#include "base/overlap.h"
#include "base/stream_order.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "py/base/errors.h"
#include "py/calls/batch_others.h"
#include "py/calls/prepare.h"
#include "py/calls/result.h"
#include "py/operands/where.h"

/* State while the pairs are looked at. */
struct survey {
    const struct batch_arguments *arguments;
    struct interval *intervals; /* of all arrays, with as much room again for the sort; NULL without an out */
    size_t interval_count;
    bool placed; /* some pair has decided where all pairs are */
    struct stream_leader leader;
    struct operand_reader reader;
    struct known_ranges ranges;
    PyObject *stream;     /* borrowed: the stream passed to producers that order the consumer's stream themselves */
    Py_ssize_t *deferred; /* pairs with such a producer, read once the stream is known */
    size_t deferred_count;
};

/* Copies a list's operands into a tuple, which cannot change meanwhile. */
static int
take_list(struct batch_call *call, enum role role, PyObject *given)
{
    static const char *const names[] = {[ROLE_A] = "xs", [ROLE_B] = "ys", [ROLE_OUT] = "out"};
    if (!given)
        return 0;
    const bool is_list = PyList_Check(given) || PyTuple_Check(given);
    if (!is_list && PyObject_HasAttrString(given, "keys")) {
        PyErr_Format(PyExc_TypeError,
                     "%s must be a sequence of arrays, not %R, which gives its keys in place of them: pass its values, "
                     "as list(%s.values())",
                     names[role], Py_TYPE(given), names[role]);
        return -1;
    }
    PyObject *iterator = PyObject_GetIter(given);
    if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s must be a list of arrays, not %R", names[role], Py_TYPE(given));
    }
    call->lists[role] = iterator ? PySequence_Tuple(is_list ? given : iterator) : NULL;
    Py_XDECREF(iterator);
    if (!call->lists[role])
        return -1;
    Py_ssize_t count = PyTuple_Size(call->lists[role]);
    if (role == ROLE_A)
        call->count = count;
    if (count == call->count)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s has %zd arrays and xs has %zd: there must be one for each", names[role], count,
                 call->count);
    return -1;
}

static int
make_room(struct batch_call *call, struct survey *survey)
{
    size_t count = (size_t)call->count;
    call->adds = PyMem_New(struct batch_add, count);
    call->add_pair = PyMem_New(Py_ssize_t, count);
    call->others = PyMem_New(Py_ssize_t, count);
    survey->deferred = PyMem_New(Py_ssize_t, count);
    if (call->lists[ROLE_OUT])
        survey->intervals = PyMem_New(struct interval, 2 * ROLE_COUNT * count);
    if (call->adds && call->add_pair && call->others && survey->deferred &&
        (survey->intervals || !call->lists[ROLE_OUT]))
        return 0;
    PyErr_NoMemory();
    return -1;
}

static void
note_interval(struct survey *survey, Py_ssize_t pair, enum role role, const void *data, size_t bytes)
{
    if (!survey->intervals || bytes == 0)
        return;
    survey->intervals[survey->interval_count++] = (struct interval){
        .begin = (uintptr_t)data, .end = (uintptr_t)data + bytes, .group = (size_t)pair, .written = role == ROLE_OUT};
}

static void
note_add(struct batch_call *call, Py_ssize_t pair, const struct operand *a, const void *b, void *c)
{
    const struct dtype_row *dtype = &dtype_table[a->dtype];
    call->adds[call->add_count] = (struct batch_add){
        .a = a->data, .b = b, .c = c, .n = a->size * dtype->components, .component = dtype->component};
    call->add_pair[call->add_count++] = pair;
}

/* Checks that all pairs are in one kind of memory. */
static int
note_place(struct batch_call *call, struct survey *survey, enum place place)
{
    if (!survey->placed) {
        survey->placed = true;
        call->place = place;
    }
    if (call->place == place)
        return 0;
    PyErr_Format(PyExc_TypeError,
                 "its arrays are in %s memory and those of the pairs before it in %s memory: call add_many for each",
                 place == PLACE_HOST ? "host" : "device", place == PLACE_HOST ? "device" : "host");
    return -1;
}

static int
look_at_host_pair(struct module_state *state, PyObject *const objects[ROLE_COUNT], Py_ssize_t pair,
                  struct batch_call *call, struct survey *survey)
{
    struct batch_add *add = &call->adds[call->add_count];
    if (note_place(call, survey, PLACE_HOST) < 0)
        return -1;
    if (!host_run_from(state, objects, add))
        call->add_pair[call->add_count++] = pair;
    else
        call->others[call->other_count++] = pair;
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyArrayObject *array = (PyArrayObject *)objects[role];
        if (array && PyArray_Check(objects[role]) &&
            PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS) | PyArray_CHKFLAGS(array, NPY_ARRAY_F_CONTIGUOUS))
            note_interval(survey, pair, (enum role)role, PyArray_DATA(array), (size_t)PyArray_NBYTES(array));
    }
    return 0;
}

static int
note_operand(struct batch_call *call, struct survey *survey, const struct operand *operand)
{
    if (operand->device >= 0) {
        if (call->device < 0)
            call->device = operand->device;
        if (call->device != operand->device) {
            PyErr_Format(PyExc_ValueError,
                         "it is on cuda:%d and the arrays before it on cuda:%d: call add_many for each device",
                         operand->device, call->device);
            return -1;
        }
    }
    stream_leader_note(&survey->leader, operand);
    return 0;
}

static int
note_join(struct batch_call *call, const struct operand *operand)
{
    if (!operand->has_stream || stream_is_among(call->join, call->joins, operand->stream))
        return 0;
    if (call->joins == call->join_room) {
        size_t room = call->join_room ? 2 * call->join_room : 4;
        void **join = PyMem_Resize(call->join, void *, room);
        if (!join) {
            PyErr_NoMemory();
            return -1;
        }
        call->join = join;
        call->join_room = room;
    }
    call->join[call->joins++] = operand->stream;
    return 0;
}

/* Whether one kernel can take the pair as it is. add takes the others, or says what is wrong with them. */
static bool
is_plain(const struct owned_operand devices[ROLE_COUNT], const bool there[ROLE_COUNT])
{
    const struct owned_operand *a = &devices[ROLE_A], *out = &devices[ROLE_OUT];
    for (int role = 0; role < ROLE_COUNT; role++)
        if (there[role] && (devices[role].needs_keepalive || devices[role].operand.size == 0 ||
                            !operand_is(&devices[role].operand, a->operand.dtype, a->operand.ndim, a->operand.shape)))
            return false;
    if (!there[ROLE_OUT])
        return true;
    size_t bytes = a->operand.size * dtype_table[a->operand.dtype].itemsize;
    return out->operand.writable && !overlaps_in_part(a->operand.data, out->operand.data, bytes) &&
           !overlaps_in_part(devices[ROLE_B].operand.data, out->operand.data, bytes);
}

/* Keeps an operand's export alive, which may be an array of its own: a tensor without its gradient, say. */
static int
hold_exported(struct batch_call *call, PyObject *object, const struct owned_operand *operand)
{
    if (!operand->exported || operand->exported == object)
        return 0;
    if (!call->held && !(call->held = PyList_New(0)))
        return -1;
    return PyList_Append(call->held, operand->exported);
}

static int
note_written(struct batch_call *call, Py_ssize_t pair, PyObject *out, const struct owned_operand *operand)
{
    if (!operand->count_writes)
        return 0;
    if (!call->count_writes)
        call->count_writes = Py_NewRef(operand->count_writes);
    if (pair == call->first_written) {
        call->first_written++;
        return 0;
    }
    if (!call->written && !(call->written = PyList_New(0)))
        return -1;
    return PyList_Append(call->written, out);
}

static int
note_device_pair(PyObject *const objects[ROLE_COUNT], const struct owned_operand devices[ROLE_COUNT],
                 const bool there[ROLE_COUNT], Py_ssize_t pair, struct batch_call *call, struct survey *survey)
{
    bool complete = there[ROLE_A] && there[ROLE_B] && (there[ROLE_OUT] || !objects[ROLE_OUT]);
    bool plain = complete && is_plain(devices, there);
    if (note_place(call, survey, PLACE_DEVICE) < 0)
        return -1;
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct operand *operand = &devices[role].operand;
        if (!there[role])
            continue;
        if (!devices[role].operand.strides && (role != ROLE_A || objects[ROLE_A] != objects[ROLE_OUT]))
            note_interval(survey, pair, (enum role)role, operand->data,
                          operand->size * dtype_table[operand->dtype].itemsize);
        if (role == ROLE_OUT && objects[ROLE_A] == objects[ROLE_OUT] && !devices[role].exported)
            continue; /* noted as x */
        if (note_operand(call, survey, operand) < 0)
            return -1;
        if (plain && (note_join(call, operand) < 0 || hold_exported(call, objects[role], &devices[role]) < 0))
            return -1;
    }
    if (plain && there[ROLE_OUT] && note_written(call, pair, objects[ROLE_OUT], &devices[ROLE_OUT]) < 0)
        return -1;
    if (plain)
        note_add(call, pair, &devices[ROLE_A].operand, devices[ROLE_B].operand.data,
                 there[ROLE_OUT] ? devices[ROLE_OUT].operand.data : NULL);
    else
        call->others[call->other_count++] = pair;
    return 0;
}

/* Defers a pair until the stream is known. Its other operands may decide the stream. */
static int
defer_pair(const struct owned_operand devices[ROLE_COUNT], const bool there[ROLE_COUNT], Py_ssize_t pair,
           struct batch_call *call, struct survey *survey)
{
    survey->deferred[survey->deferred_count++] = pair;
    for (int role = 0; role < ROLE_COUNT; role++)
        if (there[role] && note_operand(call, survey, &devices[role].operand) < 0)
            return -1;
    return 0;
}

/* For an out that is the pair's x: reuses what was read of x. False where x was read from another object in its
 * place. */
static bool
read_as_x(PyObject *const objects[ROLE_COUNT], struct owned_operand devices[ROLE_COUNT])
{
    const struct owned_operand *x = &devices[ROLE_A];
    struct owned_operand *out = &devices[ROLE_OUT];
    if (objects[ROLE_OUT] != objects[ROLE_A] || (x->exported && x->exported != objects[ROLE_A]))
        return false;
    out->operand = x->operand;
    out->needs_keepalive = x->needs_keepalive;
    out->exported = out->library = NULL; /* x holds them */
    out->count_writes = Py_XNewRef(x->count_writes);
    return true;
}

static int
look_at_pair(struct module_state *state, Py_ssize_t pair, struct batch_call *call, struct survey *survey)
{
    PyObject *objects[ROLE_COUNT];
    bool arrays = true;
    for (int role = 0; role < ROLE_COUNT; role++) {
        objects[role] = batch_object(call, (enum role)role, pair);
        arrays = arrays && (!objects[role] || PyArray_CheckExact(objects[role]));
    }
    if (!objects[ROLE_A] || !objects[ROLE_B]) {
        PyErr_Format(PyExc_TypeError, "%s is None", objects[ROLE_A] ? "y" : "x");
        return -1;
    }
    if (arrays)
        return look_at_host_pair(state, objects, pair, call, survey);

    struct owned_operand devices[ROLE_COUNT];
    bool there[ROLE_COUNT] = {false, false, false}, deferred = false, left = false;
    int result = -1, found = 0;
    for (int role = 0; role < ROLE_COUNT && found >= 0 && !left; role++) {
        if (role == ROLE_OUT && there[ROLE_A] && read_as_x(objects, devices)) {
            there[ROLE_OUT] = true;
            continue;
        }
        found = objects[role] ? device_operand_read(state, objects[role], (enum role)role, survey->stream,
                                                    &survey->reader, &devices[role])
                              : 0;
        there[role] = found == 1;
        deferred |= found == DEVICE_OPERAND_DEFERRED;
        left = found == DEVICE_OPERAND_LEFT;
        if (found > 1)
            device_operand_clear(&devices[role]);
    }
    if (left)
        call->others[call->other_count++] = pair;
    if (found >= 0)
        result = left       ? 0
                 : deferred ? defer_pair(devices, there, pair, call, survey)
                 : there[ROLE_A] || there[ROLE_B] || there[ROLE_OUT]
                     ? note_device_pair(objects, devices, there, pair, call, survey)
                     : look_at_host_pair(state, objects, pair, call, survey);
    for (int role = 0; role < ROLE_COUNT; role++)
        if (there[role])
            device_operand_clear(&devices[role]);
    return result;
}

static int
look_at_named_pair(struct module_state *state, Py_ssize_t pair, struct batch_call *call, struct survey *survey)
{
    int result = look_at_pair(state, pair, call, survey);
    if (result < 0)
        batch_name_pair(pair);
    return result;
}

/* Deferred pairs come last. The order in which the sums are made has no effect on them. */
static int
look_at_pairs(struct module_state *state, struct batch_call *call, struct survey *survey)
{
    survey->stream = survey->arguments->stream;
    survey->reader.defers = !survey->stream;
    survey->reader.leaves = !survey->arguments->plans;
    survey->reader.ranges = &survey->ranges;
    for (Py_ssize_t pair = 0; pair < call->count; pair++)
        if (look_at_named_pair(state, pair, call, survey) < 0)
            return -1;
    if (survey->deferred_count == 0)
        return 0;
    PyObject *stream = PyLong_FromVoidPtr(survey->leader.stream);
    survey->stream = stream;
    survey->reader.defers = false;
    int result = stream ? 0 : -1;
    for (size_t i = 0; i < survey->deferred_count && result == 0; i++)
        result = look_at_named_pair(state, survey->deferred[i], call, survey);
    survey->stream = NULL;
    Py_XDECREF(stream);
    return result;
}

static int
check_overlap(const struct survey *survey)
{
    const size_t count = survey->interval_count;
    size_t found[2];
    if (!survey->intervals || !overlap_find(survey->intervals, survey->intervals + count, count, found))
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "pair %zu: its out overlaps an array of pair %zu, and the additions of one call are made in any "
                 "order: add these two one after the other",
                 found[0], found[1]);
    return -1;
}

/* Chooses the stream, and removes it from the streams to join. */
static int
choose_stream(struct module_state *state, struct batch_call *call, const struct survey *survey)
{
    PyObject *given = survey->arguments->stream;
    struct status status;
    if (call->place == PLACE_HOST) {
        const bool all_left = !survey->placed && call->other_count; /* libraries add them all */
        if (all_left)
            call->stream_object = Py_XNewRef(given);
        if (!given || all_left)
            return 0;
        PyErr_SetString(PyExc_TypeError, "stream orders work on device arrays, and the operands are in host memory");
        return -1;
    }
    call->stream = survey->leader.stream;
    if (given && stream_from_object(state, given, &call->stream) < 0)
        return -1;
    if (call->device < 0 && device_current(&call->device, &status) < 0)
        goto failed;
    if (stream_check_device(call->device, call->stream, &status) < 0)
        goto failed;
    for (size_t i = 0; i < call->joins; i++)
        if (call->join[i] == call->stream)
            call->join[i--] = call->join[--call->joins];
    call->stream_object = PyLong_FromVoidPtr(call->stream);
    return call->stream_object ? 0 : -1;
failed:
    status_raise(state, &status);
    return -1;
}

/* Makes the sum of an addition without an out. */
static PyObject *
make_sum(struct module_state *state, struct batch_call *call, struct operand_reader *reader, struct tensor_form *form,
         struct batch_add *add, PyObject *a)
{
    if (call->place == PLACE_HOST) {
        PyArrayObject *like = (PyArrayObject *)a;
        PyObject *sum = host_result(state, PyArray_DESCR(like), PyArray_NDIM(like), PyArray_DIMS(like),
                                    !PyArray_IS_C_CONTIGUOUS(like));
        if (sum)
            add->c = PyArray_DATA((PyArrayObject *)sum);
        return sum;
    }
    struct owned_operand like, made;
    PyObject *sum = NULL;
    int found = device_operand_read(state, a, ROLE_A, call->stream_object, reader, &like);
    if (found > 0) {
        const struct device_shape expected = {like.operand.dtype, like.operand.ndim, like.operand.shape, ROLE_A, NULL};
        sum = device_result(state, &like, &expected, call->device, call->stream, form, &made);
        device_operand_clear(&like);
    } else if (found == 0)
        PyErr_SetString(PyExc_RuntimeError, "x is no device array any more");
    if (sum) {
        add->c = made.operand.data;
        if (made.operand.stream != call->stream && note_join(call, &made.operand) < 0)
            Py_CLEAR(sum);
        device_operand_clear(&made);
    }
    return sum;
}

static int
make_result(struct module_state *state, struct batch_call *call, PyObject *out)
{
    struct operand_reader reader = {.again = true};
    struct tensor_form form = {0};
    bool failed = false;
    call->result = out && PyList_Check(out) ? Py_NewRef(out) : PyList_New(call->count);
    if (!call->result)
        return -1;
    for (Py_ssize_t pair = 0; call->result != out && pair < call->count; pair++) {
        PyObject *object = batch_object(call, ROLE_OUT, pair);
        PyList_SetItem(call->result, pair, Py_NewRef(object ? object : Py_None));
    }
    for (size_t i = 0; i < call->add_count && !failed; i++) {
        Py_ssize_t pair = call->add_pair[i];
        if (batch_object(call, ROLE_OUT, pair))
            continue;
        PyObject *x = PyTuple_GetItem(call->lists[ROLE_A], pair);
        PyObject *sum = make_sum(state, call, &reader, &form, &call->adds[i], x);
        if (!sum)
            batch_name_pair(pair);
        failed = !sum || PyList_SetItem(call->result, pair, sum) < 0;
    }
    tensor_form_clear(&form);
    return failed ? -1 : 0;
}

int
batch_prepare(struct module_state *state, const struct batch_arguments *arguments, struct batch_call *call)
{
    struct survey survey = {.arguments = arguments};
    int result = -1;
    *call = (struct batch_call){.device = -1};
    if (take_list(call, ROLE_A, arguments->xs) < 0 || take_list(call, ROLE_B, arguments->ys) < 0 ||
        take_list(call, ROLE_OUT, arguments->out) < 0 || make_room(call, &survey) < 0)
        goto done;
    if (look_at_pairs(state, call, &survey) == 0 && check_overlap(&survey) == 0 &&
        choose_stream(state, call, &survey) == 0 && batch_check_others(state, call) == 0)
        result = make_result(state, call, arguments->out);
done:
    PyMem_Free(survey.intervals);
    PyMem_Free(survey.deferred);
    if (result < 0)
        batch_clear(call);
    return result;
}

void
batch_clear(struct batch_call *call)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        Py_CLEAR(call->lists[role]);
    Py_CLEAR(call->result);
    Py_CLEAR(call->held);
    Py_CLEAR(call->count_writes);
    Py_CLEAR(call->written);
    Py_CLEAR(call->stream_object);
    PyMem_Free(call->adds);
    PyMem_Free(call->add_pair);
    PyMem_Free(call->others);
    PyMem_Free(call->join);
    call->adds = NULL;
    call->add_pair = call->others = NULL;
    call->join = NULL;
}
