/* vecadd._core.HostLimit: the probe of the host's memory. A bench interleaves the probe's rounds with its own. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "host/threads.h"
#include "lab/base/probes.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/operands/operands.h"

struct host_limit {
    PyObject_HEAD;
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

static PyObject *
host_limit_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"a", "b", "out", "threads", NULL};
    struct module_state *state = PyType_GetModuleState(type);
    PyObject *arrays[ROLE_COUNT];
    struct operand operands[ROLE_COUNT];
    int threads = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOO|i:HostLimit", names, &arrays[ROLE_A], &arrays[ROLE_B],
                                     &arrays[ROLE_OUT], &threads) ||
        check_arrays(state, arrays, operands) < 0)
        return NULL;
    if (threads < 0)
        return PyErr_Format(PyExc_ValueError, "threads must be at least 0 (0: all), not %d", threads);
    struct host_limit *self = (struct host_limit *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    atomic_flag_clear(&self->busy);
    self->arrays = PyTuple_Pack(ROLE_COUNT, arrays[ROLE_A], arrays[ROLE_B], arrays[ROLE_OUT]);
    if (!self->arrays)
        goto failed;

    const struct operand *a = &operands[ROLE_A];
    size_t words = a->size * dtype_table[a->dtype].itemsize / WORD;
    struct status status;
    self->probe = limits_host_open(a->data, operands[ROLE_B].data, operands[ROLE_OUT].data, words,
                                   threads ? threads : threads_available(), &status);
    if (self->probe)
        return (PyObject *)self;
    status_raise(state, &status);
failed:
    Py_DECREF(self);
    return NULL;
}

static void
host_limit_dealloc(struct host_limit *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    if (self->probe)
        limits_host_close(self->probe);
    Py_XDECREF(self->arrays);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *
host_limit_round(struct host_limit *self, PyObject *Py_UNUSED(none))
{
    if (atomic_flag_test_and_set(&self->busy))
        return PyErr_Format(PyExc_RuntimeError, "another thread is in a round of this probe");
    const double seconds = WITHOUT_GIL(limits_host_round(self->probe));
    atomic_flag_clear(&self->busy);
    return PyFloat_FromDouble(seconds);
}

PyDoc_STRVAR(host_limit_doc,
             "HostLimit(a, b, out, threads=0)\n--\n\n"
             "A probe of the best rate at which words can be added over three contiguous NumPy arrays\n"
             "of one dtype and size, on up to `threads` threads (0: all that an addition may use). Every\n"
             "round overwrites out.");

PyTypeObject *
host_limit_make_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"round", (PyCFunction)host_limit_round, METH_NOARGS,
         PyDoc_STR("round($self, /)\n--\n\nThe best seconds of one pass over threads, partitions and kinds of store.")},
        {NULL, NULL, 0, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, (void *)host_limit_doc},
        {Py_tp_new, host_limit_new},
        {Py_tp_dealloc, host_limit_dealloc},
        {Py_tp_methods, methods},
        {0, NULL},
    };
    static PyType_Spec spec = {
        .name = "vecadd._core.HostLimit",
        .basicsize = sizeof(struct host_limit),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
