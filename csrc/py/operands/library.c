#include "py/operands/library.h"

#include <stdatomic.h>

#include "gpu/stream.h"
#include "py/base/python.h"
#include "py/operands/dtypes.h"
#include "py/operands/where.h"

/* Borrowed: the module's state holds it. */
static PyObject *
library_of_function(struct module_state *state)
{
    PyObject *known = state->library_of;
    if (known)
        return known;
    PyObject *module = PyImport_ImportModule("vecadd.interop");
    PyObject *function = module ? PyObject_GetAttrString(module, "library_of") : NULL;
    Py_XDECREF(module);
    if (function && !atomic_compare_exchange_strong(&state->library_of, &known, function)) {
        Py_DECREF(function);
        return known;
    }
    return function;
}

/* Whether the type alone tells that an object is no device array: the usual operands beside an ndarray, left to
 * numpy.add. Returns 1, 0, or -1 with an exception set. */
static int
plainly_on_host(const struct module_state *state, PyObject *object)
{
    if (PyArray_Check(object) || PyList_Check(object) || PyTuple_Check(object))
        return 1;
    const int has_rules = PyArray_IsAnyScalar(object) ? scalar_has_rules(state, object) : 1;
    return has_rules < 0 ? -1 : !has_rules;
}

int
interop_library(struct module_state *state, PyObject *object, PyObject **library)
{
    PyObject *library_of = library_of_function(state);
    *library = library_of ? PyObject_CallFunctionObjArgs(library_of, (PyObject *)Py_TYPE(object), NULL) : NULL;
    if (!*library)
        return -1;
    if (Py_IsNone(*library))
        Py_CLEAR(*library);
    return 0;
}

int
interop_is_operand(struct module_state *state, PyObject *object)
{
    static const enum name exports[] = {NAME_CUDA_ARRAY_INTERFACE, NAME_DLPACK_DEVICE};
    PyObject *library, *export;
    const int on_host = plainly_on_host(state, object);
    if (on_host)
        return on_host;
    if (interop_library(state, object, &library) < 0)
        return -1;
    int found = library != NULL;
    Py_XDECREF(library);
    for (size_t i = 0; i < sizeof exports / sizeof *exports && found == 0; i++)
        if ((found = optional_attribute(object, state->names[exports[i]], &export)) > 0)
            Py_DECREF(export);
    return found;
}

int
interop_export(struct module_state *state, PyObject *object, bool writing, PyObject **library, PyObject **exported)
{
    *library = *exported = NULL;
    const int on_host = plainly_on_host(state, object);
    if (on_host)
        return on_host < 0 ? -1 : 0;
    if (interop_library(state, object, library) < 0)
        return -1;
    if (!*library) {
        /* Unknown objects with NumPy's protocol are left to it: it says how they are added. */
        const int has_rules = has_attribute((PyObject *)Py_TYPE(object), state->names[NAME_ARRAY_UFUNC]);
        if (has_rules)
            return has_rules < 0 ? -1 : 0;
        *exported = Py_NewRef(object);
        return 1;
    }
    *exported = PyObject_CallMethod(*library, "export", "OO", object, writing ? Py_True : Py_False);
    const bool left = *exported == Py_NotImplemented;
    if (*exported && !Py_IsNone(*exported) && !left)
        return 1;
    int result = left ? DEVICE_OPERAND_LEFT : *exported ? 0 : -1;
    Py_CLEAR(*exported);
    if (!left)
        Py_CLEAR(*library);
    return result;
}

int
interop_refuse(PyObject *library, PyObject *object, bool writing)
{
    PyObject *why = PyObject_CallMethod(library, "why_left", "(O)O", object, writing ? object : Py_None);
    if (why)
        PyErr_Format(PyExc_RuntimeError,
                     "%S: vecadd.add and add_many leave it to its library, and nothing else takes it", why);
    Py_XDECREF(why);
    return -1;
}

int
interop_current_stream(PyObject *library, int device, void **stream)
{
    if (!library)
        return 0;
    PyObject *handle = PyObject_CallMethod(library, "current_stream", "i", device);
    if (!handle)
        return -1;
    int result = Py_IsNone(handle) ? 0 : stream_from_handle(handle, "the current stream", stream) < 0 ? -1 : 1;
    Py_DECREF(handle);
    return result;
}

PyObject *
interop_no_order(PyObject *library)
{
    return library ? PyObject_GetAttrString(library, "no_order") : PyLong_FromLong(-1);
}

int
interop_says(PyObject *library, const char *flag)
{
    PyObject *answer = library ? PyObject_GetAttrString(library, flag) : Py_NewRef(Py_False);
    int result = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return result;
}

int
interop_void_is(PyObject *library, const char *dtype)
{
    PyObject *names = library ? PyObject_GetAttrString(library, "void_dtypes") : PyTuple_New(0);
    PyObject *name = names ? PyUnicode_FromString(dtype) : NULL;
    const int result = name ? PySequence_Contains(names, name) : -1;
    Py_XDECREF(names);
    Py_XDECREF(name);
    return result;
}

int
interop_order(PyObject *library, enum order_rule *rule)
{
    const int in_c_order = interop_says(library, "sums_in_c_order");
    const int by_first = in_c_order == 0 ? interop_says(library, "sums_as_first") : 0;
    *rule = in_c_order ? ORDER_C : by_first ? ORDER_TORCH : ORDER_NUMPY;
    return in_c_order < 0 || by_first < 0 ? -1 : 0;
}

PyObject *
interop_result_dtype(PyObject *library, PyObject *a, PyObject *b)
{
    return PyObject_CallMethod(library, "result_dtype", "OO", a, b);
}

PyObject *
interop_empty_like(PyObject *library, PyObject *exported, PyObject *stream, PyObject *shape, const char *dtype,
                   PyObject *axes)
{
    stream = stream ? stream : Py_None;
    if (!shape)
        return PyObject_CallMethod(library, "empty_like", "OO", exported, stream);
    return PyObject_CallMethod(library, "empty_like", "OOOsO", exported, stream, shape, dtype, axes);
}

/* Python's and NumPy's numbers, which every library adds to its arrays by its own rules. */
static bool
is_number(PyObject *object)
{
    return PyLong_Check(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object) ||
           PyArray_IsScalar(object, Generic);
}

int
interop_host_library(struct module_state *state, PyObject *const objects[ROLE_COUNT], PyObject **library)
{
    *library = NULL;
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyObject *found, *object = objects[role];
        if (!object || (role != ROLE_OUT && is_number(object)))
            continue;
        const int on_host = plainly_on_host(state, object);
        if (on_host < 0)
            goto failed;
        if (on_host)
            goto none;
        if (interop_library(state, object, &found) < 0)
            goto failed;
        if (!found || (*library && found != *library)) {
            Py_XDECREF(found);
            goto none;
        }
        Py_XDECREF(*library);
        *library = found;
    }
    int has_host_arrays = interop_says(*library, "has_host_arrays");
    if (has_host_arrays > 0)
        return 1;
    if (has_host_arrays < 0)
        goto failed;
none:
    Py_CLEAR(*library);
    return 0;
failed:
    Py_CLEAR(*library);
    return -1;
}

int
interop_record_stream(PyObject *library, PyObject *exported, void *stream)
{
    int wants = interop_says(library, "records_streams");
    if (wants <= 0)
        return wants;
    PyObject *handle = PyLong_FromVoidPtr(stream_of_all_threads(stream)); /* used when the memory is freed */
    PyObject *done = handle ? PyObject_CallMethod(library, "record_stream", "OO", exported, handle) : NULL;
    Py_XDECREF(handle);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int
interop_written(PyObject *count_writes, PyObject *arrays)
{
    PyObject *done = arrays ? PyObject_CallFunctionObjArgs(count_writes, arrays, NULL) : NULL;
    Py_XDECREF(done);
    return done ? 0 : -1;
}

PyObject *
interop_adopt(PyObject *library, PyObject *sum)
{
    int adopts = interop_says(library, "adopts");
    if (adopts == 0)
        return sum;
    PyObject *adopted = adopts > 0 ? PyObject_CallMethod(library, "adopt", "O", sum) : NULL;
    Py_DECREF(sum);
    return adopted;
}

struct descriptor
descriptor_find(PyObject *type, PyObject *name)
{
    struct descriptor result = {.name = Py_NewRef(name)};
    if (!PyErr_Occurred())
        optional_attribute(type, name, &result.object);
    if (result.object && PyType_GetSlot(Py_TYPE(result.object), Py_tp_descr_set))
        result.get = (descrgetfunc)PyType_GetSlot(Py_TYPE(result.object), Py_tp_descr_get);
    if (!result.get)
        Py_CLEAR(result.object);
    return result;
}

void
descriptor_clear(struct descriptor *descriptor)
{
    Py_CLEAR(descriptor->name);
    Py_CLEAR(descriptor->object);
    descriptor->get = NULL;
}
