/* The addition of three open files, for vecadd.files. */
#include <errno.h>

#include "files/run.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/operands/dtypes.h"
#include "py/operands/operands.h"

/* One call. The objects are borrowed from its arguments. */
struct call {
    struct files_run run;
    struct module_state *state;
    PyArray_Descr *descr[LAYOUT_OPERANDS];
    PyObject *names[LAYOUT_OPERANDS], *contexts, *tell;
    PyThreadState *released;
    PyObject *error[3]; /* of the first addition by NumPy that failed: type, value, traceback; owned */
};

/* The tile's memory as an array, in the axes of C order. */
static PyObject *
array_of_tile(PyArray_Descr *descr, const struct tiles *tiles, const struct tile *tile, int operand, char *memory)
{
    const int ndim = tiles->layout.ndim;
    ssize_t strides[LAYOUT_DIMENSIONS];
    npy_intp shape[LAYOUT_DIMENSIONS], turned[LAYOUT_DIMENSIONS];
    tile_strides(tiles, tile, operand, strides);
    for (int i = 0; i < ndim; i++) {
        shape[i] = tile->extent[ndim - 1 - i];
        turned[i] = strides[ndim - 1 - i];
    }
    return PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef((PyObject *)descr), ndim, shape, turned,
                                memory, operand == LAYOUT_SUM ? NPY_ARRAY_WRITEABLE : 0, NULL);
}

/* Adds by numpy.add, in the thread's own copy of the caller's context, which numpy.errstate belongs to. While the
 * interpreter finalises, PyGILState_Ensure ends the thread; once it is gone, the call would crash. */
static int
add_by_numpy(void *context, int worker, const struct tiles *tiles, const struct tile *tile,
             char *const at[LAYOUT_OPERANDS])
{
    struct call *call = context;
    if (!Py_IsInitialized())
        return -1;
    const PyGILState_STATE before = PyGILState_Ensure();
    PyObject *array[LAYOUT_OPERANDS], *sum = NULL;
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        array[k] = array_of_tile(call->descr[k], tiles, tile, k, at[k]);
    if (array[0] && array[1] && array[2])
        sum = PyObject_CallMethod(PyList_GetItem(call->contexts, worker), "run", "OOOO", call->state->numpy_add,
                                  array[0], array[1], array[2]);
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        Py_XDECREF(array[k]);
    if (!sum && !call->error[0])
        PyErr_Fetch(&call->error[0], &call->error[1], &call->error[2]);
    else if (!sum)
        PyErr_Clear(); /* the call raises the first one; no interrupt, which only the caller's thread gets */
    const int failed = sum ? 0 : -1;
    Py_XDECREF(sum);
    PyGILState_Release(before);
    return failed;
}

/* Calls the handlers of signals: that of an interrupt raises KeyboardInterrupt, in Python's main thread alone. */
static int
check(void *context)
{
    struct call *call = context;
    if (!Py_IsInitialized()) /* the process ends, and its daemon thread goes on: see add_by_numpy */
        return -1;
    PyEval_RestoreThread(call->released);
    const int failed = PyErr_CheckSignals();
    call->released = PyEval_SaveThread();
    return failed;
}

static int
tell(void *context, size_t done)
{
    struct call *call = context;
    PyEval_RestoreThread(call->released);
    PyObject *result = PyObject_CallFunction(call->tell, "n", (Py_ssize_t)done);
    const int failed = result ? 0 : -1;
    Py_XDECREF(result);
    call->released = PyEval_SaveThread();
    return failed;
}

/* Takes a shape from a tuple of ints that are an array's. Returns the number of axes, or -1 with an exception set. */
static int
shape_from(PyObject *tuple, ssize_t shape[LAYOUT_DIMENSIONS])
{
    const Py_ssize_t ndim = PyTuple_Size(tuple);
    if (ndim > LAYOUT_DIMENSIONS)
        PyErr_Format(PyExc_ValueError, "%zd axes: an array has at most %d", ndim, LAYOUT_DIMENSIONS);
    if (ndim < 0 || ndim > LAYOUT_DIMENSIONS)
        return -1;
    for (Py_ssize_t i = 0; i < ndim; i++) {
        shape[i] = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
        if (shape[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return (int)ndim;
}

/* Fills in layout, item sizes and dtypes. Returns 0, or -1 with an exception set. */
static int
describe(struct call *call, PyObject *const shapes[LAYOUT_OPERANDS], const int fortran[LAYOUT_OPERANDS])
{
    struct tiles *tiles = &call->run.tiles;
    ssize_t shape[LAYOUT_OPERANDS][LAYOUT_DIMENSIONS], strides[LAYOUT_OPERANDS][LAYOUT_DIMENSIONS];
    struct layout_view views[LAYOUT_OPERANDS];
    struct tile_adder *adder = &call->run.adder;
    struct status status;
    bool ours = true;
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        const int ndim = shape_from(shapes[k], shape[k]);
        if (ndim < 0)
            return -1;
        const int dtype = dtype_of_descr(call->state, call->descr[k]);
        if (dtype < 0 && PyErr_Occurred())
            return -1;
        ours = ours && dtype >= 0;
        adder->dtype[k] = (enum dtype)dtype;
        tiles->itemsize[k] = (size_t)PyDataType_ELSIZE(call->descr[k]);
        ssize_t step = (ssize_t)tiles->itemsize[k];
        for (int i = 0; i < ndim; i++) {
            const int axis = fortran[k] ? i : ndim - 1 - i;
            strides[k][axis] = step;
            step *= shape[k][axis];
        }
        views[k] = (struct layout_view){ndim, shape[k], strides[k], tiles->itemsize[k]};
    }
    layout_make(&tiles->layout, views[LAYOUT_SUM].ndim, shape[LAYOUT_SUM], views);
    if (ours && tile_adder_schedule(adder, tiles, &status) < 0)
        return fail_with(call->state, &status);
    return 0;
}

/* Sets the exception that says why the sum is not whole. That of the caller's own, an interrupt or one of `tell`, comes
 * before what a thread of ours met meanwhile. */
static void
raise_outcome(struct call *call, const struct files_outcome *outcome)
{
    if (PyErr_Occurred()) {
        for (int i = 0; i < 3; i++)
            Py_CLEAR(call->error[i]);
    } else if (call->error[0]) {
        PyErr_Restore(call->error[0], call->error[1], call->error[2]);
    } else if (outcome->error == FILES_CUT_SHORT) {
        PyErr_Format(PyExc_OSError, "%S was cut short while it was read", call->names[outcome->operand]);
    } else if (outcome->error != FILES_ENDED) {
        errno = outcome->error;
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError,
                                             outcome->operand < 0 ? NULL : call->names[outcome->operand]);
    }
}

static PyObject *
run_call(struct call *call)
{
    files_prepare(&call->run);
    char *memory = PyMem_Malloc(call->run.memory); /* Python's, which tracemalloc counts */
    if (!memory)
        return PyErr_NoMemory();
    call->released = PyEval_SaveThread();
    const struct files_outcome outcome = files_run(&call->run, memory);
    PyEval_RestoreThread(call->released);
    PyMem_Free(memory);
    if (outcome.error)
        raise_outcome(call, &outcome);
    else
        give_floating_errors(outcome.flags);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* Takes the arguments. Returns 0, or -1 with an exception set. */
static int
parse(struct call *call, PyObject *arguments, PyObject *shapes[], int fortran[])
{
    struct files_run *run = &call->run;
    long long offset[LAYOUT_OPERANDS];
    Py_ssize_t window;
    int adds;
    if (!PyArg_ParseTuple(arguments, "(iii)(LLL)(O!O!O!)(O!O!O!)(ppp)(UUU)nO!pO:add_files", &run->descriptor[0],
                          &run->descriptor[1], &run->descriptor[2], &offset[0], &offset[1], &offset[2],
                          &PyArrayDescr_Type, &call->descr[0], &PyArrayDescr_Type, &call->descr[1], &PyArrayDescr_Type,
                          &call->descr[2], &PyTuple_Type, &shapes[0], &PyTuple_Type, &shapes[1], &PyTuple_Type,
                          &shapes[2], &fortran[0], &fortran[1], &fortran[2], &call->names[0], &call->names[1],
                          &call->names[2], &window, &PyList_Type, &call->contexts, &adds, &call->tell))
        return -1;
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        run->offset[k] = offset[k];
    run->window = window > 0 ? (size_t)window : 0;
    run->threads = (int)PyList_Size(call->contexts);
    run->moves = !adds;
    run->check = check;
    run->add = add_by_numpy;
    run->tell = call->tell == Py_None ? NULL : tell;
    run->context = call;
    return 0;
}

PyObject *
py_add_files(PyObject *module, PyObject *arguments)
{
    PyObject *shapes[LAYOUT_OPERANDS], *result = NULL;
    int fortran[LAYOUT_OPERANDS];
    struct call *call = PyMem_Calloc(1, sizeof *call); /* not on the stack: see files_run */
    if (!call)
        return PyErr_NoMemory();
    call->state = PyModule_GetState(module);
    if (parse(call, arguments, shapes, fortran) == 0 && describe(call, shapes, fortran) == 0)
        result = run_call(call);
    PyMem_Free(call);
    return result;
}
