#include "py/calls/batch_others.h"

#include "py/base/errors.h"
#include "py/base/methods.h"
#include "py/calls/add.h"
#include "py/calls/prepare.h"

void
batch_name_pair(Py_ssize_t pair)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *arguments = value ? PyObject_GetAttrString(value, "args") : NULL;
    PyObject *text =
        arguments && PyTuple_Check(arguments) && PyTuple_Size(arguments) == 1 ? PyTuple_GetItem(arguments, 0) : NULL;
    PyObject *named = NULL;
    if (text && PyUnicode_Check(text)) {
        named = Py_BuildValue("(N)", PyUnicode_FromFormat("pair %zd: %U", pair, text));
        if (named)
            PyObject_SetAttrString(value, "args", named);
    } else if (value) /* NumPy's exception classes keep the arguments of their message */
        named = PyObject_CallMethod(value, "add_note", "N", PyUnicode_FromFormat("pair %zd", pair));
    Py_XDECREF(named);
    Py_XDECREF(arguments);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) { /* an interrupt takes the error's place */
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    } else {
        PyErr_Clear();
        PyErr_Restore(type, value, traceback);
    }
}

PyObject *
batch_object(const struct batch_call *call, enum role role, Py_ssize_t pair)
{
    PyObject *object = call->lists[role] ? PyTuple_GetItem(call->lists[role], pair) : NULL;
    return object && !Py_IsNone(object) ? object : NULL;
}

/* The keyword names of a pair's call of add. Their values follow the three positional arguments in values_of. */
static PyObject *
names_of(const struct module_state *state, const struct batch_call *call)
{
    return call->stream_object ? Py_BuildValue("(O)", state->names[NAME_STREAM]) : PyTuple_New(0);
}

static void
values_of(const struct batch_call *call, Py_ssize_t pair, PyObject *values[ROLE_COUNT + 1])
{
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyObject *object = batch_object(call, (enum role)role, pair);
        values[role] = object ? object : Py_None;
    }
    values[ROLE_COUNT] = call->stream_object;
}

/* Whether the three are arrays and `out` has the dtype of the sum: 1, 0 or -1. */
static int
out_has_sums_dtype(PyObject *const values[ROLE_COUNT])
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (!PyArray_CheckExact(values[role]))
            return 0;
    PyArrayObject *operands[] = {(PyArrayObject *)values[ROLE_A], (PyArrayObject *)values[ROLE_B]};
    PyArray_Descr *sum = PyArray_ResultType(ROLE_OUT, operands, 0, NULL);
    if (!sum)
        return clear_refusal();
    const int type = PyArray_TYPE((PyArrayObject *)values[ROLE_OUT]);
    const bool has = (PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type) || PyTypeNum_ISOBJECT(type)) &&
                     PyArray_EquivTypes(sum, PyArray_DESCR((PyArrayObject *)values[ROLE_OUT]));
    Py_DECREF((PyObject *)sum);
    return has;
}

/* numpy.add with where=False: 1 us for a small pair, and a pass over a large one. */
static PyObject *
add_nowhere(const struct module_state *state, PyObject *const values[ROLE_COUNT])
{
    PyObject *positional = PyTuple_Pack(ROLE_COUNT, values[ROLE_A], values[ROLE_B], values[ROLE_OUT]);
    PyObject *keywords = Py_BuildValue("{s:O}", "where", Py_False);
    PyObject *out = positional && keywords ? PyObject_Call(state->numpy_add, positional, keywords) : NULL;
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return out;
}

/* Raises what numpy.add would raise for what is left to it. Into an `out` of another dtype than the sum's, where=False
 * would convert what `out` holds, and warn of it. */
static int
check_by_numpy(const struct module_state *state, PyObject *const values[ROLE_COUNT])
{
    PyObject *checked = NULL;
    const int fits = out_has_sums_dtype(values);
    if (fits > 0)
        checked = add_nowhere(state, values);
    else if (fits == 0) {
        PyObject *module = PyImport_ImportModule("vecadd._called_by_core");
        if (module)
            checked = PyObject_CallMethod(module, "check_numpy_call", "OOO", values[ROLE_A], values[ROLE_B],
                                          values[ROLE_OUT]);
        Py_XDECREF(module);
    }
    Py_XDECREF(checked);
    return checked ? 0 : -1;
}

/* The same for tensors in host memory. */
static int
check_host_tensors(PyObject *library, PyObject *const values[ROLE_COUNT])
{
    PyObject *module = PyImport_ImportModule("vecadd.interop.host_tensors");
    PyObject *checked =
        module ? PyObject_CallMethod(module, "check", "OOOO", library, values[ROLE_A], values[ROLE_B], values[ROLE_OUT])
               : NULL;
    Py_XDECREF(module);
    Py_XDECREF(checked);
    return checked ? 0 : -1;
}

static int
check_pair(struct module_state *state, PyObject *const values[], PyObject *names)
{
    struct add_arguments arguments;
    struct prepared_call prepared;
    if (add_arguments_parse(state, "add_many", false, values, ROLE_COUNT, names, &arguments) < 0 ||
        call_prepare(state, &arguments, &prepared) < 0)
        return -1;
    int failed = 0;
    if (prepared.kind == CALL_NUMPY)
        failed = check_by_numpy(state, values);
    else if (prepared.kind == CALL_HOST_TENSORS && arguments.objects[ROLE_OUT])
        failed = check_host_tensors(prepared.library, values);
    call_clear(&prepared);
    return failed;
}

int
batch_check_others(struct module_state *state, const struct batch_call *call)
{
    if (call->other_count == 0 || (call->place == PLACE_HOST && !call->lists[ROLE_OUT])) /* new sums can be dropped */
        return 0;
    PyObject *values[ROLE_COUNT + 1], *names = names_of(state, call);
    int failed = !names;
    for (size_t i = 0; i < call->other_count && !failed; i++) {
        values_of(call, call->others[i], values);
        failed = check_pair(state, values, names) < 0;
        if (failed)
            batch_name_pair(call->others[i]);
    }
    Py_XDECREF(names);
    return failed ? -1 : 0;
}

int
batch_run_others(PyObject *module, const struct batch_call *call)
{
    if (call->other_count == 0)
        return 0;
    PyObject *values[ROLE_COUNT + 1], *names = names_of(PyModule_GetState(module), call);
    int failed = !names;
    for (size_t i = 0; i < call->other_count && !failed; i++) {
        Py_ssize_t pair = call->others[i];
        values_of(call, pair, values);
        PyObject *sum = py_add(module, values, ROLE_COUNT, names);
        if (!sum)
            batch_name_pair(pair);
        failed = !sum ||
                 (Py_IsNone(values[ROLE_OUT]) ? PyList_SetItem(call->result, pair, sum) < 0 : (Py_DECREF(sum), false));
    }
    Py_XDECREF(names);
    return failed ? -1 : 0;
}
