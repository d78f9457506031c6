/* A device rung's launch, computed without launching, for the tables, the model and the profile. */
#include <string.h>

#include "gpu/device.h"
#include "lab/ladder/device_rung.h"
#include "py/base/errors.h"
#include "py/base/methods.h"
#include "py/lab/matrix_arguments.h"
#include "py/lab/rung_arguments.h"

static PyObject *
triple(const unsigned xyz[3])
{
    return Py_BuildValue("(III)", xyz[0], xyz[1], xyz[2]);
}

/* The dtype of that name, or NULL with a TypeError. */
static const struct dtype_row *
dtype_row_named(const char *name)
{
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        if (strcmp(dtype_table[dtype].name, name) == 0)
            return &dtype_table[dtype];
    PyErr_Format(PyExc_TypeError, "%s is no dtype that vecadd adds; vecadd._core.DTYPES lists them", name);
    return NULL;
}

/* `size` as the call's number of components, or for a matrix rung as its extents. */
static int
size_from(const struct rung *rung, const struct dtype_row *dtype, PyObject *size, struct rung_call *call)
{
    if (rung->kind == RUNG_MATRIX)
        return matrix_shape_from(rung, size, call);
    const Py_ssize_t n = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    if (n == -1 && PyErr_Occurred())
        return -1;
    if (n < 0 || (size_t)n > PY_SSIZE_T_MAX / dtype->itemsize) {
        PyErr_Format(PyExc_ValueError, "n must be a number of elements that memory can hold, not %zd", n);
        return -1;
    }
    call->n = (size_t)n * dtype->components;
    return 0;
}

static int
check_subject(const struct rung *rung, const struct dtype_row *dtype)
{
    if (!rung->launch)
        PyErr_Format(PyExc_ValueError, "rung %s is a %s rung, and only a device or matrix rung is a kernel to look at",
                     rung->name, rung_kind_name[rung->kind]);
    else if (!rung_takes(rung, (enum dtype)(dtype - dtype_table)))
        PyErr_Format(PyExc_TypeError, "rung %s does not take %s", rung->name, dtype->name);
    else
        return 0;
    return -1;
}

const char rung_facts_doc[] = PyDoc_STR(
    "rung_facts($module, name, dtype, n, /, *, block=0, params={}, device=0)\n--\n\n"
    "How a device rung would be launched for n elements of a dtype (a name of DTYPES) at aligned addresses, or a\n"
    "matrix rung for n = (rows, columns) of its matrix, and for n = (rows, columns, inner) of a product whose\n"
    "factors have inner columns and inner rows; and what the kernel takes. Queues nothing. A dict: registers and\n"
    "local (bytes) of a thread; static_shared and\n"
    "dynamic_shared (bytes) of a block; grid and block, (x, y, z); launches, how many kernels a run queues (0 for\n"
    "no element: all else is 0 then; of several the first is described); active_blocks, those that a\n"
    "multiprocessor holds at once, by cudaOccupancyMaxActiveBlocksPerMultiprocessor; occupancy, their warps as a\n"
    "share of the most it can hold; waves, the grid's blocks over those that the device holds at once;\n"
    "loads_in_flight and bytes_per_load of a thread.\n\n"
    "Raises what run_rung raises, and ValueError for a negative n and for a rung of another kind.");

PyObject *
py_rung_facts(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"", "", "", "block", "params", "device", NULL};
    const char *name, *dtype_name;
    PyObject *size;
    int block = 0, device = 0;
    PyObject *params = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "ssO|$iO!i:rung_facts", names, &name, &dtype_name, &size,
                                     &block, &PyDict_Type, &params, &device))
        return NULL;
    const struct rung *rung = rung_from_name(name);
    const struct dtype_row *dtype = rung ? dtype_row_named(dtype_name) : NULL;
    struct rung_call call = {.component = dtype ? dtype->component : 0, .device = device};
    if (!dtype || check_subject(rung, dtype) < 0 || size_from(rung, dtype, size, &call) < 0 ||
        rung_choices_from(rung, block, params, &call) < 0)
        return NULL;

    struct rung_facts facts;
    struct status status;
    PyThreadState *released = PyEval_SaveThread();
    int failed = device_check_ordinal(device, &status) < 0 || rung_facts(rung, &call, &facts, &status) < 0;
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(PyModule_GetState(module), &status);
    const bool queued = facts.launch.launches > 0;
    /* An addition to what c holds loads that too; the row's number is that of its usual parameters. */
    const int loads =
        (int)rung->loads_in_flight + (rung_leaves(rung, call.params) == SUM_ADDED) - (rung->sum == SUM_ADDED);
    return Py_BuildValue("{s:i,s:n,s:n,s:n,s:N,s:N,s:I,s:i,s:d,s:d,s:i,s:I}", "registers", facts.registers,
                         "static_shared", (Py_ssize_t)facts.static_shared, "dynamic_shared",
                         (Py_ssize_t)facts.launch.shared, "local", (Py_ssize_t)facts.local, "grid",
                         triple(facts.launch.grid), "block", triple(facts.launch.block), "launches",
                         facts.launch.launches, "active_blocks", facts.active_blocks, "occupancy", facts.occupancy,
                         "waves", facts.waves, "loads_in_flight", queued ? loads : 0, "bytes_per_load",
                         queued ? rung_bytes_per_load(rung, dtype->component) : 0);
}
