#include "py/operands/library.h"

#include <stdatomic.h>

#include "gpu/stream.h"
#include "py/base/python.h"
#include "py/operands/dtypes.h"
#include "py/operands/where.h"

/* Borrowed: the module's state owns it. */
static PyObject *
library_of_function(struct module_state *state)
{
    PyObject *known = state->library_of;
    if (known)
        return known;
    OWNED PyObject *function = imported("vecadd.interop", "library_of");
    return function && atomic_compare_exchange_strong(&state->library_of, &known, function) ? hand_out(&function)
                                                                                            : known;
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

#define LIBRARY_CAPSULE "vecadd.library"

static void
library_free(PyObject *capsule)
{
    struct library *library = PyCapsule_GetPointer(capsule, LIBRARY_CAPSULE);
    Py_XDECREF(library->count_writes);
    PyMem_Free(library);
}

PyObject *
attribute_of(PyObject *object, const char *text)
{
    OWNED PyObject *name = PyErr_Occurred() ? NULL : PyUnicode_FromString(text);
    PyObject *found = NULL;
    if (name)
        optional_attribute(object, name, &found);
    if (found && Py_IsNone(found))
        Py_CLEAR(found);
    return found;
}

static bool
is_set(PyObject *object, const char *name)
{
    OWNED PyObject *value = attribute_of(object, name);
    return value && PyObject_IsTrue(value) > 0;
}

/* Keeps what was read of a key unless another thread has read it meanwhile. Returns what is kept, borrowed for good;
 * NULL with an exception set, also where one was set before. */
static void *
keep_in(PyObject *dict, PyObject *key, PyObject *capsule, const char *name)
{
    OWNED PyObject *kept =
        capsule && !PyErr_Occurred() ? PyObject_CallMethod(dict, "setdefault", "OO", key, capsule) : NULL;
    return kept ? PyCapsule_GetPointer(kept, name) : NULL;
}

/* Reads a Library that is met for the first time. NULL with an exception set. */
static const struct library *
library_read(struct module_state *state, PyObject *object)
{
    static const struct {
        const char *name;
        enum library_flag flag;
    } flags[] = {{"has_exchange_table", LIBRARY_HAS_EXCHANGE_TABLE}, {"has_attributes", LIBRARY_HAS_ATTRIBUTES},
                 {"by_dlpack_only", LIBRARY_BY_DLPACK_ONLY},         {"adopts", LIBRARY_ADOPTS},
                 {"has_host_arrays", LIBRARY_HAS_HOST_ARRAYS},       {"sums_in_c_order", LIBRARY_SUMS_IN_C_ORDER},
                 {"sums_as_first", LIBRARY_SUMS_AS_FIRST},           {"numbers_as_torch", LIBRARY_NUMBERS_AS_TORCH},
                 {"records_streams", LIBRARY_RECORDS_STREAMS},       {"has_bfloat16", LIBRARY_HAS_BFLOAT16}};
    struct library *library = PyMem_Calloc(1, sizeof *library);
    if (!library)
        return PyErr_NoMemory(), NULL;
    OWNED PyObject *capsule = PyCapsule_New(library, LIBRARY_CAPSULE, library_free);
    if (!capsule)
        return PyMem_Free(library), NULL;
    library->object = object; /* the dict's key keeps it */
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        library->flags |= is_set(object, flags[i].name) ? flags[i].flag : 0;
    library->count_writes = attribute_of(object, "count_writes");
    return keep_in(state->libraries, object, capsule, LIBRARY_CAPSULE);
}

int
library_of(struct module_state *state, PyObject *object, const struct library **library)
{
    PyObject *function = library_of_function(state);
    OWNED PyObject *found = function ? PyObject_CallFunctionObjArgs(function, (PyObject *)Py_TYPE(object), NULL) : NULL;
    PyObject *capsule = found && !Py_IsNone(found) ? PyDict_GetItemWithError(state->libraries, found) : NULL;
    *library = capsule ? PyCapsule_GetPointer(capsule, LIBRARY_CAPSULE) : NULL;
    if (found && !Py_IsNone(found) && !capsule && !PyErr_Occurred())
        *library = library_read(state, found);
    return PyErr_Occurred() ? -1 : 0;
}

#define KIND_CAPSULE "vecadd.kind"

static void
kind_free(PyObject *capsule)
{
    struct kind *kind = PyCapsule_GetPointer(capsule, KIND_CAPSULE);
    kind->clear(kind);
    PyMem_Free(kind);
}

const struct kind *
kind_of(const struct module_state *state, PyObject *object)
{
    PyObject *capsule = PyDict_GetItemWithError(state->kinds, (PyObject *)Py_TYPE(object));
    return capsule ? PyCapsule_GetPointer(capsule, KIND_CAPSULE) : NULL;
}

int
kind_keep(struct module_state *state, PyObject *object, struct kind *kind)
{
    OWNED PyObject *capsule = PyCapsule_New(kind, KIND_CAPSULE, kind_free);
    if (!capsule) {
        kind->clear(kind);
        PyMem_Free(kind);
    }
    return keep_in(state->kinds, (PyObject *)Py_TYPE(object), capsule, KIND_CAPSULE) ? 0 : -1;
}

int
add_takes_operand(struct module_state *state, PyObject *object)
{
    static const enum name exports[] = {NAME_CUDA_ARRAY_INTERFACE, NAME_DLPACK_DEVICE};
    const struct library *library;
    PyObject *export;
    const int on_host = plainly_on_host(state, object);
    if (on_host)
        return on_host;
    if (library_of(state, object, &library) < 0)
        return -1;
    int found = library != NULL;
    for (size_t i = 0; i < sizeof exports / sizeof *exports && found == 0; i++)
        if ((found = optional_attribute(object, state->names[exports[i]], &export)) > 0)
            Py_DECREF(export);
    return found;
}

int
library_export(struct module_state *state, PyObject *object, bool writing, const struct library **library,
               PyObject **exported)
{
    *library = NULL;
    *exported = NULL;
    const int on_host = plainly_on_host(state, object);
    if (on_host)
        return on_host < 0 ? -1 : 0;
    if (library_of(state, object, library) < 0)
        return -1;
    if (!*library) {
        /* Unknown objects with NumPy's protocol are left to it: it says how they are added. */
        const int has_rules = has_attribute((PyObject *)Py_TYPE(object), state->names[NAME_ARRAY_UFUNC]);
        if (has_rules)
            return has_rules < 0 ? -1 : 0;
        *exported = Py_NewRef(object);
        return 1;
    }
    *exported = PyObject_CallMethod((*library)->object, "export", "OO", object, writing ? Py_True : Py_False);
    if (*exported && !Py_IsNone(*exported) && *exported != Py_NotImplemented)
        return 1;
    const int result = *exported == Py_NotImplemented ? DEVICE_OPERAND_LEFT : *exported ? 0 : -1;
    Py_CLEAR(*exported);
    return result;
}

int
library_refuse(const struct library *library, PyObject *object, bool writing)
{
    OWNED PyObject *why = PyObject_CallMethod(library->object, "why_left", "(O)O", object, writing ? object : Py_None);
    return !why ? -1
                : refuse(PyExc_RuntimeError,
                         "%S: vecadd.add and add_many leave it to its library, and nothing else takes it", why);
}

int
library_current_stream(const struct library *library, int device, void **stream)
{
    if (!library)
        return 0;
    OWNED PyObject *handle = PyObject_CallMethod(library->object, "current_stream", "i", device);
    if (!handle || Py_IsNone(handle))
        return handle ? 0 : -1;
    return stream_from_handle(handle, "the current stream", stream) < 0 ? -1 : 1;
}

PyObject *
library_empty_like(const struct library *library, PyObject *exported, PyObject *stream, PyObject *shape,
                   const char *dtype, PyObject *axes)
{
    stream = stream ? stream : Py_None;
    if (!shape)
        return PyObject_CallMethod(library->object, "empty_like", "OO", exported, stream);
    return PyObject_CallMethod(library->object, "empty_like", "OOOsO", exported, stream, shape, dtype, axes);
}

/* Python's and NumPy's numbers, which every library adds to its arrays by its own rules. */
static bool
is_number(PyObject *object)
{
    return PyLong_Check(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object) ||
           PyArray_IsScalar(object, Generic);
}

int
library_of_host_arrays(struct module_state *state, PyObject *const objects[ROLE_COUNT], const struct library **library)
{
    const struct library *common = NULL, *found;
    *library = NULL;
    for (int role = 0; role < ROLE_COUNT; role++) {
        PyObject *object = objects[role];
        if (!object || (role != ROLE_OUT && is_number(object)))
            continue;
        const int on_host = plainly_on_host(state, object);
        if (on_host)
            return on_host < 0 ? -1 : 0;
        if (library_of(state, object, &found) < 0)
            return -1;
        if (!found || (common && found != common))
            return 0;
        common = found;
    }
    if (!library_is(common, LIBRARY_HAS_HOST_ARRAYS))
        return 0;
    *library = common;
    return 1;
}

int
library_record_stream(const struct library *library, PyObject *exported, void *stream)
{
    if (!library_is(library, LIBRARY_RECORDS_STREAMS))
        return 0;
    OWNED PyObject *handle = PyLong_FromVoidPtr(stream_of_all_threads(stream)); /* used when the memory is freed */
    OWNED PyObject *done =
        handle ? PyObject_CallMethod(library->object, "record_stream", "OO", exported, handle) : NULL;
    return done ? 0 : -1;
}

int
library_count_writes(const struct library *library, PyObject *arrays)
{
    OWNED PyObject *done = arrays ? PyObject_CallFunctionObjArgs(library->count_writes, arrays, NULL) : NULL;
    return done ? 0 : -1;
}

PyObject *
library_adopt(const struct library *library, PyObject *sum)
{
    if (!library_is(library, LIBRARY_ADOPTS))
        return sum;
    OWNED PyObject *adopted = sum;
    return PyObject_CallMethod(library->object, "adopt", "O", adopted);
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
