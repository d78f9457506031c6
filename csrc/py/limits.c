/* The probes of csrc/limits/ from Python: what the host, the device and the link can do at best. */
#include <stdatomic.h>
#include <stdint.h>

#include "device.h"
#include "errors.h"
#include "methods.h"
#include "operand_from.h"
#include "probes.h"
#include "threads.h"

struct host_limit {
    PyObject_HEAD;
    struct limits_host *probe;
    PyObject *arrays; /* a tuple: the probe works on their memory */
    atomic_flag busy; /* one round at a time: they share the arrays */
};

enum { WORD = 4 }; /* bytes that the probe adds at once */

/* Three ndarrays of one dtype and size, of a word at least, the last one writable. */
static int
check_arrays(struct module_state *state, PyObject *const arrays[ROLE_COUNT], struct operand operands[ROLE_COUNT])
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        struct operand *operand = &operands[role];
        if (!PyArray_CheckExact(arrays[role]) || !host_operand(state, (PyArrayObject *)arrays[role], operand)) {
            PyErr_Format(PyExc_TypeError, "%s must be a contiguous and aligned NumPy array of a dtype that vecadd adds",
                         role_name[role]);
            return -1;
        }
        if (operand->dtype != operands->dtype || operand->size != operands->size ||
            operand->size * dtype_table[operand->dtype].itemsize < WORD || (uintptr_t)operand->data % WORD) {
            PyErr_SetString(PyExc_ValueError, "the arrays must have one dtype and size, be aligned to 4 bytes and hold "
                                              "as many at least");
            return -1;
        }
    }
    if (operands[ROLE_OUT].writable)
        return 0;
    PyErr_SetString(PyExc_ValueError, "output array is read-only");
    return -1;
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
    if (atomic_flag_test_and_set(&self->busy)) {
        PyErr_SetString(PyExc_RuntimeError, "another thread is in a round of this probe");
        return NULL;
    }
    PyThreadState *released = PyEval_SaveThread();
    double seconds = limits_host_round(self->probe);
    PyEval_RestoreThread(released);
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

enum { ROUNDS = 7 }; /* of the probes whose rounds nobody chooses */

struct probe_arguments {
    int device;
    Py_ssize_t bytes;
    int rounds;
};

static int
parse_probe(PyObject *arguments, PyObject *keywords, const char *format, struct probe_arguments *parsed)
{
    static char *names[] = {"device", "nbytes", "rounds", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, names, &parsed->device, &parsed->bytes,
                                     &parsed->rounds))
        return -1;
    if (parsed->device >= 0 && parsed->bytes > 0 && parsed->rounds > 0)
        return 0;
    PyErr_SetString(PyExc_ValueError, "device must be at least 0, nbytes and rounds at least 1");
    return -1;
}

/* The format is "i:NAME". */
static int
parse_device(PyObject *arguments, PyObject *keywords, const char *format, int *device)
{
    static char *names[] = {"device", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, names, device))
        return -1;
    if (*device >= 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "device must be at least 0, not %d", *device);
    return -1;
}

const char device_limits_doc[] = PyDoc_STR(
    "device_limits($module, device, nbytes, rounds)\n--\n\n"
    "The device memory's rates over nbytes in bytes a second, best of `rounds`: a dict of 'read' and 'write',\n"
    "of 'copy', half of whose bytes are read, and of 'l2_read' and 'l2_write' over a quarter of the L2.");

PyObject *
py_device_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    struct probe_arguments probe;
    struct status status;
    struct device_facts facts;
    struct memory_rates memory, l2;
    if (parse_probe(arguments, keywords, "ini:device_limits", &probe) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = device_facts(probe.device, &facts, &status);
    if (!failed)
        failed = limits_device(probe.device, (size_t)probe.bytes, probe.rounds, &memory, &status);
    if (!failed)
        failed = limits_l2(probe.device, facts.l2 / 4, probe.rounds, &l2, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d}", "read", memory.read, "write", memory.write, "copy", memory.copy,
                         "l2_read", l2.read, "l2_write", l2.write);
}

const char link_limits_doc[] = PyDoc_STR(
    "link_limits($module, device, nbytes, rounds)\n--\n\n"
    "The rates of copies of nbytes between page-locked host memory and the device in bytes a second, best of\n"
    "`rounds`: a dict of 'to_device', 'to_host' and 'both' at once in sum. Beside them seconds of the host: 'copy', of "
    "a\n"
    "copy of a few bytes that it waits for, 'queued_copy', of queueing one, 'stream', of making and destroying a "
    "stream.");

PyObject *
py_link_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    struct probe_arguments probe;
    struct status status;
    struct link_limits link;
    if (parse_probe(arguments, keywords, "ini:link_limits", &probe) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_link(probe.device, (size_t)probe.bytes, probe.rounds, &link, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d}", "to_device", link.to_device, "to_host", link.to_host, "both",
                         link.both, "copy", link.copy, "queued_copy", link.queued_copy, "stream", link.stream);
}

const char device_latency_doc[] = PyDoc_STR(
    "device_latency($module, device)\n--\n\n"
    "Seconds of one load that the next one waits for, a dict: 'l1', 'l2' and 'dram' by where it is found; 'page', in\n"
    "the L2 but in a page that was not used for long; 'stream', of a round of a block that reads two arrays side by\n"
    "side from DRAM, a word a thread; and\n"
    "'atomic', seconds of one atomic addition to an address that a block's threads all add to.");

PyObject *
py_device_latency(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    int device;
    struct status status;
    struct memory_latency latency;
    if (parse_device(arguments, keywords, "i:device_latency", &device) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_latency(device, ROUNDS, &latency, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d}", "l1", latency.l1, "l2", latency.l2, "page", latency.page, "dram",
                         latency.dram, "stream", latency.stream, "atomic", latency.atomic);
}

const char launch_limits_doc[] = PyDoc_STR(
    "launch_limits($module, device)\n--\n\n"
    "Seconds, a dict: 'kernel', an empty kernel by the clock of the device rungs; 'block', each block that an\n"
    "empty grid starts; 'turnaround', from block to block on a multiprocessor that holds one; 'queued', each further "
    "kernel of a queue; 'node', each further node of a graph; 'issued', what the host takes to queue one.");

PyObject *
py_launch_limits(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    int device;
    struct status status;
    struct launch_limits limits;
    if (parse_device(arguments, keywords, "i:launch_limits", &device) < 0)
        return NULL;
    PyThreadState *released = PyEval_SaveThread();
    int failed = limits_launch(device, 3 * ROUNDS, &limits, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d}", "kernel", limits.kernel, "block", limits.block, "turnaround",
                         limits.turnaround, "queued", limits.queued, "node", limits.node, "issued", limits.issued);
}
