#include "py/calls/pairs.h"

#include "base/operand.h"
#include "base/overlap.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "py/base/python.h"
#include "py/operands/library.h"
#include "py/operands/where.h"

/* The contiguous arrays of pairs that are not in pairs->adds. Begins as {0}. */
struct memory {
    struct interval *intervals;
    size_t count;
};

/* Whether an addition's out shares some but not all of its memory with one of its inputs. */
static inline bool
overlaps_in_place(const struct batch_add *add)
{
    const size_t bytes = add->n * component_size[add->component];
    return add->c && (overlaps_in_part(add->a, add->c, bytes) || overlaps_in_part(add->b, add->c, bytes));
}

/* Returns 0, or -1 with an exception set. */
static int
memory_note(struct memory *memory, const struct pairs *pairs, Py_ssize_t pair, enum role role, const void *data,
            size_t bytes)
{
    if (!pairs->lists[ROLE_OUT] || bytes == 0)
        return 0;
    if (!memory->intervals && !(memory->intervals = PyMem_New(struct interval, ROLE_COUNT * (size_t)pairs->count))) {
        PyErr_NoMemory();
        return -1;
    }
    memory->intervals[memory->count++] = (struct interval){
        .begin = (uintptr_t)data, .end = (uintptr_t)data + bytes, .group = (size_t)pair, .written = role == ROLE_OUT};
    return 0;
}

/* A range of addresses with several arrays in it; empty at first. */
struct hull {
    uintptr_t begin, end;
};

static inline void
hull_add(struct hull *hull, const void *data, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)data;
    hull->begin = begin < hull->begin ? begin : hull->begin;
    hull->end = begin + bytes > hull->end ? begin + bytes : hull->end;
}

/* Whether one pass shows that no out overlaps another pair's array: the outs' addresses ascend, and all arrays that are
 * only read are below the first out or above the last. A sort takes seven times as long. */
static bool
is_apart(const struct batch_add *adds, size_t count)
{
    struct hull read = {UINTPTR_MAX, 0}, written = read;
    for (size_t i = 0; i < count; i++) {
        const struct batch_add *add = &adds[i];
        const size_t bytes = add->n * component_size[add->component];
        if (bytes == 0)
            continue;
        if (add->c && (uintptr_t)add->c < written.end)
            return false;
        if (add->c)
            hull_add(&written, add->c, bytes);
        if (add->a != add->c)
            hull_add(&read, add->a, bytes);
        if (add->b != add->c)
            hull_add(&read, add->b, bytes);
    }
    return read.end <= written.begin || written.end <= read.begin;
}

/* Stores the arrays of the pairs in pairs->adds. Returns their number. An input that is its pair's out is left out. */
static size_t
store_adds(const struct pairs *pairs, struct interval *intervals)
{
    size_t stored = 0;
    for (size_t i = 0; i < pairs->add_count; i++) {
        const struct batch_add *add = &pairs->adds[i];
        const size_t bytes = add->n * component_size[add->component];
        const void *const data[ROLE_COUNT] = {add->a, add->b, add->c};
        for (int role = 0; role < ROLE_COUNT && bytes; role++)
            if (data[role] && (role == ROLE_OUT || data[role] != add->c))
                intervals[stored++] = (struct interval){.begin = (uintptr_t)data[role],
                                                        .end = (uintptr_t)data[role] + bytes,
                                                        .group = (size_t)pairs->add_pair[i],
                                                        .written = role == ROLE_OUT};
    }
    return stored;
}

/* Checks these and pairs->adds. Returns 0, or -1 with an exception set that names two pairs. */
static int
memory_check(const struct memory *memory, const struct pairs *pairs)
{
    if (!pairs->lists[ROLE_OUT] || (memory->count == 0 && is_apart(pairs->adds, pairs->add_count)))
        return 0;
    const size_t room = ROLE_COUNT * pairs->add_count + memory->count;
    struct interval *intervals = PyMem_New(struct interval, 2 * room);
    if (!intervals) {
        PyErr_NoMemory();
        return -1;
    }
    size_t count = store_adds(pairs, intervals), both[2];
    for (size_t i = 0; i < memory->count; i++)
        intervals[count++] = memory->intervals[i];
    const bool found = overlap_find(intervals, intervals + room, count, both);
    PyMem_Free(intervals);
    if (!found)
        return 0;
    return refuse(PyExc_ValueError,
                  "pair %zu: its out overlaps an array of pair %zu, and the additions of one call are made in any "
                  "order: add these two one after the other",
                  both[0], both[1]);
}

PyObject *
pairs_object(const struct pairs *pairs, enum role role, Py_ssize_t pair)
{
    PyObject *object = pairs->lists[role] ? PyTuple_GetItem(pairs->lists[role], pair) : NULL;
    return object && !Py_IsNone(object) ? object : NULL;
}

void
prefix_error_with_pair(Py_ssize_t pair)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    OWNED PyObject *arguments = value ? PyObject_GetAttrString(value, "args") : NULL;
    PyObject *text =
        arguments && PyTuple_Check(arguments) && PyTuple_Size(arguments) == 1 ? PyTuple_GetItem(arguments, 0) : NULL;
    OWNED PyObject *named = NULL;
    if (text && PyUnicode_Check(text)) {
        named = Py_BuildValue("(N)", PyUnicode_FromFormat("pair %zd: %U", pair, text));
        if (named)
            PyObject_SetAttrString(value, "args", named);
    } else if (value) /* NumPy's exception classes keep the arguments of their message */
        named = PyObject_CallMethod(value, "add_note", "N", PyUnicode_FromFormat("pair %zd", pair));
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) { /* an interrupt takes the error's place */
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    } else {
        PyErr_Clear();
        PyErr_Restore(type, value, traceback);
    }
}

int
pairs_join(struct pairs *pairs, const struct operand *operand)
{
    if (!operand->has_stream || stream_is_among(pairs->join, pairs->joins, operand->stream))
        return 0;
    if (pairs->joins == pairs->join_room) {
        size_t room = pairs->join_room ? 2 * pairs->join_room : 4;
        void **join = PyMem_Resize(pairs->join, void *, room);
        if (!join) {
            PyErr_NoMemory();
            return -1;
        }
        pairs->join = join;
        pairs->join_room = room;
    }
    pairs->join[pairs->joins++] = operand->stream;
    return 0;
}

/* State while the pairs are read. */
struct survey {
    const struct add_arguments *arguments;
    struct memory memory;
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
    OWNED PyObject *name = PyUnicode_FromString("keys");
    return name ? has_attribute(object, name) : -1;
}

/* Copies a list's operands into a tuple, which cannot change meanwhile. */
static int
take_list(struct pairs *pairs, const struct add_arguments *arguments, enum role role)
{
    static const char *const names[] = {[ROLE_A] = "xs", [ROLE_B] = "ys", [ROLE_OUT] = "out"};
    PyObject *const given = arguments->objects[role];
    if (!given)
        return 0;
    const bool is_list = PyList_Check(given) || PyTuple_Check(given);
    const int is_mapping = is_list ? 0 : has_keys(given);
    if (is_mapping < 0)
        return -1;
    if (is_mapping)
        return refuse(
            PyExc_TypeError,
            "%s must be a sequence of arrays, not %R, which gives its keys in place of them: pass its values, "
            "as list(%s.values())",
            names[role], Py_TYPE(given), names[role]);
    if (role == ROLE_OUT && given == arguments->objects[ROLE_A] && is_list) { /* in place: one tuple for both */
        pairs->lists[role] = Py_NewRef(pairs->lists[ROLE_A]);
        return 0;
    }
    OWNED PyObject *iterator = PyObject_GetIter(given);
    if (!iterator && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s must be a list of arrays, not %R", names[role], Py_TYPE(given));
    }
    pairs->lists[role] = iterator ? PySequence_Tuple(is_list ? given : iterator) : NULL;
    if (!pairs->lists[role])
        return -1;
    Py_ssize_t count = PyTuple_Size(pairs->lists[role]);
    if (role == ROLE_A)
        pairs->count = count;
    if (count == pairs->count)
        return 0;
    return refuse(PyExc_ValueError, "%s has %zd arrays and xs has %zd: there must be one for each", names[role], count,
                  pairs->count);
}

static int
make_room(struct pairs *pairs, struct survey *survey)
{
    size_t count = (size_t)pairs->count;
    pairs->adds = PyMem_New(struct batch_add, count);
    pairs->add_pair = PyMem_New(Py_ssize_t, count);
    pairs->single = PyMem_New(Py_ssize_t, count);
    survey->deferred = PyMem_New(Py_ssize_t, count);
    if (pairs->adds && pairs->add_pair && pairs->single && survey->deferred)
        return 0;
    PyErr_NoMemory();
    return -1;
}

/* Notes a pair that is added together with others. */
static void
note_add(struct pairs *pairs, Py_ssize_t pair, const struct batch_add *add)
{
    pairs->adds[pairs->add_count] = *add;
    pairs->add_pair[pairs->add_count++] = pair;
    pairs->missing += !add->c;
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
note_place(struct pairs *pairs, struct survey *survey, enum place place)
{
    if (!survey->placed) {
        survey->placed = true;
        pairs->place = place;
    }
    if (pairs->place == place)
        return 0;
    return refuse(PyExc_TypeError,
                  "its arrays are in %s memory and those of the pairs before it in %s memory: call add_many for each",
                  place == PLACE_HOST ? "host" : "device", place == PLACE_HOST ? "device" : "host");
}

static int
read_host_pair(struct module_state *state, PyObject *const objects[ROLE_COUNT], Py_ssize_t pair, struct pairs *pairs,
               struct survey *survey)
{
    struct batch_add add;
    if (note_place(pairs, survey, PLACE_HOST) < 0)
        return -1;
    if (!host_run_from(state, objects, &add)) {
        note_add(pairs, pair, &add);
        return 0;
    }
    if (PyErr_Occurred())
        return -1;
    pairs->single[pairs->single_count++] = pair;
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyArrayObject *array = (PyArrayObject *)objects[role];
        if (array && PyArray_Check(objects[role]) &&
            PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS) | PyArray_CHKFLAGS(array, NPY_ARRAY_F_CONTIGUOUS) &&
            memory_note(&survey->memory, pairs, pair, (enum role)role, PyArray_DATA(array),
                        (size_t)PyArray_NBYTES(array)) < 0)
            return -1;
    }
    return 0;
}

static int
note_operand(struct pairs *pairs, struct survey *survey, const struct operand *operand)
{
    if (operand->device >= 0) {
        if (pairs->device < 0)
            pairs->device = operand->device;
        if (pairs->device != operand->device)
            return refuse(PyExc_ValueError,
                          "it is on cuda:%d and the arrays before it on cuda:%d: call add_many for each device",
                          operand->device, pairs->device);
    }
    stream_leader_note(&survey->leader, operand);
    return 0;
}

/* Whether one kernel can add the pair as it is. add adds every other pair, or raises what is wrong with it. */
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
    return out->operand.writable && !overlaps_in_place(&add);
}

/* Keeps an operand's export alive, which may be an array of its own: for example a tensor without its gradient. */
static int
keep_exported(struct pairs *pairs, PyObject *object, const struct owned_operand *operand)
{
    if (!operand->exported || operand->exported == object)
        return 0;
    if (!pairs->exports && !(pairs->exports = PyList_New(0)))
        return -1;
    return PyList_Append(pairs->exports, operand->exported);
}

static int
note_written(struct pairs *pairs, Py_ssize_t pair, PyObject *out, const struct library *library)
{
    if (!out || !library_counts_writes(library))
        return 0;
    pairs->counting = library;
    if (pair == pairs->first_written) {
        pairs->first_written++;
        return 0;
    }
    if (!pairs->written && !(pairs->written = PyList_New(0)))
        return -1;
    return PyList_Append(pairs->written, out);
}

static int
note_device_pair(PyObject *const objects[ROLE_COUNT], const struct owned_operand devices[ROLE_COUNT],
                 const bool there[ROLE_COUNT], Py_ssize_t pair, struct pairs *pairs, struct survey *survey)
{
    bool complete = there[ROLE_A] && there[ROLE_B] && (there[ROLE_OUT] || !objects[ROLE_OUT]);
    bool plain = complete && is_plain(devices, there);
    if (note_place(pairs, survey, PLACE_DEVICE) < 0)
        return -1;
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct operand *operand = &devices[role].operand;
        if (!there[role])
            continue;
        if (!plain && !operand->strides &&
            memory_note(&survey->memory, pairs, pair, (enum role)role, operand->data,
                        operand->size * dtype_table[operand->dtype].itemsize) < 0)
            return -1;
        if (role == ROLE_OUT && objects[ROLE_A] == objects[ROLE_OUT] && !devices[role].exported)
            continue; /* noted as x */
        if (note_operand(pairs, survey, operand) < 0)
            return -1;
        if (plain && (pairs_join(pairs, operand) < 0 || keep_exported(pairs, objects[role], &devices[role]) < 0))
            return -1;
    }
    if (plain && there[ROLE_OUT] && note_written(pairs, pair, objects[ROLE_OUT], devices[ROLE_OUT].library) < 0)
        return -1;
    if (!plain) {
        pairs->single[pairs->single_count++] = pair;
        return 0;
    }
    const struct batch_add add = device_add_of(&devices[ROLE_A].operand, devices[ROLE_B].operand.data,
                                               there[ROLE_OUT] ? devices[ROLE_OUT].operand.data : NULL);
    note_add(pairs, pair, &add);
    return 0;
}

/* Defers a pair until the stream is known. Its other operands may decide the stream. */
static int
defer_pair(const struct owned_operand devices[ROLE_COUNT], const bool there[ROLE_COUNT], Py_ssize_t pair,
           struct pairs *pairs, struct survey *survey)
{
    survey->deferred[survey->deferred_count++] = pair;
    for (int role = 0; role < ROLE_COUNT; role++)
        if (there[role] && note_operand(pairs, survey, &devices[role].operand) < 0)
            return -1;
    return 0;
}

/* For an out that is the pair's x: reuses x's description. Returns 1; 0 if x was read through another object, or if its
 * library may refuse a write to it; or -1 with an exception set. */
static int
read_as_x(PyObject *const objects[ROLE_COUNT], struct operand_reader *reader, struct owned_operand devices[ROLE_COUNT])
{
    const struct owned_operand *x = &devices[ROLE_A];
    struct owned_operand *out = &devices[ROLE_OUT];
    if (objects[ROLE_OUT] != objects[ROLE_A] || (x->exported && x->exported != objects[ROLE_A]))
        return 0;
    const int may = library_counts_writes(x->library) ? torch_operand_may_be_written(objects[ROLE_OUT], reader) : 1;
    if (may <= 0)
        return may;
    out->operand = x->operand;
    out->needs_keepalive = x->needs_keepalive;
    out->exported = NULL; /* x has it */
    out->library = x->library;
    return 1;
}

/* Returns 1 for a pair of like, plain tensors, 0 where read_pair has to read it, -1 with an exception set. */
static int
read_tensor_pair(struct module_state *state, PyObject *const objects[ROLE_COUNT], Py_ssize_t pair, struct pairs *pairs,
                 struct survey *survey)
{
    void *data[ROLE_COUNT];
    const int found = torch_pair_from(state, objects, &survey->reader, &survey->tensor, data);
    if (found <= 0)
        return found;
    const struct operand *x = &survey->tensor.like.operand;
    const struct batch_add add = device_add_of(x, data[ROLE_B], data[ROLE_OUT]);
    if (overlaps_in_place(&add))
        return 0;
    /* All three are on x's device and its current stream. */
    if (note_place(pairs, survey, PLACE_DEVICE) < 0 || note_operand(pairs, survey, x) < 0 || pairs_join(pairs, x) < 0 ||
        note_written(pairs, pair, objects[ROLE_OUT], survey->tensor.like.library) < 0)
        return -1;
    note_add(pairs, pair, &add);
    return 1;
}

static int
read_pair(struct module_state *state, Py_ssize_t pair, struct pairs *pairs, struct survey *survey)
{
    PyObject *objects[ROLE_COUNT];
    bool arrays = true;
    for (int role = 0; role < ROLE_COUNT; role++) {
        objects[role] = pairs_object(pairs, (enum role)role, pair);
        arrays = arrays && (!objects[role] || PyArray_CheckExact(objects[role]));
    }
    if (!objects[ROLE_A] || !objects[ROLE_B])
        return refuse(PyExc_TypeError, "%s is None", objects[ROLE_A] ? "y" : "x");
    if (arrays)
        return read_host_pair(state, objects, pair, pairs, survey);
    const int tensors = read_tensor_pair(state, objects, pair, pairs, survey);
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
        pairs->single[pairs->single_count++] = pair;
    if (found >= 0)
        result = left       ? 0
                 : deferred ? defer_pair(devices, there, pair, pairs, survey)
                 : there[ROLE_A] || there[ROLE_B] || there[ROLE_OUT]
                     ? note_device_pair(objects, devices, there, pair, pairs, survey)
                     : read_host_pair(state, objects, pair, pairs, survey);
    for (int role = 0; role < ROLE_COUNT; role++)
        if (there[role])
            device_operand_clear(&devices[role]);
    return result;
}

static int
read_named_pair(struct module_state *state, Py_ssize_t pair, struct pairs *pairs, struct survey *survey)
{
    int result = read_pair(state, pair, pairs, survey);
    if (result < 0)
        prefix_error_with_pair(pair);
    return result;
}

/* Deferred pairs come last. The order in which the sums are made has no effect on them. */
static int
read_pairs(struct module_state *state, struct pairs *pairs, struct survey *survey)
{
    survey->stream = survey->arguments->stream;
    survey->reader.defers = !survey->stream;
    survey->reader.leaves = survey->arguments->purpose != PLAN_ADDITION;
    survey->reader.ranges = &survey->ranges;
    for (Py_ssize_t pair = 0; pair < pairs->count; pair++)
        if (read_named_pair(state, pair, pairs, survey) < 0)
            return -1;
    if (survey->deferred_count == 0)
        return 0;
    OWNED PyObject *stream = PyLong_FromVoidPtr(survey->leader.stream);
    survey->stream = stream;
    survey->reader.defers = false;
    int result = stream ? 0 : -1;
    for (size_t i = 0; i < survey->deferred_count && result == 0; i++)
        result = read_named_pair(state, survey->deferred[i], pairs, survey);
    survey->stream = NULL;
    return result;
}

/* Chooses the stream, and removes it from the streams to join. */
static int
choose_stream(struct module_state *state, struct pairs *pairs, const struct survey *survey)
{
    PyObject *given = survey->arguments->stream;
    struct status status;
    if (pairs->place == PLACE_HOST) {
        const bool all_left = !survey->placed && pairs->single_count; /* libraries add them all */
        if (all_left)
            pairs->stream_object = Py_XNewRef(given);
        if (!given || all_left)
            return 0;
        return refuse(PyExc_TypeError, "stream orders work on device arrays, and the operands are in host memory");
    }
    pairs->stream = survey->leader.stream;
    if (given && stream_from_object(state, given, &pairs->stream) < 0)
        return -1;
    if (pairs->device < 0 && device_current(&pairs->device, &status) < 0)
        goto failed;
    if (stream_check_device(pairs->device, pairs->stream, &status) < 0)
        goto failed;
    for (size_t i = 0; i < pairs->joins; i++)
        if (pairs->join[i] == pairs->stream)
            pairs->join[i--] = pairs->join[--pairs->joins];
    if (!given && stream_lead(pairs->device, &pairs->stream, pairs->join, pairs->joins, &status) < 0)
        goto failed;
    pairs->stream_object = given ? Py_NewRef(given) : PyLong_FromVoidPtr(pairs->stream);
    return pairs->stream_object ? 0 : -1;
failed:
    return fail_with(state, &status);
}

int
pairs_read(struct module_state *state, const struct add_arguments *arguments, struct pairs *pairs)
{
    struct survey survey = {.arguments = arguments};
    int result = -1;
    *pairs = (struct pairs){.device = -1};
    if (take_list(pairs, arguments, ROLE_A) == 0 && take_list(pairs, arguments, ROLE_B) == 0 &&
        take_list(pairs, arguments, ROLE_OUT) == 0 && make_room(pairs, &survey) == 0 &&
        read_pairs(state, pairs, &survey) == 0 && memory_check(&survey.memory, pairs) == 0)
        result = choose_stream(state, pairs, &survey);
    PyMem_Free(survey.memory.intervals);
    PyMem_Free(survey.deferred);
    if (result < 0)
        pairs_clear(pairs);
    return result;
}

void
pairs_clear(struct pairs *pairs)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        Py_CLEAR(pairs->lists[role]);
    Py_CLEAR(pairs->result);
    Py_CLEAR(pairs->outs_with_none);
    Py_CLEAR(pairs->exports);
    Py_CLEAR(pairs->written);
    Py_CLEAR(pairs->stream_object);
    PyMem_Free(pairs->adds);
    PyMem_Free(pairs->add_pair);
    PyMem_Free(pairs->single);
    PyMem_Free(pairs->join);
    pairs->adds = NULL;
    pairs->add_pair = pairs->single = NULL;
    pairs->join = NULL;
}
