/* vecadd.install: our loops in numpy.add, and memory for every array that NumPy makes. */
#include "py/install/install.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "choose/numpy_loop.h"
#include "choose/plan.h"
#include "host/add.h"
#include "host/output_pool.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/calls/result.h"

/* Each type with a loop of its own: NumPy's dtypes, and the second of C's two integer types of 64 bits. */
#define SLOT_OF(ID, ...) SLOT_##ID,
enum slot { EACH_NUMPY_DTYPE(SLOT_OF) SLOT_LONGLONG, SLOT_ULONGLONG, SLOT_COUNT };
#undef SLOT_OF

/* What every call reads, on one cache line. */
static struct slot_state {
    atomic_size_t least; /* elements: shorter calls go straight to the loop below */
    /* Stays for good: another thread may be in our loop while it is taken out. */
    _Atomic(PyUFuncGenericFunction) below;
} states[SLOT_COUNT];

static atomic_bool every_thread; /* shares every call: plan_loop() */
static atomic_bool installed;
static atomic_size_t counted_calls, counted_elements; /* that our loops added */
static _Thread_local struct loops_seen seen;          /* loops.h */

/* A call of the loop that was in our place, and whether it has been made. */
struct call_below {
    PyUFuncGenericFunction loop;
    char **arguments;
    const npy_intp *dimensions, *steps;
    void *data;
    bool made;
};

static void
make_call_below(void *context)
{
    struct call_below *below = context;
    below->loop(below->arguments, below->dimensions, below->steps, below->data);
    below->made = true;
}

/* Returns whether the call has been added, by vecadd or by the loop below. Not inlined: the test of its length comes
 * before it. */
static __attribute__((noinline)) bool
add_call(const struct loop_call *call, const struct call_below *below)
{
    struct plan plan;
    struct addition addition;
    unsigned flags;
    struct status status;
    if (!plan_loop(&plan, &addition, call, atomic_load_explicit(&every_thread, memory_order_relaxed)) ||
        plan_run(&plan, &flags, &status) < 0)
        return false;
    fpenv_raise(flags); /* NumPy reads the thread's flags after the loop */
    if (below->made)
        return true;
    atomic_fetch_add_explicit(&counted_calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counted_elements, call->n, memory_order_relaxed);
    seen.added++;
    return true;
}

static inline void
loop(enum slot slot, enum dtype dtype, char **arguments, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    const size_t n = (size_t)dimensions[0];
    const PyUFuncGenericFunction loop_below = atomic_load_explicit(&states[slot].below, memory_order_relaxed);
    if (n >= atomic_load_explicit(&states[slot].least, memory_order_relaxed)) {
        struct call_below below = {loop_below, arguments, dimensions, steps, data, false};
        const struct loop_call call = {.a = arguments[0],
                                       .b = arguments[1],
                                       .out = arguments[2],
                                       .n = n,
                                       .step = {steps[0], steps[1], steps[2]},
                                       .dtype = dtype,
                                       .below = {make_call_below, &below}};
        if (add_call(&call, &below))
            return;
    }
    loop_below(arguments, dimensions, steps, data);
}

#define DEFINE_LOOP(SLOT, DTYPE)                                                                                       \
    static void loop_##SLOT(char **arguments, const npy_intp *dimensions, const npy_intp *steps, void *data)           \
    {                                                                                                                  \
        loop(SLOT_##SLOT, DTYPE_##DTYPE, arguments, dimensions, steps, data);                                          \
    }
#define DEFINE_LOOP_OF(ID, ...) DEFINE_LOOP(ID, ID)
EACH_NUMPY_DTYPE(DEFINE_LOOP_OF)
DEFINE_LOOP(LONGLONG, INT64)
DEFINE_LOOP(ULONGLONG, UINT64)
#undef DEFINE_LOOP_OF

/* Loops that count their calls are in numpy.add only while an addition is counted: a call more a row takes 5 to 11 %
 * of the time of short rows. */
static _Atomic(PyUFuncGenericFunction) counted[SLOT_COUNT]; /* the loops below them; they stay for good, as `below` */
static unsigned counters; /* additions that are counted now, in all threads; guarded by the GIL, as is `is_placed` */
/* Put and not taken out: another library's loop that was put above it may call it, and must not come below it. */
static bool is_placed[SLOT_COUNT];

static inline void
count(enum slot slot, char **arguments, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    seen.calls++;
    seen.elements += (size_t)dimensions[0];
    atomic_load_explicit(&counted[slot], memory_order_relaxed)(arguments, dimensions, steps, data);
}

#define DEFINE_COUNT(SLOT)                                                                                             \
    static void count_##SLOT(char **arguments, const npy_intp *dimensions, const npy_intp *steps, void *data)          \
    {                                                                                                                  \
        count(SLOT_##SLOT, arguments, dimensions, steps, data);                                                        \
    }
#define DEFINE_COUNT_OF(ID, ...) DEFINE_COUNT(ID)
EACH_NUMPY_DTYPE(DEFINE_COUNT_OF)
DEFINE_COUNT(LONGLONG)
DEFINE_COUNT(ULONGLONG)
#undef DEFINE_COUNT_OF

#define ROW_OF(ID, name, typestr, VALUE, COMPONENT, NUMPY, DLPACK)                                                     \
    [SLOT_##ID] = {NUMPY, DTYPE_##ID, loop_##ID, count_##ID},
static const struct slot_row {
    int type; /* NumPy's number */
    enum dtype dtype;
    PyUFuncGenericFunction ours, counting;
} slots[SLOT_COUNT] = {
    EACH_NUMPY_DTYPE(ROW_OF)[SLOT_LONGLONG] = {NPY_LONGLONG, DTYPE_INT64, loop_LONGLONG, count_LONGLONG},
    [SLOT_ULONGLONG] = {NPY_ULONGLONG, DTYPE_UINT64, loop_ULONGLONG, count_ULONGLONG},
};
#undef ROW_OF

/* numpy.add's loop of that type: a place in its table; NULL where it has none. */
static PyUFuncGenericFunction *
place_of(PyUFuncObject *add, const struct slot_row *slot)
{
    for (int i = 0; i < add->ntypes; i++) {
        const char *types = add->types + i * add->nargs;
        if (types[0] == slot->type && types[1] == slot->type && types[2] == slot->type)
            return &add->functions[i];
    }
    return NULL;
}

static void
put_counting(PyUFuncObject *add)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        PyUFuncGenericFunction *place = place_of(add, &slots[i]);
        const PyUFuncGenericFunction before = place ? *place : NULL;
        if (place && (!is_placed[i] || before == counted[i])) {
            counted[i] = before;
            *place = slots[i].counting;
            is_placed[i] = true;
        }
    }
}

/* Leaves a loop that was put above a counting one meanwhile. */
static void
take_counting_out(PyUFuncObject *add)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        PyUFuncGenericFunction *place = place_of(add, &slots[i]);
        if (place && *place == slots[i].counting) {
            *place = counted[i];
            is_placed[i] = false;
        }
    }
}

void
loops_count_begin(PyUFuncObject *add)
{
    if (counters++ == 0)
        put_counting(add);
    seen = (struct loops_seen){0};
}

struct loops_seen
loops_count_end(PyUFuncObject *add)
{
    if (--counters == 0)
        take_counting_out(add);
    return seen;
}

bool
loops_installed(void)
{
    return installed;
}

static PyUFuncObject *
numpy_add(PyObject *module)
{
    const struct module_state *state = PyModule_GetState(module);
    if (PyObject_TypeCheck(state->numpy_add, &PyUFunc_Type))
        return (PyUFuncObject *)state->numpy_add;
    PyErr_Format(PyExc_RuntimeError,
                 "numpy.add was %R, not a ufunc, when vecadd was imported: it has no loops to replace",
                 state->numpy_add);
    return NULL;
}

/* The file of the library that a loop is in, a new reference. */
static PyObject *
library_of(PyUFuncGenericFunction function)
{
    Dl_info found;
    void *address;
    memcpy(&address, &function, sizeof address);
    return dladdr(address, &found) && found.dli_fname ? PyUnicode_DecodeFSDefault(found.dli_fname)
                                                      : PyUnicode_FromString("memory of no library");
}

/* Raises the RuntimeError of a loop above ours. Returns -1. */
static int
refuse_covered_loop(const char *what, const struct slot_row *slot, PyUFuncGenericFunction above)
{
    OWNED PyObject *library = library_of(above);
    if (library)
        PyErr_Format(PyExc_RuntimeError,
                     "%s: numpy.add's loop of %s was replaced after vecadd's, by %U; take that one out first", what,
                     dtype_table[slot->dtype].name, library);
    return -1;
}

/* Whether no other loop is above ours; else sets an exception. Where the loop below ours is in its place again, its
 * library has put it there itself, and ours is out. */
static int
check_on_top(PyUFuncObject *add, const char *what)
{
    for (int i = 0; installed && i < SLOT_COUNT; i++) {
        const PyUFuncGenericFunction *place = place_of(add, &slots[i]);
        const PyUFuncGenericFunction above = place ? *place : NULL;
        if (place && above != slots[i].ours && above != states[i].below)
            return refuse_covered_loop(what, &slots[i], above);
    }
    return 0;
}

static int
replace_loop(PyUFuncObject *add, const struct slot_row *slot, PyUFuncGenericFunction function)
{
    const int signature[] = {slot->type, slot->type, slot->type};
    PyUFuncGenericFunction before;
    return PyUFunc_ReplaceLoopBySignature(add, function, signature, &before);
}

static void
set_least(size_t bytes, bool given)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        const size_t itemsize = dtype_table[slots[i].dtype].itemsize;
        atomic_store(&states[i].least, bytes / itemsize + (bytes % itemsize != 0));
    }
    atomic_store(&every_thread, given);
}

/* The libraries of the loops below ours, by dtype. */
static PyObject *
libraries_below(PyUFuncObject *add)
{
    PyObject *libraries = PyDict_New();
    for (int i = 0; libraries && i < SLOT_COUNT; i++)
        if (place_of(add, &slots[i]))
            libraries = dict_with(libraries, dtype_table[slots[i].dtype].name, library_of(states[i].below));
    return libraries;
}

PyObject *
py_install_loops(PyObject *module, PyObject *given)
{
    size_t least = loop_least();
    struct status status;
    PyUFuncObject *add = numpy_add(module);
    if (!add)
        return NULL;
    take_counting_out(add); /* of an addition in another thread, which then counts no further */
    if (check_on_top(add, "install()") < 0)
        return NULL;
    if (!host_simd_chosen(&status))
        return status_raise(PyModule_GetState(module), &status);
    if (!Py_IsNone(given) && (least = PyLong_AsSize_t(given)) == (size_t)-1 && PyErr_Occurred())
        return NULL;
    set_least(least, !Py_IsNone(given));
    for (int i = 0; i < SLOT_COUNT; i++) {
        const PyUFuncGenericFunction *place = place_of(add, &slots[i]);
        const PyUFuncGenericFunction before = place ? *place : slots[i].ours; /* read once: ours must not call itself */
        if (before == slots[i].ours)
            continue;
        states[i].below = before;
        if (replace_loop(add, &slots[i], slots[i].ours) < 0)
            return NULL;
    }
    installed = true;
    return libraries_below(add);
}

PyObject *
py_uninstall_loops(PyObject *module, PyObject *Py_UNUSED(none))
{
    PyUFuncObject *add = numpy_add(module);
    if (!add)
        return NULL;
    take_counting_out(add);
    if (check_on_top(add, "uninstall()") < 0)
        return NULL;
    for (int i = 0; installed && i < SLOT_COUNT; i++)
        if (place_of(add, &slots[i]) && replace_loop(add, &slots[i], states[i].below) < 0)
            return NULL;
    installed = false;
    Py_RETURN_NONE;
}

PyObject *
py_loop_counts(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return Py_BuildValue("{s:O,s:n,s:n}", "installed", installed ? Py_True : Py_False, "calls",
                         (Py_ssize_t)counted_calls, "elements", (Py_ssize_t)counted_elements);
}

/* Memory for every array that NumPy makes (NEP 49): large arrays are in the pool of sums, so that a program's
 * temporaries find pages that exist already, and small ones in the C library's heap. */

/* In front of an array's bytes, because NumPy names no size when it resizes or frees what it resized. */
struct head {
    size_t bytes; /* the array's */
    size_t pooled;
};

enum { CACHE_LINE = 64 }; /* before a pooled array's bytes, so that they are aligned as other sums are */

static size_t
room(bool pooled)
{
    return pooled ? CACHE_LINE : sizeof(struct head);
}

static struct head *
head_of(void *array)
{
    return (struct head *)array - 1;
}

static void *
take(size_t bytes, bool zeroed)
{
    const bool pooled = bytes >= OUTPUT_POOL_MIN;
    size_t whole;
    if (__builtin_add_overflow(bytes, room(pooled), &whole))
        return NULL;
    char *block = pooled   ? (zeroed ? output_pool_take_zeroed(whole) : output_pool_take(whole))
                  : zeroed ? calloc(1, whole)
                           : malloc(whole);
    if (!block)
        return NULL;
    *head_of(block + room(pooled)) = (struct head){bytes, pooled};
    return block + room(pooled);
}

static void *
memory_malloc(void *Py_UNUSED(context), size_t bytes)
{
    return take(bytes, false);
}

static void *
memory_calloc(void *Py_UNUSED(context), size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : take(bytes, true);
}

static void
memory_free(void *Py_UNUSED(context), void *array, size_t Py_UNUSED(bytes))
{
    if (!array)
        return;
    const bool pooled = head_of(array)->pooled;
    void *block = (char *)array - room(pooled);
    if (pooled)
        output_pool_give(block);
    else
        free(block);
}

static void *
memory_realloc(void *context, void *array, size_t bytes)
{
    if (!array)
        return take(bytes, false);
    const struct head head = *head_of(array);
    if (!head.pooled && bytes < OUTPUT_POOL_MIN) {
        char *block = realloc((char *)array - room(false), bytes + room(false));
        if (!block)
            return NULL;
        *head_of(block + room(false)) = (struct head){bytes, false};
        return block + room(false);
    }
    void *moved = take(bytes, false);
    if (moved) {
        memcpy(moved, array, bytes < head.bytes ? bytes : head.bytes);
        memory_free(context, array, head.bytes);
    }
    return moved;
}

static PyDataMem_Handler memory = {
    .name = "vecadd_array_memory",
    .version = 1,
    .allocator = {.malloc = memory_malloc, .calloc = memory_calloc, .realloc = memory_realloc, .free = memory_free},
};

PyObject *
py_use_array_memory(PyObject *Py_UNUSED(module), PyObject *handler)
{
    if (Py_IsNone(handler))
        return array_handler_set(NULL);
    if (!Py_IsTrue(handler))
        return array_handler_set(handler);
    OWNED PyObject *ours = PyCapsule_New(&memory, "mem_handler", NULL); /* an array keeps the capsule, not the module */
    return ours ? array_handler_set(ours) : NULL;
}
