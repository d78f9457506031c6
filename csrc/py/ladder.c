/* The ladder from Python: what rungs there are, one run of one of them, and outputs that no earlier run has filled. */
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "device_array.h"
#include "errors.h"
#include "memory.h"
#include "methods.h"
#include "operand_from.h"
#include "plan.h"
#include "rung.h"
#include "stream.h"

static const char *const kind_name[] = {
    [RUNG_HOST] = "host",
    [RUNG_DEVICE] = "device",
    [RUNG_TRANSFER] = "transfer",
};

enum { POISON = 0xa5, WARP = 32, LARGEST_BLOCK = 1024 };

/* Names of the dtypes whose lane the rung takes. */
static PyObject *
dtypes_of(const struct rung *rung)
{
    PyObject *names = PyList_New(0);
    for (int dtype = 0; names && dtype < DTYPE_COUNT; dtype++) {
        if (!(rung->lanes & 1 << dtype_table[dtype].lane))
            continue;
        PyObject *name = PyUnicode_FromString(dtype_table[dtype].name);
        if (!name || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *
describe(const struct rung *rung)
{
    PyObject *dtypes = dtypes_of(rung);
    if (!dtypes)
        return NULL;
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:n,s:N}", "name", rung->name, "kind", kind_name[rung->kind],
                         "changes", rung->changes, "tested", rung->tested, "bytes_per_load", rung->bytes_per_load,
                         "loads_in_flight", rung->loads_in_flight, "block", rung->block, "alignment",
                         (Py_ssize_t)rung->alignment, "dtypes", dtypes);
}

const char rungs_doc[] = PyDoc_STR(
    "rungs($module, /)\n--\n\n"
    "One dict a rung, in the ladder's order: name, kind, changes, tested, bytes_per_load, loads_in_flight, block,\n"
    "alignment (bytes; 0: the lane's own), dtypes.");

PyObject *
py_rungs(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    PyObject *list = PyList_New(0);
    const struct rung *rung;
    for (size_t i = 0; list && (rung = rung_at(i)); i++) {
        PyObject *row = describe(rung);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* A contiguous ndarray or a DeviceArray; anything else is a TypeError. */
static int
contiguous_operand(struct module_state *state, PyObject *object, const char *what, struct operand *operand)
{
    if (Py_TYPE(object) == state->device_array_type) {
        *operand = device_array_operand((struct device_array *)object);
        return 0;
    }
    if (PyArray_CheckExact(object) && host_operand(state, (PyArrayObject *)object, operand))
        return 0;
    PyErr_Format(PyExc_TypeError,
                 "%s must be a DeviceArray, or a contiguous and aligned NumPy array of a dtype that vecadd adds", what);
    return -1;
}

static int
check_operand(const struct rung *rung, const struct operand *operand, const struct operand *first, const char *what)
{
    bool on_device = operand->place == PLACE_DEVICE;
    if (on_device != (rung->kind == RUNG_DEVICE))
        PyErr_Format(PyExc_TypeError, "%s: a %s rung takes %s, and %s is none", rung->name, kind_name[rung->kind],
                     rung->kind == RUNG_DEVICE ? "DeviceArrays" : "NumPy arrays", what);
    else if (operand->dtype != first->dtype || operand->size != first->size)
        PyErr_Format(PyExc_ValueError, "%s has %zu elements of %s where a has %zu of %s", what, operand->size,
                     dtype_table[operand->dtype].name, first->size, dtype_table[first->dtype].name);
    else if (operand->device != first->device)
        PyErr_Format(PyExc_ValueError, "a is on cuda:%d and %s on cuda:%d", first->device, what, operand->device);
    else if (rung->alignment && (uintptr_t)operand->data % rung->alignment)
        PyErr_Format(PyExc_ValueError, "%s: rung %s takes memory aligned to %zu bytes", what, rung->name,
                     rung->alignment);
    else
        return 0;
    return -1;
}

static int
check_call(const struct rung *rung, const struct operand operands[ROLE_COUNT], int block)
{
    const struct operand *a = &operands[ROLE_A], *out = &operands[ROLE_OUT];
    size_t bytes = a->size * dtype_table[a->dtype].itemsize;
    for (int role = 0; role < ROLE_COUNT; role++)
        if (check_operand(rung, &operands[role], a, role_name[role]) < 0)
            return -1;
    if (!(rung->lanes & 1 << dtype_table[a->dtype].lane))
        PyErr_Format(PyExc_TypeError, "rung %s does not take %s", rung->name, dtype_table[a->dtype].name);
    else if (!out->writable)
        PyErr_SetString(PyExc_ValueError, "output array is read-only");
    else if (plan_overlaps_in_part(a->data, out->data, bytes) ||
             plan_overlaps_in_part(operands[ROLE_B].data, out->data, bytes))
        PyErr_SetString(PyExc_ValueError, "out overlaps an input in part");
    else if (block && rung->kind != RUNG_DEVICE)
        PyErr_Format(PyExc_ValueError, "block is for device rungs, and %s is a %s rung", rung->name,
                     kind_name[rung->kind]);
    else if (block < 0 || block % WARP || block > LARGEST_BLOCK)
        PyErr_Format(PyExc_ValueError, "block must be a multiple of 32 up to 1024, not %d", block);
    else
        return 0;
    return -1;
}

/* On out's stream, after what the streams of a and b hold. It is waited for, so nobody need wait for it. */
static int
run_on_device(const struct rung *rung, const struct rung_call *call, const struct operand operands[ROLE_COUNT],
              double *seconds, struct status *status)
{
    for (int role = 0; role < ROLE_OUT; role++)
        if (stream_join(call->device, operands[role].stream, call->stream, status) < 0)
            return -1;
    return rung_time_on_device(rung, call, seconds, status);
}

static int
run_by_host_clock(const struct rung *rung, const struct rung_call *call, double *seconds, struct status *status)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    int failed = rung->run(call, status);
    clock_gettime(CLOCK_MONOTONIC, &end);
    *seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    return failed;
}

const char run_rung_doc[] = PyDoc_STR(
    "run_rung($module, name, a, b, out, /, *, block=0)\n--\n\n"
    "Runs a rung once into out and returns its seconds: of a device rung by CUDA events around the launch, of\n"
    "any other by the host's clock. The operands have one dtype and size: DeviceArrays for a device rung,\n"
    "contiguous NumPy arrays for the others. block is a device rung's threads a block, 0 for its own.\n\n"
    "Raises ValueError for a name that is not in the ladder, a size, alignment or block that the rung does not\n"
    "take, and a read-only out; TypeError for arrays and dtypes that it does not take.");

PyObject *
py_run_rung(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", "", "block", NULL};
    struct module_state *state = PyModule_GetState(module);
    PyObject *objects[ROLE_COUNT];
    struct operand operands[ROLE_COUNT];
    const char *name;
    int block = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sOOO|$i:run_rung", names, &name, &objects[ROLE_A],
                                     &objects[ROLE_B], &objects[ROLE_OUT], &block))
        return NULL;
    const struct rung *rung = rung_named(name);
    if (!rung)
        return PyErr_Format(PyExc_ValueError, "there is no rung %s; vecadd.ladder.names() lists them", name);
    for (int role = 0; role < ROLE_COUNT; role++)
        if (contiguous_operand(state, objects[role], role_name[role], &operands[role]) < 0)
            return NULL;
    if (check_call(rung, operands, block) < 0)
        return NULL;

    const struct operand *a = &operands[ROLE_A], *out = &operands[ROLE_OUT];
    const struct dtype_row *dtype = &dtype_table[a->dtype];
    const struct rung_call call = {.lane = dtype->lane,
                                   .a = a->data,
                                   .b = operands[ROLE_B].data,
                                   .c = out->data,
                                   .n = a->size * dtype->lanes,
                                   .block = (unsigned)block,
                                   .stream = out->stream,
                                   .device = out->device};
    struct status status;
    double seconds;
    PyThreadState *released = PyEval_SaveThread();
    int failed = rung->kind == RUNG_DEVICE ? run_on_device(rung, &call, operands, &seconds, &status)
                                           : run_by_host_clock(rung, &call, &seconds, &status);
    PyEval_RestoreThread(released);
    return failed ? status_raise(state, &status) : PyFloat_FromDouble(seconds);
}

const char poison_doc[] = PyDoc_STR(
    "poison($module, x, /)\n--\n\n"
    "Overwrites the bytes of a contiguous NumPy array or a DeviceArray, so that no check of a result is passed\n"
    "by an earlier one. Raises TypeError for anything else, ValueError for a read-only array.");

PyObject *
py_poison(PyObject *module, PyObject *object)
{
    struct module_state *state = PyModule_GetState(module);
    struct operand x;
    if (contiguous_operand(state, object, "x", &x) < 0)
        return NULL;
    if (!x.writable) {
        PyErr_SetString(PyExc_ValueError, "x is read-only");
        return NULL;
    }
    size_t bytes = x.size * dtype_table[x.dtype].itemsize;
    struct status status;
    int failed = 0;
    PyThreadState *released = PyEval_SaveThread();
    if (x.place == PLACE_DEVICE)
        failed = device_fill(x.device, x.stream, x.data, POISON, bytes, &status);
    else
        memset(x.data, POISON, bytes);
    PyEval_RestoreThread(released);
    return failed ? status_raise(state, &status) : Py_NewRef(Py_None);
}
