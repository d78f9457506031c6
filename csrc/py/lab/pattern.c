/* The memory test and the ways between GPUs, from Python. */
#include <string.h>

#include "base/now.h"
#include "host/threads.h"
#include "lab/base/probes.h"
#include "py/base/errors.h"
#include "py/base/methods.h"
#include "py/lab/rung_arguments.h"

static const char *const kind_name[PATTERN_KINDS] = {
    [PATTERN_ADDRESS] = "address",   [PATTERN_INVERSE] = "inverse", [PATTERN_ONE] = "walking one",
    [PATTERN_ZERO] = "walking zero", [PATTERN_RANDOM] = "random",
};

/* Memory that a pattern is written into or looked for in. */
struct tested {
    struct operand operand; /* borrows the array's memory */
    size_t words;
    struct pattern pattern; /* the first word's place is its address, in words */
};

static int
kind_from(const char *name, enum pattern_kind *kind)
{
    for (int i = 0; i < PATTERN_KINDS; i++)
        if (strcmp(name, kind_name[i]) == 0) {
            *kind = (enum pattern_kind)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError,
                 "there is no pattern '%s': it is 'address', 'inverse', 'walking one', 'walking zero' or 'random'",
                 name);
    return -1;
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
        kind_from(name, &tested->pattern.kind) < 0)
        return -1;
    const struct operand *operand = &tested->operand;
    const size_t bytes = operand->size * dtype_table[operand->dtype].itemsize;
    if (bytes == 0 || bytes % sizeof(uint64_t) || (uintptr_t)operand->data % sizeof(uint64_t)) {
        PyErr_Format(PyExc_ValueError, "x has %zu bytes; a pattern takes whole words of 8 bytes, aligned to them",
                     bytes);
        return -1;
    }
    tested->words = bytes / sizeof(uint64_t);
    tested->pattern.seed = seed;
    tested->pattern.first = (uintptr_t)operand->data / sizeof(uint64_t);
    return 0;
}

const char pattern_write_doc[] =
    PyDoc_STR("pattern_write($module, x, pattern, seed, /)\n--\n\n"
              "Fills x, a contiguous NumPy array or DeviceArray of whole 64-bit words, by a pattern and returns the\n"
              "seconds: 'address' writes each word's address over 8, 'inverse' its complement, 'walking one' and\n"
              "'walking zero' one bit that the seed and the address choose, 'random' a hash of both. On a device the\n"
              "seconds are the kernel's.");

PyObject *
py_pattern_write(PyObject *module, PyObject *arguments)
{
    struct tested tested;
    struct status status;
    double seconds = 0;
    int failed = 0;
    if (tested_from(module, arguments, "OsK:pattern_write", &tested) < 0)
        return NULL;
    const struct operand *x = &tested.operand;
    if (!x->writable) {
        PyErr_SetString(PyExc_ValueError, "x is read-only");
        return NULL;
    }
    const int threads = threads_available();
    PyThreadState *released = PyEval_SaveThread();
    if (x->place == PLACE_DEVICE) {
        failed = limits_pattern_write(x->device, x->stream, x->data, tested.words, &tested.pattern, &seconds, &status);
    } else {
        const double begin = now_seconds();
        pattern_host_write(x->data, tested.words, tested.pattern, threads);
        seconds = now_seconds() - begin;
    }
    PyEval_RestoreThread(released);
    return failed ? status_raise(PyModule_GetState(module), &status) : PyFloat_FromDouble(seconds);
}

/* A list of (index, expected, found). */
static PyObject *
wrong_words(const struct pattern_found *found, struct pattern pattern)
{
    const unsigned long long kept = found->count < PATTERN_KEPT ? found->count : PATTERN_KEPT;
    PyObject *list = PyList_New(0);
    for (unsigned long long i = 0; list && i < kept; i++) {
        const struct pattern_wrong *wrong = &found->wrong[i];
        PyObject *word =
            Py_BuildValue("(KKK)", (unsigned long long)wrong->index,
                          (unsigned long long)pattern_word(pattern, wrong->index), (unsigned long long)wrong->found);
        if (!word || PyList_Append(list, word) < 0)
            Py_CLEAR(list);
        Py_XDECREF(word);
    }
    if (list && PyList_Sort(list) < 0)
        Py_CLEAR(list);
    return list;
}

const char pattern_check_doc[] =
    PyDoc_STR("pattern_check($module, x, pattern, seed, /)\n--\n\n"
              "Looks for what pattern_write has left in x: a tuple of the seconds, the number of wrong words, the\n"
              "address of x, and a sorted list of up to 64 of them as (index, expected, found).");

PyObject *
py_pattern_check(PyObject *module, PyObject *arguments)
{
    struct tested tested;
    struct pattern_found found;
    struct status status;
    double seconds = 0;
    int failed = 0;
    if (tested_from(module, arguments, "OsK:pattern_check", &tested) < 0)
        return NULL;
    const struct operand *x = &tested.operand;
    const int threads = threads_available();
    PyThreadState *released = PyEval_SaveThread();
    if (x->place == PLACE_DEVICE) {
        failed = limits_pattern_check(x->device, x->stream, x->data, tested.words, &tested.pattern, &found, &seconds,
                                      &status);
    } else {
        const double begin = now_seconds();
        pattern_host_check(x->data, tested.words, tested.pattern, threads, &found);
        seconds = now_seconds() - begin;
    }
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("(dKKN)", seconds, found.count, (unsigned long long)(uintptr_t)x->data,
                         wrong_words(&found, tested.pattern));
}

const char device_memory_doc[] = PyDoc_STR("device_memory($module, device, /)\n--\n\n"
                                           "(left, all): bytes of a device's memory that the driver can still give,\n"
                                           "and all that it has.");

PyObject *
py_device_memory(PyObject *module, PyObject *arguments)
{
    int device;
    size_t left = 0, all = 0;
    struct status status;
    if (!PyArg_ParseTuple(arguments, "i:device_memory", &device))
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    const int failed = limits_memory(device, &left, &all, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("(nn)", (Py_ssize_t)left, (Py_ssize_t)all);
}

static PyObject *
ways_dict(const struct peer_limits *limits)
{
    static const char *const way_name[PEER_WAYS] = {"copy", "read", "write"};
    PyObject *ways = PyDict_New();
    for (int i = 0; ways && i < (limits->access ? PEER_WAYS : PEER_READ); i++) {
        const struct pattern sent = {.kind = PATTERN_ADDRESS, .first = (uint64_t)i << 40};
        PyObject *way = Py_BuildValue("{s:d,s:K,s:N}", "rate", limits->way[i].rate, "wrong", limits->way[i].found.count,
                                      "words", wrong_words(&limits->way[i].found, sent));
        if (!way || PyDict_SetItemString(ways, way_name[i], way) < 0)
            Py_CLEAR(ways);
        Py_XDECREF(way);
    }
    return ways;
}

const char peer_limits_doc[] = PyDoc_STR(
    "peer_limits($module, source, target, nbytes, rounds, /)\n--\n\n"
    "nbytes of one device's memory into another's, a dict: 'access', whether each may use the other's memory,\n"
    "'atomics', whether the link has atomic operations of its own, 'rank', the driver's rank of the link, and\n"
    "'ways', a dict of 'copy', by a copy engine, and with access of 'read', by a kernel of the target, and\n"
    "'write', by one of the source. Each has its 'rate' in bytes a second, best of `rounds`, and of one pass how\n"
    "many 64-bit words were 'wrong', and up to 64 of these 'words' as (index, expected, found).");

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
    PyThreadState *released = PyEval_SaveThread();
    const int failed = limits_peers(source, target, (size_t)bytes, rounds, &limits, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:O,s:O,s:i,s:N}", "access", limits.access ? Py_True : Py_False, "atomics",
                         limits.atomics ? Py_True : Py_False, "rank", limits.rank, "ways", ways_dict(&limits));
}
