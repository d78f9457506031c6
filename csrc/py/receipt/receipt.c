/* The receipt of `vecadd run --why`: records a program's additions by source line and by kind of operands.
 *
 * numpy.add is one object, and `a + b` calls it as any caller does: by its vectorcall, with the GIL, once an addition,
 * however many loops NumPy then calls. While there is a receipt, recorded_numpy_add() replaces that entry, and two
 * more functions replace vecadd.add and vecadd.add_many. Sums of more than SUM_MIN bytes are recorded, which takes
 * 0.2 us: two reads of the clock, the line, the group. Smaller ones are only counted, in 5 ns.
 *
 * The GIL guards everything here. */
#include "py/receipt/receipt.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/util.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/install/install.h"

enum {
    SUM_MIN = 64 << 10,     /* bytes of a sum: additions up to that are only counted */
    OPERANDS = 3,           /* a, b and the sum */
    TABLE = 1 << 13,        /* entries of a table: a power of two, at most half of them used */
    FRAMES_MAX = 32,        /* that are searched for the program's line: each takes 80 ns, libraries nest less deeply */
    HUGE_SUM_MIN = 4 << 20, /* bytes of an array, from which NumPy asks for huge pages */
    HUGE_PAGE = 2 << 20,
    /* Page faults are counted for each sum of this many bytes or more, and for the first smaller ones of a group: two
     * calls of getrusage() take 0.7 us, 1 % of the time of a sum of 2 MiB and half of that of one of 64 KiB. */
    FAULTS_MIN = 2 << 20,
    FAULTS_FIRST = 64,
};

enum via { VIA_NUMPY, VIA_ADD, VIA_ADD_MANY };

/* The line of the program that adds. */
struct program_line {
    PyObject *code;    /* owned by the receipt's table */
    long at;           /* of the instruction, in bytes from the first one */
    PyObject *through; /* the code of the library that adds on behalf of that line; NULL if the line itself adds */
    long through_at;
};

/* Additions with equal keys form a group. Keys are compared byte by byte, so they are whole words. */
struct group_key {
    struct program_line line;
    size_t call; /* the entry, which operands share memory, which keywords there are, and whether vecadd is installed */
    struct key_operand {
        const PyTypeObject *type;
        size_t facts; /* an array's dtype, dimensions, flags, and its size to three bits after the leading one */
    } operand[OPERANDS];
};

struct group {
    struct group_key key;
    enum via via;
    PyObject *example; /* describes the first addition; owned; NULL in a free entry */
    long long calls, bytes, ns;
    long long first_ns, first_faults, first_faulted;
    /* Of the additions after the first one: those whose page faults were counted, their faults, and how many found
     * most pages of the sum new. */
    long long watched, faults, faulted;
    struct loops_seen loops; /* of the first addition: to count them slows short rows by a tenth */
};

enum owner { OWNER_UNKNOWN, OWNER_PROGRAM, OWNER_LIBRARY, OWNER_OURS };

struct receipt {
    size_t users; /* the current receipt and the additions that are being recorded: the last one frees it */
    struct module_state *state;
    PyObject *ours, *libraries;  /* tuples of the beginnings of file names; owned */
    long long missed, missed_ns; /* additions for which there was no room, and their time */
    size_t code_count, group_count;
    struct known_code {
        PyObject *code; /* owned, so that no other object gets its address; NULL in a free entry */
        enum owner owner;
    } codes[TABLE];
    struct group groups[TABLE];
};

static struct receipt *current;   /* NULL while there is no receipt */
static long long small;           /* additions of up to SUM_MIN bytes since it began */
static _Thread_local bool inside; /* an addition that is being recorded: those that it makes are part of it */
static PyObject *f_lasti, *f_back, *co_filename; /* interned, for good */

/* Not malloc's memory: in the heap it would move the arrays that the program makes next, and a sum whose address agrees
 * with an operand's in its last twelve bits takes up to twice as long. */
static struct receipt *
receipt_new(struct module_state *state, PyObject *ours, PyObject *libraries)
{
    void *memory = mmap(NULL, sizeof(struct receipt), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        PyErr_NoMemory();
        return NULL;
    }
    struct receipt *receipt = memory; /* all zeros */
    receipt->users = 1;
    receipt->state = state;
    receipt->ours = Py_NewRef(ours);
    receipt->libraries = Py_NewRef(libraries);
    return receipt;
}

static void
receipt_release(struct receipt *receipt)
{
    if (--receipt->users > 0)
        return;
    for (size_t i = 0; i < TABLE; i++) {
        Py_XDECREF(receipt->codes[i].code);
        Py_XDECREF(receipt->groups[i].example);
    }
    Py_DECREF(receipt->ours);
    Py_DECREF(receipt->libraries);
    munmap(receipt, sizeof *receipt);
}

/* --- the program's line */

static bool
starts_with_any(PyObject *name, PyObject *beginnings)
{
    const Py_ssize_t count = PyTuple_Size(beginnings);
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyUnicode_Tailmatch(name, PyTuple_GetItem(beginnings, i), 0, PY_SSIZE_T_MAX, -1) > 0)
            return true;
    return false;
}

static enum owner
read_owner(const struct receipt *receipt, PyObject *code)
{
    OWNED PyObject *name = PyObject_GetAttr(code, co_filename);
    return !name                                       ? OWNER_UNKNOWN
           : starts_with_any(name, receipt->ours)      ? OWNER_OURS
           : starts_with_any(name, receipt->libraries) ? OWNER_LIBRARY
                                                       : OWNER_PROGRAM;
}

static enum owner
find_owner(struct receipt *receipt, PyObject *code)
{
    size_t i = ((uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u >> 40 & (TABLE - 1);
    for (; receipt->codes[i].code; i = (i + 1) & (TABLE - 1))
        if (receipt->codes[i].code == code)
            return receipt->codes[i].owner;
    if (receipt->code_count >= TABLE / 2)
        return OWNER_UNKNOWN;
    receipt->codes[i] = (struct known_code){Py_NewRef(code), read_owner(receipt, code)};
    receipt->code_count++;
    return receipt->codes[i].owner;
}

static long
read_instruction(PyObject *frame)
{
    OWNED PyObject *number = PyObject_GetAttr(frame, f_lasti);
    return number ? PyLong_AsLong(number) : -1;
}

/* The frame that called this one, a new reference; NULL at the end of the stack. Drops `frame`. */
static PyObject *
outer_frame(PyObject *frame)
{
    PyObject *outer = PyObject_GetAttr(frame, f_back);
    Py_DECREF(frame);
    if (outer && Py_IsNone(outer))
        Py_CLEAR(outer);
    return outer;
}

/* Finds the innermost frame of the program; where only libraries are on the stack, the innermost outside NumPy and
 * vecadd. False where there is no such frame, or no room for its code; an exception may be set. */
static bool
find_program_line(struct receipt *receipt, struct program_line *line)
{
    struct program_line library = {0};
    bool found = false;
    *line = (struct program_line){0};
    OWNED PyObject *frame = Py_XNewRef((PyObject *)PyEval_GetFrame());
    for (int walked = 0; frame && walked < FRAMES_MAX && !found; walked++) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        const enum owner owner = find_owner(receipt, code);
        Py_DECREF(code); /* the frame keeps it, and so does the receipt */
        if (owner == OWNER_UNKNOWN)
            break;
        if (owner == OWNER_LIBRARY && !library.code)
            library = (struct program_line){.code = code, .at = read_instruction(frame)};
        if (owner == OWNER_PROGRAM) {
            *line = (struct program_line){code, read_instruction(frame), library.code, library.at};
            found = true;
        } else
            frame = outer_frame(frame);
    }
    if (found || !library.code)
        return found;
    *line = library;
    return true;
}

/* --- what a call is given */

struct call {
    enum via via;
    PyObject *a, *b, *out, *device; /* borrowed; out and device are NULL where they are not given, or None */
    bool has_others;                /* keywords besides those two */
    size_t sum_bytes;
};

static PyArrayObject *
as_array(PyObject *x)
{
    return x && PyArray_Check(x) ? (PyArrayObject *)x : NULL;
}

/* x, or what is in a tuple of one. */
static PyObject *
untuple(PyObject *x)
{
    return PyTuple_Check(x) && PyTuple_Size(x) == 1 ? PyTuple_GetItem(x, 0) : x;
}

/* Bytes of the sum of NumPy's arrays among the arguments of an addition, its elements as wide as the widest; 0 without
 * an array. Of arrays that do not go together, anything. */
__attribute__((noinline)) static size_t
broadcast_bytes(PyObject *const *values, Py_ssize_t count)
{
    PyArrayObject *arrays[OPERANDS + 1]; /* where=, too */
    int found = 0, ndim = 0;
    size_t size = 1, itemsize = 0;
    for (Py_ssize_t k = 0; k < count && found <= OPERANDS; k++) {
        PyArrayObject *x = PyArray_CheckExact(values[k]) ? (PyArrayObject *)values[k] : as_array(untuple(values[k]));
        if (!x)
            continue;
        arrays[found++] = x;
        itemsize = larger(itemsize, (size_t)PyArray_ITEMSIZE(x));
        ndim = PyArray_NDIM(x) > ndim ? PyArray_NDIM(x) : ndim;
    }
    for (int axis = 1; axis <= ndim; axis++) {
        npy_intp length = 1;
        for (int k = 0; k < found && length == 1; k++)
            if (axis <= PyArray_NDIM(arrays[k]))
                length = PyArray_DIM(arrays[k], PyArray_NDIM(arrays[k]) - axis);
        size *= (size_t)length;
    }
    return itemsize * size;
}

/* broadcast_bytes() of arrays of one dimension and Python's numbers, in 2 ns an array; 0 for all others. */
static inline size_t
flat_bytes(PyObject *const *values, Py_ssize_t count)
{
    size_t size = 0, itemsize = 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyArrayObject *x = (PyArrayObject *)values[k];
        if (PyFloat_CheckExact(values[k]) || PyLong_CheckExact(values[k]))
            continue;
        if (!PyArray_CheckExact(x) || PyArray_NDIM(x) != 1)
            return 0;
        size = larger(size, (size_t)PyArray_DIM(x, 0));
        itemsize = larger(itemsize, (size_t)PyArray_ITEMSIZE(x));
    }
    return size * itemsize;
}

/* Bytes of an array of any library that says them, else 0. An exception that is no refusal stays set. */
static size_t
read_nbytes(PyObject *x)
{
    if (as_array(x))
        return (size_t)PyArray_NBYTES((PyArrayObject *)x);
    if (PyErr_Occurred())
        return 0;
    OWNED PyObject *number = PyObject_GetAttrString(x, "nbytes");
    const Py_ssize_t bytes = number && PyLong_Check(number) ? PyLong_AsSsize_t(number) : 0;
    clear_refusal();
    return bytes > 0 ? (size_t)bytes : 0;
}

/* Bytes of the arrays of a list or tuple, whose own code may shorten the list; 0 for anything else. Methods of a
 * subclass are not asked. */
static size_t
list_nbytes(PyObject *list)
{
    size_t bytes = 0;
    const bool is_list = PyList_Check(list);
    if (!is_list && !PyTuple_Check(list))
        return 0;
    for (Py_ssize_t i = 0; i < (is_list ? PyList_Size(list) : PyTuple_Size(list)); i++) {
        OWNED PyObject *x = Py_NewRef(is_list ? PyList_GetItem(list, i) : PyTuple_GetItem(list, i));
        bytes += read_nbytes(x);
    }
    return bytes;
}

static PyObject *
given(PyObject *x)
{
    return x && !Py_IsNone(x) ? x : NULL;
}

/* False where there are too few arguments. Leaves call->sum_bytes, and sets no exception. */
static bool
read_call(const struct module_state *state, struct call *call, enum via via, PyObject *const *values, Py_ssize_t count,
          PyObject *keywords)
{
    if (count < 2)
        return false;
    *call = (struct call){.via = via, .a = values[0], .b = values[1]};
    PyObject *out = count > 2 ? values[2] : NULL;
    const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        const enum name name = keyword_name(state, PyTuple_GetItem(keywords, i));
        if (name == NAME_OUT)
            out = values[count + i];
        else if (name == NAME_DEVICE)
            call->device = given(values[count + i]);
        else
            call->has_others = true;
    }
    call->out = out && via != VIA_ADD_MANY ? given(untuple(out)) : given(out);
    return true;
}

/* Bytes of the sum, or of the sums of add_many; 0 where no operand says any. May leave an exception set. */
static size_t
read_sum_bytes(const struct call *call, PyObject *const *values, Py_ssize_t count)
{
    if (call->via == VIA_ADD_MANY)
        return larger(list_nbytes(call->a), list_nbytes(call->b));
    const size_t bytes = broadcast_bytes(values, count);
    return bytes ? bytes : larger(read_nbytes(call->a), read_nbytes(call->b));
}

/* The bytes of the operands and of the sum. May leave an exception set. */
static long long
read_moved_bytes(const struct call *call, PyObject *sum)
{
    PyObject *const operands[OPERANDS] = {call->a, call->b, sum};
    size_t bytes = 0;
    for (int k = 0; k < OPERANDS; k++) {
        if (call->via == VIA_ADD_MANY)
            bytes += list_nbytes(operands[k]);
        else if (as_array(operands[k]) || !as_array(sum)) /* beside an array, a number's bytes are not worth asking */
            bytes += read_nbytes(operands[k]);
    }
    return (long long)bytes;
}

/* --- groups */

/* The leading bit's place and the three bits after it. */
static size_t
size_class(size_t size)
{
    if (size < 16)
        return size;
    const int shift = 63 - __builtin_clzll(size) - 3;
    return (size_t)shift << 4 | size >> shift;
}

static struct key_operand
key_operand(PyObject *x)
{
    struct key_operand key = {0};
    PyArrayObject *array = as_array(x);
    if (x)
        key.type = Py_TYPE(x);
    if (array) {
        const size_t flags =
            (size_t)PyArray_FLAGS(array) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED);
        key.facts = (size_t)PyArray_TYPE(array) << 40 | size_class((size_t)PyArray_SIZE(array)) << 24 | flags << 8 |
                    (size_t)PyArray_NDIM(array) << 1 | (size_t)(PyArray_ISBYTESWAPPED(array) != 0);
    }
    return key;
}

struct extent {
    const char *begin, *end;
};

static struct extent
read_extent(PyArrayObject *x)
{
    struct extent extent = {PyArray_BYTES(x), PyArray_BYTES(x) + PyArray_ITEMSIZE(x)};
    for (int axis = 0; axis < PyArray_NDIM(x); axis++) {
        const npy_intp reach = (PyArray_DIM(x, axis) - 1) * PyArray_STRIDE(x, axis);
        *(reach < 0 ? &extent.begin : &extent.end) += reach;
    }
    return extent;
}

/* 0: they share no memory, 1: they are the same elements, 2: anything else. */
static size_t
sharing(PyObject *one, PyObject *other)
{
    PyArrayObject *x = as_array(one), *y = as_array(other);
    if (!x || !y)
        return 0;
    const struct extent left = read_extent(x), right = read_extent(y);
    if (left.end <= right.begin || right.end <= left.begin)
        return 0;
    const size_t strides = (size_t)PyArray_NDIM(x) * sizeof(npy_intp);
    const bool same = PyArray_BYTES(x) == PyArray_BYTES(y) && PyArray_NDIM(x) == PyArray_NDIM(y) &&
                      memcmp(PyArray_DIMS(x), PyArray_DIMS(y), strides) == 0 &&
                      memcmp(PyArray_STRIDES(x), PyArray_STRIDES(y), strides) == 0;
    return same ? 1 : 2;
}

/* Fills in all of the key but its line. */
static void
fill_key(struct group_key *key, const struct call *call)
{
    PyObject *const operands[OPERANDS] = {call->a, call->b, call->out};
    const bool many = call->via == VIA_ADD_MANY;
    key->call = (size_t)call->via | (size_t)(call->out != NULL) << 2 | (size_t)(call->device != NULL) << 3 |
                (size_t)call->has_others << 4 | (size_t)loops_installed() << 5 | sharing(call->a, call->b) << 6 |
                sharing(call->a, call->out) << 8 | sharing(call->b, call->out) << 10 |
                (many ? size_class(call->sum_bytes) << 12 : 0);
    for (int k = 0; k < OPERANDS; k++)
        key->operand[k] = many ? (struct key_operand){0} : key_operand(operands[k]);
}

/* The group, or the free entry where it would be. */
static struct group *
find_group(struct receipt *receipt, const struct group_key *key)
{
    size_t words[sizeof *key / sizeof(size_t)], mixed = 0;
    _Static_assert(sizeof words == sizeof *key, "a key is whole words");
    memcpy(words, key, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        mixed = (mixed ^ words[i]) * 0x9E3779B97F4A7C15u;
    size_t i = (mixed ^ mixed >> 32) & (TABLE - 1);
    while (receipt->groups[i].example && memcmp(&receipt->groups[i].key, key, sizeof *key) != 0)
        i = (i + 1) & (TABLE - 1);
    return &receipt->groups[i];
}

/* (dtype, shape, strides, address) of a NumPy array, the type of anything else. */
static PyObject *
describe_operand(PyObject *x)
{
    PyArrayObject *array = as_array(x);
    if (!array)
        return Py_NewRef((PyObject *)Py_TYPE(x));
    const int ndim = PyArray_NDIM(array);
    return Py_BuildValue("ONNK", (PyObject *)PyArray_DESCR(array), PyArray_IntTupleFromIntp(ndim, PyArray_DIMS(array)),
                         PyArray_IntTupleFromIntp(ndim, PyArray_STRIDES(array)),
                         (unsigned long long)(uintptr_t)PyArray_DATA(array));
}

/* What a group keeps of its first addition; NULL with an exception set. Takes `route`, which may be NULL. */
static PyObject *
describe_call(const struct call *call, PyObject *sum, PyObject *route)
{
    PyObject *device = call->device ? PyObject_Str(call->device) : Py_NewRef(Py_None);
    if (!device) {
        Py_XDECREF(route);
        return NULL;
    }
    return Py_BuildValue("{s:N,s:N,s:N,s:O,s:N,s:O,s:N}", "a", describe_operand(call->a), "b",
                         describe_operand(call->b), "out", describe_operand(sum), "new", call->out ? Py_False : Py_True,
                         "device", device, "others", call->has_others ? Py_True : Py_False, "route",
                         route ? route : Py_NewRef(Py_None));
}

static PyObject *
describe_line(PyObject *code, long at)
{
    return code ? Py_BuildValue("Ol", code, at) : Py_NewRef(Py_None);
}

static PyObject *
describe_group(const struct group *group)
{
    static const char *const via[] = {[VIA_NUMPY] = "numpy", [VIA_ADD] = "add", [VIA_ADD_MANY] = "add_many"};
    const struct program_line *line = &group->key.line;
    return Py_BuildValue("{s:N,s:N,s:s,s:O,s:L,s:L,s:d,s:d,s:L,s:L,s:L,s:L,s:L,s:n,s:n,s:n}", "line",
                         describe_line(line->code, line->at), "through", describe_line(line->through, line->through_at),
                         "via", via[group->via], "example", group->example, "calls", group->calls, "bytes",
                         group->bytes, "seconds", 1e-9 * (double)group->ns, "first_seconds",
                         1e-9 * (double)group->first_ns, "first_faults", group->first_faults, "first_faulted",
                         group->first_faulted, "watched", group->watched, "faults", group->faults, "faulted",
                         group->faulted, "loops", (Py_ssize_t)group->loops.calls, "elements",
                         (Py_ssize_t)group->loops.elements, "added", (Py_ssize_t)group->loops.added);
}

/* --- recording an addition */

struct recording {
    struct receipt *receipt; /* the recording is one of its users */
    struct call call;
    struct group_key key;
    struct group *group;
    bool has_line, opens_group, watches_faults, counts_loops;
    int whose_faults; /* RUSAGE_THREAD where NumPy adds; else RUSAGE_SELF, because other threads add too */
    long faults;
    long long begin;
};

/* The arguments of a function of the module. */
struct arguments {
    PyObject *module, *const *values;
    Py_ssize_t count;
    PyObject *keywords;
};

static PyUFuncObject *
numpy_add(const struct receipt *receipt)
{
    return (PyUFuncObject *)receipt->state->numpy_add;
}

static long
count_faults(int whose)
{
    struct rusage usage;
    getrusage(whose, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* Begins to record an addition of recording->call. Returns 0, and then record_end() must follow; or -1 with an
 * exception set. */
static int
record_begin(struct recording *recording)
{
    struct receipt *receipt = recording->receipt = current;
    const enum via via = recording->call.via;
    receipt->users++;
    inside = true; /* before the garbage collector may run */
    recording->has_line = find_program_line(receipt, &recording->key.line);
    if (PyErr_Occurred()) {
        inside = false;
        receipt_release(receipt);
        return -1;
    }
    fill_key(&recording->key, &recording->call);
    recording->group = find_group(receipt, &recording->key);
    recording->opens_group = !recording->group->example;
    recording->watches_faults = recording->call.sum_bytes >= FAULTS_MIN || recording->group->calls < FAULTS_FIRST;
    recording->counts_loops = via == VIA_NUMPY && recording->opens_group;
    if (recording->counts_loops)
        loops_count_begin(numpy_add(receipt));
    recording->whose_faults = via == VIA_NUMPY && !loops_installed() ? RUSAGE_THREAD : RUSAGE_SELF;
    if (recording->watches_faults)
        recording->faults = count_faults(recording->whose_faults);
    recording->begin = now_ns();
    return 0;
}

/* Whether most pages of a sum were new: at least half of them were faulted in. Large arrays have huge pages, but for
 * their ends. */
static bool
is_faulted_in(size_t bytes, long faults)
{
    const size_t pages = bytes >= HUGE_SUM_MIN ? bytes / HUGE_PAGE : bytes / (size_t)getpagesize();
    return (size_t)faults >= pages / 2 + (pages < 2);
}

/* Describes the first addition of a group; NULL where the operands refuse, maybe with an exception set. `given` as in
 * record_end(). */
static PyObject *
describe_first(const struct call *call, PyObject *sum, const struct arguments *given)
{
    PyObject *route = given ? py_explain_route(given->module, given->values, given->count, given->keywords) : NULL;
    if (clear_refusal() < 0) {
        Py_XDECREF(route);
        return NULL;
    }
    return describe_call(call, sum, route);
}

/* The group of the addition, made where it is the first; NULL where there is no room, no line or no description. */
static struct group *
open_group(const struct recording *recording, PyObject *sum, const struct arguments *given)
{
    struct receipt *receipt = recording->receipt;
    if (!recording->opens_group)
        return recording->group;
    PyObject *example = recording->has_line ? describe_first(&recording->call, sum, given) : NULL;
    struct group *group = find_group(receipt, &recording->key); /* another thread may have made it meanwhile */
    if (!example || group->example || receipt->group_count >= TABLE / 2) {
        Py_XDECREF(example);
        return group->example ? group : NULL;
    }
    *group = (struct group){.key = recording->key, .via = recording->call.via, .example = example};
    receipt->group_count++;
    return group;
}

/* Returns the sum, whose reference it takes; NULL after an error, which stays set: such an addition is not recorded.
 * `given` are the arguments of vecadd.add, NULL for the other entries. An interrupt that comes while the addition is
 * recorded goes through: NULL with the exception set, and the sum is lost as after an interrupted call. */
static PyObject *
record_end(struct recording *recording, PyObject *sum, const struct arguments *given)
{
    const long long ns = now_ns() - recording->begin;
    const long faults = recording->watches_faults ? count_faults(recording->whose_faults) - recording->faults : 0;
    const struct loops_seen loops =
        recording->counts_loops ? loops_count_end(numpy_add(recording->receipt)) : (struct loops_seen){0};
    const long long bytes = sum ? read_moved_bytes(&recording->call, sum) : 0;
    struct group *group = sum && !PyErr_Occurred() ? open_group(recording, sum, given) : NULL;
    if (sum && clear_refusal() < 0)
        Py_CLEAR(sum);
    if (sum && !group) {
        recording->receipt->missed++;
        recording->receipt->missed_ns += ns;
    } else if (sum) {
        const bool faulted = is_faulted_in(recording->call.sum_bytes, faults);
        group->bytes += bytes;
        group->ns += ns;
        if (group->calls++ == 0) {
            group->first_ns = ns;
            group->first_faults = faults;
            group->first_faulted = faulted;
            group->loops = loops;
        } else if (recording->watches_faults) {
            group->watched++;
            group->faults += faults;
            group->faulted += faulted;
        }
    }
    inside = false;
    receipt_release(recording->receipt);
    return sum;
}

/* --- the entries */

typedef PyObject *ufunc_call(PyObject *ufunc, PyObject *const *values, size_t count, PyObject *keywords);
typedef PyObject *method_call(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords);

static ufunc_call *numpy_entry; /* numpy.add's own */
/* Whether numpy.add's entry was replaced and not put back: another library's, above ours, may then call ours, and ours
 * must not call it. */
static bool replaced;
static PyMethodDef *add_method, *add_many_method;

/* Of a vectorcall's count, whose highest bit is a flag. PyVectorcall_NARGS() is newer than our ABI. */
static inline Py_ssize_t
positional_count(size_t count)
{
    return (Py_ssize_t)(count & ~((size_t)1 << (8 * sizeof count - 1)));
}

__attribute__((noinline)) static PyObject *
record_numpy_add(PyObject *ufunc, PyObject *const *values, size_t count, PyObject *keywords, size_t sum_bytes)
{
    struct recording recording;
    const Py_ssize_t positional = positional_count(count);
    if (inside || !current || !read_call(current->state, &recording.call, VIA_NUMPY, values, positional, keywords))
        return numpy_entry(ufunc, values, count, keywords);
    recording.call.sum_bytes = sum_bytes;
    if (record_begin(&recording) < 0)
        return NULL;
    return record_end(&recording, numpy_entry(ufunc, values, count, keywords), NULL);
}

/* Small additions leave it by a jump, without the frame that recording needs. */
static PyObject *
recorded_numpy_add(PyObject *ufunc, PyObject *const *values, size_t count, PyObject *keywords)
{
    const Py_ssize_t all = positional_count(count) + (keywords ? PyTuple_Size(keywords) : 0);
    size_t bytes = flat_bytes(values, all);
    if (!bytes)
        bytes = broadcast_bytes(values, all);
    if (bytes > SUM_MIN)
        return record_numpy_add(ufunc, values, count, keywords, bytes);
    small += bytes > 0;
    return numpy_entry(ufunc, values, count, keywords);
}

static PyObject *
record_method(method_call *method, enum via via, PyObject *module, PyObject *const *values, Py_ssize_t count,
              PyObject *keywords)
{
    const struct arguments given = {module, values, count, keywords};
    struct recording recording;
    struct call *call = &recording.call;
    if (inside || !current || !read_call(current->state, call, via, values, count, keywords))
        return method(module, values, count, keywords);
    call->sum_bytes = read_sum_bytes(call, values, count + (keywords ? PyTuple_Size(keywords) : 0));
    if (PyErr_Occurred())
        return NULL;
    if (!current || call->sum_bytes <= SUM_MIN) { /* an operand may have ended the receipt */
        const long long before = small;
        PyObject *sum = method(module, values, count, keywords);
        small += call->sum_bytes > 0 && small == before; /* else numpy.add was called, and has counted it */
        return sum;
    }
    if (record_begin(&recording) < 0)
        return NULL;
    return record_end(&recording, method(module, values, count, keywords), via == VIA_ADD ? &given : NULL);
}

static PyObject *
recorded_add(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords)
{
    return record_method(py_add, VIA_ADD, module, values, count, keywords);
}

static PyObject *
recorded_add_many(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords)
{
    return record_method(py_add_many, VIA_ADD_MANY, module, values, count, keywords);
}

void
receipt_find_methods(PyMethodDef *methods)
{
    for (; methods->ml_name; methods++) {
        if (strcmp(methods->ml_name, "add") == 0)
            add_method = methods;
        if (strcmp(methods->ml_name, "add_many") == 0)
            add_many_method = methods;
    }
}

static void
put_methods(method_call *add, method_call *add_many)
{
    add_method->ml_meth = (PyCFunction)(void (*)(void))add;
    add_many_method->ml_meth = (PyCFunction)(void (*)(void))add_many;
}

static bool
is_entry(const struct receipt *receipt, ufunc_call *call)
{
    return memcmp(&numpy_add(receipt)->vectorcall, &call, sizeof call) == 0;
}

static void
put_entry(const struct receipt *receipt, ufunc_call *call)
{
    memcpy(&numpy_add(receipt)->vectorcall, &call, sizeof call);
}

static bool
intern_names(void)
{
    static const struct {
        PyObject **name;
        const char *text;
    } names[] = {{&f_lasti, "f_lasti"}, {&f_back, "f_back"}, {&co_filename, "co_filename"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!*names[i].name && !(*names[i].name = PyUnicode_InternFromString(names[i].text)))
            return false;
    return true;
}

const char receipt_start_doc[] = PyDoc_STR(
    "receipt_start($module, ours, libraries, /)\n--\n\n"
    "Records from now on, in all threads, the additions of NumPy and vecadd whose sum has more than 64 KiB, and\n"
    "counts smaller ones. ``ours`` and ``libraries`` are tuples of the beginnings of file names: those of NumPy and\n"
    "vecadd, whose frames are not lines of a program, and those of other libraries.\n\n"
    "Raises RuntimeError where additions are recorded already, where numpy.add is not a ufunc, and in a Python\n"
    "without a GIL, which guards the records.");

PyObject *
py_receipt_start(PyObject *module, PyObject *arguments)
{
    PyObject *ours, *libraries;
    struct module_state *state = PyModule_GetState(module);
#ifdef Py_GIL_DISABLED
    return PyErr_Format(PyExc_RuntimeError, "additions are recorded under the GIL, which this Python does not have");
#endif
    if (current || !PyObject_TypeCheck(state->numpy_add, &PyUFunc_Type))
        return PyErr_Format(PyExc_RuntimeError, "%s",
                            current ? "additions are recorded already"
                                    : "numpy.add was not a ufunc when vecadd was imported");
    if (!PyArg_ParseTuple(arguments, "O!O!:receipt_start", &PyTuple_Type, &ours, &PyTuple_Type, &libraries) ||
        !intern_names() || !(current = receipt_new(state, ours, libraries)))
        return NULL;
    if (!replaced || is_entry(current, numpy_entry)) { /* the second: another library has put it back itself */
        memcpy(&numpy_entry, &numpy_add(current)->vectorcall, sizeof numpy_entry);
        put_entry(current, recorded_numpy_add);
        replaced = true;
    }
    put_methods(recorded_add, recorded_add_many);
    small = 0;
    Py_RETURN_NONE;
}

static PyObject *
describe_receipt(const struct receipt *receipt)
{
    PyObject *groups = PyList_New(0);
    for (size_t i = 0; groups && i < TABLE; i++)
        if (receipt->groups[i].example)
            groups = list_with(groups, describe_group(&receipt->groups[i]));
    return groups ? Py_BuildValue("{s:N,s:L,s:d,s:L}", "groups", groups, "missed", receipt->missed, "missed_seconds",
                                  1e-9 * (double)receipt->missed_ns, "small", small)
                  : NULL;
}

const char receipt_stop_doc[] = PyDoc_STR(
    "receipt_stop($module, /)\n--\n\n"
    "Ends the recording. Returns the 'groups' of additions, the number of 'small' additions up to 64 KiB, the\n"
    "'missed' calls for which there was no room, and their 'missed_seconds'. Raises RuntimeError where nothing is\n"
    "recorded.");

PyObject *
py_receipt_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    struct receipt *receipt = current;
    if (!receipt)
        return PyErr_Format(PyExc_RuntimeError, "no additions are being recorded");
    current = NULL;
    if (is_entry(receipt, recorded_numpy_add)) { /* else another library has put its own above ours, which calls it */
        put_entry(receipt, numpy_entry);
        replaced = false;
    }
    put_methods(py_add, py_add_many);
    PyObject *described = describe_receipt(receipt);
    receipt_release(receipt);
    return described;
}
