/* The probe of the host's memory. A bench interleaves the probe's rounds with its own. */
#include <stdatomic.h>
#include <stdint.h>

#include "host/limit.h"
#include "host/schedule.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/operands/operands.h"

#define CAPSULE "vecadd.host_limit"

struct host_limit {
    struct limits_host *probe;
    PyObject *arrays; /* a tuple, which keeps the probe's memory */
    atomic_flag busy; /* one round at a time, because rounds share the arrays */
};

enum { WORD = 4 }; /* bytes that the probe adds at a time */

/* Checks for three ndarrays of one dtype and size, of at least a word, the last one writable. */
static int
check_arrays(struct module_state *state, PyObject *const arrays[ROLE_COUNT], struct operand operands[ROLE_COUNT])
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        struct operand *operand = &operands[role];
        if (!PyArray_CheckExact(arrays[role]) || !host_operand(state, (PyArrayObject *)arrays[role], operand))
            return refuse(PyExc_TypeError,
                          "%s must be a contiguous and aligned NumPy array of a dtype that vecadd adds",
                          role_name[role]);
        if (operand->dtype != operands->dtype || operand->size != operands->size ||
            operand->size * dtype_table[operand->dtype].itemsize < WORD || (uintptr_t)operand->data % WORD)
            return refuse(PyExc_ValueError, "the arrays must have one dtype and one size of at least 4 bytes, and be "
                                            "aligned to 4 bytes");
    }
    if (operands[ROLE_OUT].writable)
        return 0;
    return refuse(PyExc_ValueError, "output array is read-only");
}

static void
host_limit_free(PyObject *capsule)
{
    struct host_limit *limit = PyCapsule_GetPointer(capsule, CAPSULE);
    if (limit->probe)
        limits_host_close(limit->probe);
    Py_XDECREF(limit->arrays);
    PyMem_Free(limit);
}

PyObject *
py_host_limit(PyObject *module, PyObject *arguments)
{
    struct module_state *state = PyModule_GetState(module);
    PyObject *arrays[ROLE_COUNT];
    struct operand operands[ROLE_COUNT];
    struct status status;
    int threads = 0;
    if (!PyArg_ParseTuple(arguments, "OOO|i:host_limit", &arrays[ROLE_A], &arrays[ROLE_B], &arrays[ROLE_OUT],
                          &threads) ||
        check_arrays(state, arrays, operands) < 0)
        return NULL;
    if (threads < 0)
        return PyErr_Format(PyExc_ValueError, "threads must be at least 0 (0: all), not %d", threads);
    struct host_limit *limit = PyMem_Calloc(1, sizeof *limit);
    if (!limit)
        return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(limit, CAPSULE, host_limit_free);
    if (!capsule) {
        PyMem_Free(limit);
        return NULL;
    }
    atomic_flag_clear(&limit->busy);
    limit->arrays = PyTuple_Pack(ROLE_COUNT, arrays[ROLE_A], arrays[ROLE_B], arrays[ROLE_OUT]);
    const struct operand *a = &operands[ROLE_A];
    const size_t words = a->size * dtype_table[a->dtype].itemsize / WORD;
    if (limit->arrays && (limit->probe = limits_host_open(a->data, operands[ROLE_B].data, operands[ROLE_OUT].data,
                                                          words, threads ? threads : threads_available(), &status)))
        return capsule;
    if (limit->arrays)
        status_raise(state, &status);
    Py_DECREF(capsule);
    return NULL;
}

PyObject *
py_host_limit_round(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    struct host_limit *limit = PyCapsule_GetPointer(capsule, CAPSULE);
    if (!limit)
        return NULL;
    if (atomic_flag_test_and_set(&limit->busy))
        return PyErr_Format(PyExc_RuntimeError, "another thread is in a round of this probe");
    const double seconds = WITHOUT_GIL(limits_host_round(limit->probe));
    atomic_flag_clear(&limit->busy);
    return PyFloat_FromDouble(seconds);
}
