/* Notes the additions of a program: what they were, what they took, and in which line they stand.
 *
 * numpy.add is one object, and `a + b` calls it as any caller does: by its vectorcall, with the GIL, once an addition,
 * however many loops NumPy then calls. Ours stands in its place while a receipt is made. To note an addition takes 250
 * to 450 ns, for the clock, the line and the record. Large ones are all noted. Of smaller ones a random one in k, which
 * then stands for k, to keep the cost near 2 % of their time; but the first SMALL_ALL are all noted. */
#include "py/receipt/observe.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/min_max.h"
#include "base/now.h"
#include "py/base/errors.h"
#include "py/base/methods.h"
#include "py/install/loops.h"
#include "py/receipt/call.h"

enum {
    SUM_MIN = 64 << 10,  /* bytes of a sum: additions up to that are not noted */
    SMALL = 2 << 20,     /* bytes of a sum; to add so many takes 60 us or more */
    SMALL_ALL = 512,     /* additions: to note so many takes 0.2 ms */
    LOOK_ALL = 16 << 20, /* bytes of a sum, from which the page faults of each addition are counted: 1 to 2 us */
    LOOK_OF = 64, /* and of one in so many smaller ones, behind the first of a line: of those eight times as many */
    HUGE_FROM = 4 << 20, /* bytes of an array */
    HUGE_PAGE = 2 << 20,
    COUNT_OF = 64, /* of one in so many the loops are counted, because counting slows short rows by a tenth */
};

typedef PyObject *ufunc_call(PyObject *ufunc, PyObject *const *values, size_t count, PyObject *keywords);
typedef PyObject *method_call(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords);

static PyMethodDef *add_method, *add_many_method;
static struct module_state *observed; /* NULL while no receipt is made */
static unsigned generation;           /* of the records; an addition that outlives its own is not noted */
static ufunc_call *numpys;            /* numpy.add's own entry */
static unsigned small_noted;
static long long added; /* bytes of all additions that were noted */
static unsigned long long random_state = 1;
static _Thread_local bool inside; /* an addition that is noted: those that it makes are part of it */

struct observation {
    struct call call;
    struct record_key key;
    struct record *record; /* NULL for the first of its kind */
    PyUFuncObject *ufunc;  /* whose loops are counted */
    struct loops_seen seen;
    unsigned generation;
    unsigned stands_for; /* additions */
    bool looks, counts, has_place;
    long faults;
    long long begun;
};

/* Of a function of the module. */
struct arguments {
    PyObject *module, *const *values;
    Py_ssize_t count;
    PyObject *keywords;
};

/* Of a vectorcall's count. */
static inline Py_ssize_t
positional(size_t count)
{
    return (Py_ssize_t)(count & ~((size_t)1 << (8 * sizeof count - 1)));
}

static PyUFuncObject *
numpys_add(void)
{
    return (PyUFuncObject *)observed->numpy_add;
}

/* Of the calling thread where NumPy adds, else of the process, whose other threads add too. */
static long
faults_now(enum via via)
{
    struct rusage usage;
    getrusage(via == VIA_NUMPY && !loops_installed() ? RUSAGE_THREAD : RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static bool
same_shape(PyArrayObject *x, PyArrayObject *y)
{
    if (PyArray_NDIM(x) != PyArray_NDIM(y))
        return false;
    for (int axis = 0; axis < PyArray_NDIM(x); axis++)
        if (PyArray_DIM(x, axis) != PyArray_DIM(y, axis))
            return false;
    return true;
}

static inline bool
is_number(PyObject *x)
{
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x);
}

/* call_sum_bytes() of arrays of one dimension, Python's numbers beside them, in 2 ns an array; 0 for all others. */
static inline size_t
flat_sum_bytes(PyObject *const *values, Py_ssize_t all)
{
    const PyArray_Descr *dtype = NULL;
    size_t size = 0, itemsize = 0;
    for (Py_ssize_t k = 0; k < all; k++) {
        PyArrayObject *x = (PyArrayObject *)values[k];
        if (!PyArray_CheckExact(x)) {
            if (!is_number(values[k]))
                return 0;
            continue;
        }
        if (PyArray_NDIM(x) != 1)
            return 0;
        size = larger(size, (size_t)PyArray_DIM(x, 0));
        if (PyArray_DESCR(x) != dtype) {
            dtype = PyArray_DESCR(x);
            itemsize = larger(itemsize, (size_t)PyArray_ITEMSIZE(x));
        }
    }
    return size * itemsize;
}

static size_t
size_of(PyArrayObject *x)
{
    size_t size = 1;
    for (int axis = 0; axis < PyArray_NDIM(x); axis++)
        size *= (size_t)PyArray_DIM(x, axis);
    return size;
}

/* The same of arrays of one shape; of several shapes that cannot make a sum above SUM_MIN, no more than that. 0 for all
 * others, and for a sum of nothing. */
__attribute__((noinline)) static size_t
quick_sum_bytes(PyObject *const *values, Py_ssize_t all)
{
    PyArrayObject *first = NULL;
    size_t size = 0, itemsize = 0, most = 1; /* of the largest array; elements that a and b may broadcast to */
    bool alike = true;
    for (Py_ssize_t k = 0; k < all; k++) {
        PyArrayObject *x = (PyArrayObject *)values[k];
        if (!PyArray_CheckExact(x)) {
            if (!is_number(values[k]))
                return 0;
            continue;
        }
        itemsize = larger(itemsize, (size_t)PyArray_ITEMSIZE(x));
        if (first && alike && same_shape(first, x))
            continue;
        const size_t size_here = size_of(x);
        size = larger(size, size_here);
        if (k < 2 && size_here <= SUM_MIN)
            most *= size_here;
        alike = !first;
        if (!first)
            first = x;
    }
    if (alike)
        return size * itemsize;
    const size_t bytes = larger(most, size) * itemsize;
    return size <= SUM_MIN && bytes <= SUM_MIN ? bytes : 0;
}

/* For how many additions one of so many bytes stands; 0 for one that is not noted. */
static unsigned
stands_for(size_t bytes)
{
    if (bytes <= SUM_MIN)
        return 0;
    if (bytes >= SMALL || small_noted < SMALL_ALL) {
        small_noted += bytes < SMALL;
        return 1;
    }
    const unsigned of = (unsigned)(SMALL / bytes);
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % of ? 0 : of;
}

/* Page faults are counted of the first addition and of the second, then of fewer, and of all that take long. */
static bool
is_looked_at(size_t bytes, long long noted)
{
    return bytes >= LOOK_ALL || noted == 1 || noted % (noted < LOOK_OF ? LOOK_OF / 8 : LOOK_OF) == 0;
}

/* Begins to note an addition that was found to stand for so many; observe_end() must follow. `call` has been read.
 * Returns 0, or -1 with an exception set, and then nothing follows. */
static int
observe_begin(struct observation *seen, unsigned stands)
{
    const enum via via = seen->call.via;
    seen->stands_for = stands;
    inside = true; /* before the garbage collector may run */
    seen->has_place = place_find(&seen->key.place);
    if (PyErr_Occurred()) {
        inside = false;
        return -1;
    }
    call_key(&seen->call, &seen->key);
    seen->record = seen->has_place ? records_find(&seen->key) : NULL;
    seen->generation = generation;
    const long long noted = seen->record ? seen->record->noted : 0;
    seen->looks = is_looked_at(seen->call.bytes, noted);
    seen->counts = observed && via == VIA_NUMPY && noted % COUNT_OF == 0; /* the collector may have ended the receipt */
    if (seen->counts)
        loops_count_begin(seen->ufunc = numpys_add());
    if (seen->looks)
        seen->faults = faults_now(via);
    seen->begun = now_ns();
    return 0;
}

/* Whether most pages of a sum were new: at least half of them were faulted in. NumPy asks for huge pages for large
 * arrays, whose ends lie on small ones. */
static bool
faulted_in(size_t bytes, long faults)
{
    const size_t pages = bytes >= HUGE_FROM ? bytes / HUGE_PAGE : bytes / (size_t)getpagesize();
    return (size_t)faults >= pages / 2 + (pages < 2);
}

/* Where every addition is noted: of one in k it is not known which were made between. */
static void
note_uses(struct record *record, const struct call *call, PyObject *sum)
{
    PyObject *const operands[OPERANDS] = {call->a, call->b, sum};
    for (int k = 0; k < OPERANDS; k++)
        if (PyArray_Check(operands[k]))
            records_use(&record->uses[k], PyArray_DATA((PyArrayObject *)operands[k]), added);
}

static void
note(struct record *record, const struct observation *seen, long long bytes, long long ns, long faults)
{
    const long long times = seen->stands_for;
    record->calls += times;
    record->bytes += times * bytes;
    record->ns += times * ns;
    if (record->noted++ == 0) {
        record->first_ns = ns;
        record->first_faults = faults;
        record->first_faulted = faulted_in(seen->call.bytes, faults);
    } else if (seen->looks) {
        record->looked++;
        record->faults += faults;
        record->faulted += faulted_in(seen->call.bytes, faults);
    }
    if (seen->counts && seen->seen.calls) {
        record->counted++;
        record->loops += (long long)seen->seen.calls;
        record->elements += (long long)seen->seen.elements;
        record->added += (long long)seen->seen.added;
    }
}

/* What a record keeps of the first addition of its kind; NULL where the operands do not tell, maybe with an exception
 * set. `given` as in observe_end. */
static PyObject *
example_of(const struct call *call, PyObject *sum, const struct arguments *given)
{
    PyObject *route = given ? py_explain_route(given->module, given->values, given->count, given->keywords) : NULL;
    PyObject *example = clear_refusal() == 0 ? call_described(call, sum, route) : NULL;
    Py_XDECREF(route);
    return example;
}

/* Returns the sum, whose reference it takes. `sum` is NULL after an error, which stays set; such an addition is not
 * noted. `given` are the arguments of add, NULL for the other entries. An interrupt that comes while the addition is
 * noted goes through: NULL with the exception set, and the sum is lost as after an interrupted call. */
static PyObject *
observe_end(struct observation *seen, PyObject *sum, const struct arguments *given)
{
    const long long ns = now_ns() - seen->begun;
    const long faults = seen->looks ? faults_now(seen->call.via) - seen->faults : 0;
    if (seen->counts)
        seen->seen = loops_count_end(seen->ufunc);
    if (sum) {
        /* What may run Python code, and so end the receipt, comes before the look at the records. */
        const long long bytes = call_bytes(&seen->call, sum);
        const bool is_first = !seen->record && seen->has_place;
        PyObject *example = is_first && !PyErr_Occurred() ? example_of(&seen->call, sum, given) : NULL;
        if (clear_refusal() < 0)
            Py_CLEAR(sum);
        if (!sum || seen->generation != generation || !observed)
            Py_XDECREF(example);
        else if (seen->record || (example && (seen->record = records_add(&seen->key, seen->call.via, example)))) {
            note(seen->record, seen, bytes, ns, faults);
            if (seen->stands_for == 1)
                note_uses(seen->record, &seen->call, sum);
        } else
            records_miss(seen->stands_for, seen->stands_for * ns);
        added += seen->stands_for * bytes;
    }
    inside = false;
    return sum;
}

/* An addition whose sum may be large: of so many bytes, or of 0 where that takes longer to find out. */
__attribute__((noinline)) static PyObject *
observe_numpys(PyObject *ufunc, PyObject *const *values, size_t count, PyObject *keywords, size_t bytes)
{
    struct observation seen;
    unsigned stands = bytes ? stands_for(bytes) : 0;
    if ((bytes && !stands) || inside || !observed ||
        !call_read(observed, &seen.call, VIA_NUMPY, values, positional(count), keywords))
        return numpys(ufunc, values, count, keywords);
    if (!bytes)
        stands = stands_for(bytes = call_sum_bytes(&seen.call));
    if (!stands)
        return numpys(ufunc, values, count, keywords);
    seen.call.bytes = bytes;
    if (observe_begin(&seen, stands) < 0)
        return NULL;
    return observe_end(&seen, numpys(ufunc, values, count, keywords), NULL);
}

/* Small additions leave it by a jump, without the frame that noting needs. */
static PyObject *
observed_numpy_add(PyObject *ufunc, PyObject *const *values, size_t count, PyObject *keywords)
{
    const Py_ssize_t all = positional(count) + (keywords ? PyTuple_Size(keywords) : 0);
    size_t bytes = flat_sum_bytes(values, all);
    if (!bytes)
        bytes = quick_sum_bytes(values, all);
    if (bytes && bytes <= SUM_MIN)
        return numpys(ufunc, values, count, keywords);
    return observe_numpys(ufunc, values, count, keywords, bytes);
}

static PyObject *
observe_method(method_call *method, enum via via, PyObject *module, PyObject *const *values, Py_ssize_t count,
               PyObject *keywords)
{
    const struct arguments given = {module, values, count, keywords};
    struct observation seen;
    unsigned stands = 0;
    if (!inside && observed && call_read(observed, &seen.call, via, values, count, keywords))
        stands = stands_for(seen.call.bytes = call_sum_bytes(&seen.call));
    if (PyErr_Occurred() || (stands && observe_begin(&seen, stands) < 0))
        return NULL;
    PyObject *sum = method(module, values, count, keywords);
    return stands ? observe_end(&seen, sum, via == VIA_ADD ? &given : NULL) : sum;
}

static PyObject *
observed_add(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords)
{
    return observe_method(py_add, VIA_ADD, module, values, count, keywords);
}

static PyObject *
observed_add_many(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *keywords)
{
    return observe_method(py_add_many, VIA_ADD_MANY, module, values, count, keywords);
}

void
observe_methods(PyMethodDef *methods)
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

static bool changing; /* the tables are made or described: Python code, such as a finalizer, may run meanwhile */
/* Put into numpy.add and not taken out: what was put above ours calls it, and must not come to stand below it. */
static bool standing;

/* Whether numpy.add's entry is this one. */
static bool
enters(ufunc_call *call)
{
    return memcmp(&numpys_add()->vectorcall, &call, sizeof call) == 0;
}

const char receipt_start_doc[] = PyDoc_STR(
    "receipt_start($module, ours, libraries, /)\n--\n\n"
    "Notes from now on, in all threads, each addition of NumPy's and of ours whose sum exceeds 64 KiB.\n"
    "``ours`` and ``libraries`` are tuples of the beginnings of file names: those of NumPy and vecadd, whose frames\n"
    "are no lines of a program, and those of other libraries.\n\n"
    "Raises RuntimeError where additions are noted already, where numpy.add is no ufunc, and in a Python\n"
    "without a GIL, which guards what is noted.");

PyObject *
py_receipt_start(PyObject *module, PyObject *arguments)
{
    PyObject *ours, *libraries;
    struct module_state *state = PyModule_GetState(module);
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_RuntimeError, "additions are noted under the GIL, which this Python does not have");
    return NULL;
#endif
    if (observed || changing || !PyObject_TypeCheck(state->numpy_add, &PyUFunc_Type)) {
        PyErr_SetString(PyExc_RuntimeError, observed || changing ? "additions are noted already"
                                                                 : "numpy.add was no ufunc when vecadd was imported");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O!O!:receipt_start", &PyTuple_Type, &ours, &PyTuple_Type, &libraries))
        return NULL;
    changing = true;
    int failed = place_start(ours, libraries);
    if (!failed && (failed = records_start()) < 0)
        place_stop();
    changing = false;
    if (failed)
        return NULL;
    generation++;
    small_noted = 0;
    added = 0;
    observed = state;
    ufunc_call *const mine = observed_numpy_add;
    void *entry = &numpys_add()->vectorcall;
    if (!standing || enters(numpys)) { /* where what stood below ours stands again, its owner has taken ours out */
        memcpy(&numpys, entry, sizeof numpys);
        memcpy(entry, &mine, sizeof mine);
        standing = true;
    }
    put_methods(observed_add, observed_add_many);
    Py_RETURN_NONE;
}

const char receipt_stop_doc[] = PyDoc_STR(
    "receipt_stop($module, /)\n--\n\n"
    "Notes no more. Returns what was noted: 'additions', 'missed' calls that there was no room for, and their\n"
    "'missed_seconds'. Raises RuntimeError where nothing was noted.");

PyObject *
py_receipt_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    if (!observed) {
        PyErr_SetString(PyExc_RuntimeError, "no additions are noted now");
        return NULL;
    }
    if (enters(observed_numpy_add)) { /* else another has put its own above ours, which then only hands on */
        memcpy(&numpys_add()->vectorcall, &numpys, sizeof numpys);
        standing = false;
    }
    put_methods(py_add, py_add_many);
    observed = NULL;
    changing = true;
    PyObject *noted = records_described();
    records_stop();
    place_stop();
    changing = false;
    return noted;
}
