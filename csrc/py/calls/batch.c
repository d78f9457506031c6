#include "py/calls/batch.h"

#include "base/operand.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "py/base/attribute.h"
#include "py/base/errors.h"
#include "py/calls/batch_memory.h"
#include "py/calls/batch_others.h"
#include "py/calls/batch_sums.h"
#include "py/calls/prepare.h"
#include "py/operands/where.h"

/* State while the pairs are looked at. */
struct survey {
    const struct batch_arguments *arguments;
    struct batch_memory memory;
    bool placed; /* some pair has decided where all pairs are */
    struct stream_leader leader;
    struct operand_reader reader;
    struct known_ranges ranges;
    struct known_tensor tensor;
    PyObject *stream;     /* borrowed: the stream passed to producers that order the consumer's stream themselves */
    Py_ssize_t *deferred; /* pairs with such a producer, read once the stream is known */
    size_t deferred_count;
};

/* 1, 0 or -1. */
static int
has_keys(PyObject *object)
{
    PyObject *name = PyUnicode_FromString("keys");
    const int has = name ? has_attribute(object, name) : -1;
    Py_XDECREF(name);
    return has;
}

/* Copies a list's operands into a tuple, which cannot change meanwhile. */
static int
take_list(struct batch_call *call, const struct batch_arguments *arguments, enum role role)
{
    static const char *const names[] = {[ROLE_A] = "xs", [ROLE_B] = "ys", [ROLE_OUT] = "out"};
    PyObject *const given = role == ROLE_A ? arguments->xs : role == ROLE_B ? arguments->ys : arguments->out;
    if (!given)
        return 0;
    const bool is_list = PyList_Check(given) || PyTuple_Check(given);
    const int is_mapping = is_list ? 0 : has_keys(given);
    if (is_mapping < 0)
        return -1;
    if (is_mapping) {
        PyErr_Format(PyExc_TypeError,
                     "%s must be a sequence of arrays, not %R, which gives its keys in place of them: pass its values, "
                     "as list(%s.values())",
                     names[role], Py_TYPE(given), names[role]);
        return -1;
    }
    if (role == ROLE_OUT && given == arguments->xs && is_list) { /* in place: one tuple for both */
        call->lists[role] = Py_NewRef(call->lists[ROLE_A]);
        return 0;
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
    if (call->adds && call->add_pair && call->others && survey->deferred)
        return 0;
    PyErr_NoMemory();
    return -1;
}

/* Notes a pair that is made together with others. */
static void
note_add(struct batch_call *call, Py_ssize_t pair, const struct batch_add *add)
{
    call->adds[call->add_count] = *add;
    call->add_pair[call->add_count++] = pair;
    call->missing += !add->c;
}

static struct batch_add
device_add_of(const struct operand *a, const void *b, void *c)
{
    const struct dtype_row *dtype = &dtype_table[a->dtype];
    return (struct batch_add){
        .a = a->data, .b = b, .c = c, .n = a->size * dtype->components, .component = dtype->component};
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
    struct batch_add add;
    if (note_place(call, survey, PLACE_HOST) < 0)
        return -1;
    if (!host_run_from(state, objects, &add)) {
        note_add(call, pair, &add);
        return 0;
    }
    if (PyErr_Occurred())
        return -1;
    call->others[call->other_count++] = pair;
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyArrayObject *array = (PyArrayObject *)objects[role];
        if (array && PyArray_Check(objects[role]) &&
            PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS) | PyArray_CHKFLAGS(array, NPY_ARRAY_F_CONTIGUOUS) &&
            batch_memory_note(&survey->memory, call, pair, (enum role)role, PyArray_DATA(array),
                              (size_t)PyArray_NBYTES(array)) < 0)
            return -1;
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

/* Whether one kernel can take the pair as it is. add takes the others, or says what is wrong with them. */
static bool
is_plain(const struct owned_operand devices[ROLE_COUNT], const bool there[ROLE_COUNT])
{
    const struct operand *a = &devices[ROLE_A].operand, *b = &devices[ROLE_B].operand;
    const struct owned_operand *out = &devices[ROLE_OUT];
    for (int role = 0; role < ROLE_COUNT; role++)
        if (there[role] && (devices[role].needs_keepalive || devices[role].operand.size == 0 ||
                            !operand_is(&devices[role].operand, a->dtype, a->ndim, a->shape)))
            return false;
    if (!there[ROLE_OUT])
        return true;
    const struct batch_add add = device_add_of(a, b->data, out->operand.data);
    return out->operand.writable && !batch_add_is_shifted(&add);
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
note_written(struct batch_call *call, Py_ssize_t pair, PyObject *out, PyObject *count_writes)
{
    if (!count_writes)
        return 0;
    if (!call->count_writes)
        call->count_writes = Py_NewRef(count_writes);
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
        if (!plain && !operand->strides &&
            batch_memory_note(&survey->memory, call, pair, (enum role)role, operand->data,
                              operand->size * dtype_table[operand->dtype].itemsize) < 0)
            return -1;
        if (role == ROLE_OUT && objects[ROLE_A] == objects[ROLE_OUT] && !devices[role].exported)
            continue; /* noted as x */
        if (note_operand(call, survey, operand) < 0)
            return -1;
        if (plain && (batch_join(call, operand) < 0 || hold_exported(call, objects[role], &devices[role]) < 0))
            return -1;
    }
    if (plain && there[ROLE_OUT] && note_written(call, pair, objects[ROLE_OUT], devices[ROLE_OUT].count_writes) < 0)
        return -1;
    if (!plain) {
        call->others[call->other_count++] = pair;
        return 0;
    }
    const struct batch_add add = device_add_of(&devices[ROLE_A].operand, devices[ROLE_B].operand.data,
                                               there[ROLE_OUT] ? devices[ROLE_OUT].operand.data : NULL);
    note_add(call, pair, &add);
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

/* For an out that is the pair's x: reuses what was read of x. Returns 1; 0 where x was read from another object in its
 * place, and where its library may refuse that it is written; or -1 with an exception set. */
static int
read_as_x(PyObject *const objects[ROLE_COUNT], struct operand_reader *reader, struct owned_operand devices[ROLE_COUNT])
{
    const struct owned_operand *x = &devices[ROLE_A];
    struct owned_operand *out = &devices[ROLE_OUT];
    if (objects[ROLE_OUT] != objects[ROLE_A] || (x->exported && x->exported != objects[ROLE_A]))
        return 0;
    const int may = x->count_writes ? torch_operand_may_be_written(objects[ROLE_OUT], reader) : 1;
    if (may <= 0)
        return may;
    out->operand = x->operand;
    out->needs_keepalive = x->needs_keepalive;
    out->exported = out->library = NULL; /* x holds them */
    out->count_writes = Py_XNewRef(x->count_writes);
    return 1;
}

/* Returns 1 for a pair of plain tensors alike, 0 where look_at_pair has to look at it, -1 with an exception set. */
static int
look_at_tensors(struct module_state *state, PyObject *const objects[ROLE_COUNT], Py_ssize_t pair,
                struct batch_call *call, struct survey *survey)
{
    void *data[ROLE_COUNT];
    const int found = torch_pair_from(state, objects, &survey->reader, &survey->tensor, data);
    if (found <= 0)
        return found;
    const struct operand *x = &survey->tensor.like.operand;
    const struct batch_add add = device_add_of(x, data[ROLE_B], data[ROLE_OUT]);
    if (batch_add_is_shifted(&add))
        return 0;
    /* All three are on x's device and its current stream. */
    if (note_place(call, survey, PLACE_DEVICE) < 0 || note_operand(call, survey, x) < 0 || batch_join(call, x) < 0 ||
        note_written(call, pair, objects[ROLE_OUT], survey->tensor.count_writes) < 0)
        return -1;
    note_add(call, pair, &add);
    return 1;
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
    const int tensors = look_at_tensors(state, objects, pair, call, survey);
    if (tensors)
        return tensors < 0 ? -1 : 0;

    struct owned_operand devices[ROLE_COUNT];
    bool there[ROLE_COUNT] = {false, false, false}, deferred = false, left = false;
    int result = -1, found = 0;
    for (int role = 0; role < ROLE_COUNT && found >= 0 && !left; role++) {
        if (role == ROLE_OUT && there[ROLE_A] && (found = read_as_x(objects, &survey->reader, devices)) != 0) {
            there[ROLE_OUT] = found > 0;
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
    if (!given && stream_lead(call->device, &call->stream, call->join, call->joins, &status) < 0)
        goto failed;
    call->stream_object = given ? Py_NewRef(given) : PyLong_FromVoidPtr(call->stream);
    return call->stream_object ? 0 : -1;
failed:
    status_raise(state, &status);
    return -1;
}

int
batch_prepare(struct module_state *state, const struct batch_arguments *arguments, struct batch_call *call)
{
    struct survey survey = {.arguments = arguments};
    int result = -1;
    *call = (struct batch_call){.device = -1};
    if (take_list(call, arguments, ROLE_A) < 0 || take_list(call, arguments, ROLE_B) < 0 ||
        take_list(call, arguments, ROLE_OUT) < 0 || make_room(call, &survey) < 0)
        goto done;
    if (look_at_pairs(state, call, &survey) == 0 && batch_memory_check(&survey.memory, call) == 0 &&
        choose_stream(state, call, &survey) == 0 && batch_check_others(state, call) == 0)
        result = batch_make_sums(state, call, arguments->out, arguments->stream);
done:
    batch_memory_clear(&survey.memory);
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
    Py_CLEAR(call->gaps);
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
