/* Tests of memory from Python: the host's, a device's, and on the ways between devices; and how soon idle threads wake.
 */
#include <string.h>

#include "base/util.h"
#include "host/schedule.h"
#include "lab/base/probes.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/lab/rung_arguments.h"

PyObject *
py_wake_limits(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    const int threads = threads_available();
    struct wake_limits found;
    PyThreadState *released = PyEval_SaveThread();
    limits_wake(threads, &found);
    PyEval_RestoreThread(released);
    return Py_BuildValue("{s:i,s:d,s:d}", "threads", threads, "wake", found.wake, "wake_one", found.wake_one);
}

static const char *const kind_name[PATTERN_KINDS] = {
    [PATTERN_ADDRESS] = "address",   [PATTERN_INVERSE] = "inverse", [PATTERN_ONE] = "walking one",
    [PATTERN_ZERO] = "walking zero", [PATTERN_RANDOM] = "random",
};

/* Memory of a memory test. */
struct tested {
    struct operand operand;     /* borrows the array's memory */
    struct pattern_words words; /* the first word's place is its address, in words */
    double seconds;
};

static int
kind_from(const char *name, enum pattern_kind *kind)
{
    for (int i = 0; i < PATTERN_KINDS; i++)
        if (strcmp(name, kind_name[i]) == 0) {
            *kind = (enum pattern_kind)i;
            return 0;
        }
    return refuse(PyExc_ValueError,
                  "unknown pattern '%s': it is 'address', 'inverse', 'walking one', 'walking zero' or 'random'", name);
}

/* (x, pattern, seed). Returns 0, or -1 with an exception set. */
static int
tested_from(PyObject *module, PyObject *arguments, const char *format, struct tested *tested)
{
    PyObject *array;
    const char *name;
    unsigned long long seed;
    if (!PyArg_ParseTuple(arguments, format, &array, &name, &seed) ||
        rung_operand(PyModule_GetState(module), array, "x", &tested->operand) < 0 ||
        kind_from(name, &tested->words.pattern.kind) < 0)
        return -1;
    const struct operand *operand = &tested->operand;
    const size_t bytes = operand->size * dtype_table[operand->dtype].itemsize;
    if (bytes == 0 || bytes % sizeof(uint64_t) || (uintptr_t)operand->data % sizeof(uint64_t))
        return refuse(PyExc_ValueError, "x has %zu bytes; a pattern takes whole words of 8 bytes, aligned to them",
                      bytes);
    tested->words.memory = operand->data;
    tested->words.count = bytes / sizeof(uint64_t);
    tested->words.pattern.seed = seed;
    tested->words.pattern.first = (uintptr_t)operand->data / sizeof(uint64_t);
    return 0;
}

/* Writes where `found` is NULL, else checks. Returns 0, or -1 with an exception set. */
static int
run_test(PyObject *module, struct tested *tested, struct pattern_found *found)
{
    const struct operand *x = &tested->operand;
    const int threads = threads_available();
    struct status status;
    int failed = 0;
    PyThreadState *released = PyEval_SaveThread();
    const double begin = now_seconds();
    if (x->place == PLACE_HOST) {
        pattern_host(&tested->words, threads, found);
        tested->seconds = now_seconds() - begin;
    }
#if VECADD_CUDA
    else
        failed = pattern_device(x->device, x->stream, &tested->words, found, &tested->seconds, &status);
#endif
    PyEval_RestoreThread(released);
    if (failed)
        status_raise(PyModule_GetState(module), &status);
    return failed;
}

PyObject *
py_pattern_write(PyObject *module, PyObject *arguments)
{
    struct tested tested;
    if (tested_from(module, arguments, "OsK:pattern_write", &tested) < 0)
        return NULL;
    if (!tested.operand.writable)
        return PyErr_Format(PyExc_ValueError, "x is read-only");
    return run_test(module, &tested, NULL) < 0 ? NULL : PyFloat_FromDouble(tested.seconds);
}

/* A list of (index, expected, found). */
static PyObject *
wrong_words(const struct pattern_found *found, struct pattern pattern)
{
    const unsigned long long kept = found->count < PATTERN_KEPT ? found->count : PATTERN_KEPT;
    PyObject *list = PyList_New(0);
    for (unsigned long long i = 0; list && i < kept; i++) {
        const struct pattern_wrong *wrong = &found->wrong[i];
        list = list_with(list, Py_BuildValue("(KKK)", (unsigned long long)wrong->index,
                                             (unsigned long long)pattern_word(pattern, wrong->index),
                                             (unsigned long long)wrong->found));
    }
    if (list && PyList_Sort(list) < 0)
        Py_CLEAR(list);
    return list;
}

PyObject *
py_pattern_check(PyObject *module, PyObject *arguments)
{
    struct tested tested;
    struct pattern_found found;
    if (tested_from(module, arguments, "OsK:pattern_check", &tested) < 0 || run_test(module, &tested, &found) < 0)
        return NULL;
    return Py_BuildValue("(dKKN)", tested.seconds, found.count, (unsigned long long)(uintptr_t)tested.words.memory,
                         wrong_words(&found, tested.words.pattern));
}

#if VECADD_CUDA
static PyObject *
ways_dict(const struct peer_limits *limits)
{
    static const char *const way_name[PEER_WAYS] = {"copy", "read", "write"};
    PyObject *ways = PyDict_New();
    for (int i = 0; ways && i < (limits->access ? PEER_WAYS : PEER_READ); i++) {
        const struct pattern sent = {.kind = PATTERN_ADDRESS, .first = (uint64_t)i << 40};
        ways = dict_with(ways, way_name[i],
                         Py_BuildValue("{s:d,s:K,s:N}", "rate", limits->way[i].rate, "wrong",
                                       limits->way[i].found.count, "words", wrong_words(&limits->way[i].found, sent)));
    }
    return ways;
}

PyObject *
py_peer_limits(PyObject *module, PyObject *arguments)
{
    int source, target, rounds;
    Py_ssize_t bytes;
    struct peer_limits limits;
    struct status status;
    if (!PyArg_ParseTuple(arguments, "iini:peer_limits", &source, &target, &bytes, &rounds))
        return NULL;
    if (source < 0 || target < 0 || source == target || bytes < 16 || bytes % 16 || rounds < 1)
        return PyErr_Format(PyExc_ValueError,
                            "source %d and target %d must be two devices, nbytes (%zd) a multiple of 16, and rounds "
                            "(%d) at least 1",
                            source, target, bytes, rounds);
    if (WITHOUT_GIL(limits_peers(source, target, (size_t)bytes, rounds, &limits, &status)) < 0)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:O,s:O,s:i,s:N}", "access", limits.access ? Py_True : Py_False, "atomics",
                         limits.atomics ? Py_True : Py_False, "rank", limits.rank, "ways", ways_dict(&limits));
}
#endif
