/* One judged call from Python: somebody else's function, or a rung, on operands that it does not own. */
#include "base/util.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "lab/ladder/device_rung.h"
#include "lab/ladder/trial.h"
#include "py/base/methods.h"
#include "py/base/python.h"
#include "py/lab/rung_arguments.h"
#include "py/operands/device_array.h"

enum { MOST_POKES = 16 };

/* Borrows all that it points to. */
struct judged {
    struct device_array *memory, *versions;
    PyObject *contestant, *convert;
    const struct rung *rung; /* NULL where the contestant is a function */
    Py_ssize_t size;         /* elements of each array */
    size_t pokes[MOST_POKES];
    double host; /* seconds until the function has returned */
    struct trial trial;
};

/* The arrays of one version, NULL for -1. */
static int
version_at(const struct judged *judged, int index, const char *name, unsigned char **arrays)
{
    const Py_ssize_t count = judged->versions->shape[0];
    *arrays = NULL;
    if (index >= count || index < -1)
        return refuse(PyExc_ValueError, "%s is %d of %zd versions", name, index, count);
    if (index >= 0)
        *arrays = (unsigned char *)judged->versions->data + (size_t)index * TRIAL_ARRAYS * judged->trial.bytes;
    return 0;
}

static int
set_start(struct judged *judged, const Py_ssize_t start[TRIAL_ARRAYS])
{
    struct trial *trial = &judged->trial;
    size_t free_from = 0;
    for (int array = 0; array < TRIAL_ARRAYS; array++) {
        if (start[array] < 0 || (size_t)start[array] * trial->itemsize < free_from)
            return refuse(PyExc_ValueError, "a, b and out must follow each other in memory");
        trial->start[array] = (size_t)start[array] * trial->itemsize;
        free_from = trial->start[array] + trial->bytes;
    }
    return free_from <= trial->memory_bytes ? 0 : refuse(PyExc_ValueError, "a, b and out do not fit in memory");
}

static int
set_pokes(struct judged *judged, PyObject *pokes)
{
    const Py_ssize_t count = PyTuple_Size(pokes);
    if (count > MOST_POKES)
        return refuse(PyExc_ValueError, "there are more than 16 pokes");
    for (Py_ssize_t i = 0; i < count; i++) {
        const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(pokes, i));
        if (at == -1 && PyErr_Occurred())
            return -1;
        if (at < 0 || at >= judged->size)
            return refuse(PyExc_ValueError, "a poke is not the index of an element");
        judged->pokes[i] = (size_t)at;
    }
    judged->trial.pokes = judged->pokes;
    judged->trial.poke_count = (size_t)count;
    return 0;
}

/* A contiguous DeviceArray with that many dimensions, 0 for any; NULL with a TypeError. */
static struct device_array *
array_of(const struct module_state *state, PyObject *object, int ndim, const char *name)
{
    struct device_array *array = (struct device_array *)object;
    if (Py_TYPE(object) == state->device_array_type && array->contiguous && (!ndim || array->ndim == ndim))
        return array;
    PyErr_Format(PyExc_TypeError, "%s must be a contiguous DeviceArray%s", name, ndim ? " of 3 dimensions" : "");
    return NULL;
}

static int
set_memory(const struct module_state *state, struct judged *judged, PyObject *memory, PyObject *versions,
           PyObject *flush)
{
    struct trial *trial = &judged->trial;
    struct device_array *flushed = NULL;
    if (!(judged->memory = array_of(state, memory, 0, "memory")) ||
        !(judged->versions = array_of(state, versions, 3, "versions")) ||
        (flush != Py_None && !(flushed = array_of(state, flush, 0, "flush"))))
        return -1;
    if (judged->versions->dtype != judged->memory->dtype || judged->versions->shape[1] != TRIAL_ARRAYS ||
        judged->versions->size == 0)
        return refuse(PyExc_ValueError, "versions must have a, b and their sum for each version, in memory's dtype");
    judged->size = judged->versions->shape[2];
    trial->device = judged->memory->device;
    trial->itemsize = dtype_table[judged->memory->dtype].itemsize;
    trial->bytes = (size_t)judged->size * trial->itemsize;
    trial->memory = judged->memory->data;
    trial->memory_bytes = device_array_nbytes(judged->memory);
    trial->flush = flushed ? flushed->data : NULL;
    trial->flush_bytes = flushed ? device_array_nbytes(flushed) : 0;
    return 0;
}

static PyObject *
view_of(const struct judged *judged, int array)
{
    void *data = judged->trial.memory + judged->trial.start[array];
    PyObject *view = device_array_view(judged->memory, judged->memory->dtype, data, 1, &judged->size, NULL);
    if (!view || judged->convert == Py_None)
        return view;
    PyObject *converted = PyObject_CallFunctionObjArgs(judged->convert, view, NULL);
    Py_DECREF(view);
    return converted;
}

static int
launch(const struct judged *judged, struct status *status)
{
    const struct trial *trial = &judged->trial;
    const struct dtype_row *dtype = &dtype_table[judged->memory->dtype];
    struct rung_call call = {.component = dtype->component,
                             .a = trial->memory + trial->start[0],
                             .b = trial->memory + trial->start[1],
                             .c = trial->memory + trial->start[2],
                             .n = (size_t)judged->size * dtype->components,
                             .device = trial->device};
    struct device_before before;
    rung_usual_params(judged->rung, &call);
    if (device_make_current(trial->device, &before, status) < 0)
        return -1;
    int failed = rung_check_capability(judged->rung, trial->device, status);
    const int error = failed ? 0 : judged->rung->launch(&call);
    if (error)
        failed = device_status(status, error, judged->rung->name);
    device_make_current_again(&before);
    return failed;
}

/* Calls the function with what was made of the arrays before the trial began. Returns 0, or -1 with an exception. */
static int
call(struct judged *judged, PyObject *const arrays[TRIAL_ARRAYS])
{
    const double begin = now_seconds();
    PyObject *result = PyObject_CallFunctionObjArgs(judged->contestant, arrays[0], arrays[1], arrays[2], NULL);
    judged->host = now_seconds() - begin;
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static PyObject *
count_as_tuple(const struct trial_count *count)
{
    return Py_BuildValue("(KKKKK)", count->wrong, count->first, count->unwritten, count->before, count->last);
}

static PyObject *
result_as_dict(const struct judged *judged, const struct trial_result *result)
{
    PyObject *regions = PyList_New(0);
    for (int i = 0; regions && i < TRIAL_REGIONS; i++)
        regions = list_with(regions, count_as_tuple(&result->regions[i]));
    if (!regions)
        return NULL;
    return Py_BuildValue("{s:d,s:d,s:N,s:N,s:N,s:n,s:N}", "seconds", result->seconds, "host", judged->host, "regions",
                         regions, "at_rest", count_as_tuple(&result->at_rest), "later", count_as_tuple(&result->later),
                         "persisting", (Py_ssize_t)result->persisting, "unordered", PyBool_FromLong(result->unordered));
}

static PyObject *
run(const struct module_state *state, struct judged *judged, PyObject *const arrays[TRIAL_ARRAYS])
{
    struct trial_result result;
    struct status status;
    PyThreadState *released = PyEval_SaveThread();
    int failed = trial_begin(&judged->trial, &status);
    if (failed == 0 && judged->rung && (failed = launch(judged, &status)))
        trial_close(&judged->trial);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(state, &status);
    if (!judged->rung && call(judged, arrays) < 0) {
        released = PyEval_SaveThread();
        trial_close(&judged->trial);
        PyEval_RestoreThread(released);
        return NULL;
    }
    failed = WITHOUT_GIL(trial_end(&judged->trial, &result, &status));
    return failed ? status_raise(state, &status) : result_as_dict(judged, &result);
}

static int
set_contestant(struct judged *judged)
{
    const char *name;
    if (!PyUnicode_Check(judged->contestant))
        return 0;
    if (!(name = PyUnicode_AsUTF8AndSize(judged->contestant, NULL)) || !(judged->rung = rung_from_name(name)))
        return -1;
    if (judged->rung->kind == RUNG_DEVICE && rung_takes(judged->rung, judged->memory->dtype))
        return 0;
    return refuse(PyExc_TypeError, "%s is not a device rung for %s", name, dtype_table[judged->memory->dtype].name);
}

PyObject *
py_judge_call(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"",      "",      "",      "",      "convert",  "now",  "before", "last",
                            "donor", "pokes", "flush", "delay", "blockade", "bare", NULL};
    struct module_state *state = PyModule_GetState(module);
    struct judged judged = {.convert = Py_None};
    PyObject *memory, *versions, *flush = Py_None, *pokes = NULL;
    Py_ssize_t start[TRIAL_ARRAYS];
    int now = 0, before = -1, last = -1, donor = -1, bare = 0;
    unsigned char *arrays[4];
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO(nnn)O|$OiiiiO!OIIp:judge_call", names, &judged.contestant,
                                     &memory, &start[0], &start[1], &start[2], &versions, &judged.convert, &now,
                                     &before, &last, &donor, &PyTuple_Type, &pokes, &flush, &judged.trial.delay,
                                     &judged.trial.blockade_cycles, &bare))
        return NULL;
    if (set_memory(state, &judged, memory, versions, flush) < 0 || set_start(&judged, start) < 0 ||
        set_contestant(&judged) < 0 || version_at(&judged, now, "now", &arrays[0]) < 0 ||
        version_at(&judged, before, "before", &arrays[1]) < 0 || version_at(&judged, last, "last", &arrays[2]) < 0 ||
        version_at(&judged, donor, "donor", &arrays[3]) < 0 || (pokes && set_pokes(&judged, pokes) < 0))
        return NULL;
    if (!arrays[0] || (judged.trial.poke_count && !arrays[3]))
        return PyErr_Format(PyExc_ValueError, "now must be a version, and pokes need a donor");
    judged.trial.now = arrays[0];
    judged.trial.before = arrays[1];
    judged.trial.last = arrays[2];
    judged.trial.donor = arrays[3];
    judged.trial.bare = bare;

    PyObject *given[TRIAL_ARRAYS] = {NULL}, *result = NULL;
    bool made = true;
    for (int array = 0; !judged.rung && made && array < TRIAL_ARRAYS; array++)
        made = (given[array] = view_of(&judged, array)) != NULL;
    if (made)
        result = run(state, &judged, given);
    for (int array = 0; array < TRIAL_ARRAYS; array++)
        Py_XDECREF(given[array]);
    return result;
}

static int
repeat_row(const struct device_array *base, const struct device_array *target, Py_ssize_t row, struct status *status)
{
    const size_t itemsize = dtype_table[base->dtype].itemsize;
    const size_t period = (size_t)base->shape[2] * itemsize, bytes = (size_t)target->shape[2] * itemsize;
    unsigned char *to = (unsigned char *)target->data + (size_t)row * bytes;
    const unsigned char *from = (const unsigned char *)base->data + (size_t)row * period;
    size_t done = period < bytes ? period : bytes;
    int failed = device_copy(base->device, device_array_home(base), COPY_WITHIN, to, from, done, status);
    while (failed == 0 && done < bytes) {
        const size_t more = done < bytes - done ? done : bytes - done;
        failed = device_copy(base->device, device_array_home(base), COPY_WITHIN, to + done, to, more, status);
        done += more;
    }
    return failed;
}

PyObject *
py_repeat(PyObject *module, PyObject *arguments)
{
    struct module_state *state = PyModule_GetState(module);
    PyObject *object;
    Py_ssize_t n;
    struct device_array *base;
    if (!PyArg_ParseTuple(arguments, "On:repeat", &object, &n) || !(base = array_of(state, object, 3, "base")))
        return NULL;
    if (n < 1 || base->size == 0)
        return PyErr_Format(PyExc_ValueError, "n must be at least 1, and base must not be empty");
    const Py_ssize_t shape[] = {base->shape[0], base->shape[1], n};
    const struct later_stream home = device_array_later(base);
    PyObject *made = device_array_new(state, base->device, &home, base->dtype, 3, shape, NULL);
    struct status status;
    int failed = 0;
    PyThreadState *released = PyEval_SaveThread();
    for (Py_ssize_t row = 0; made && failed == 0 && row < shape[0] * shape[1]; row++)
        failed = repeat_row(base, (struct device_array *)made, row, &status);
    PyEval_RestoreThread(released);
    if (failed) {
        Py_DECREF(made);
        return status_raise(state, &status);
    }
    return made;
}
