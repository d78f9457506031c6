#include "py/operands/dlpack_import.h"

#include "py/base/attribute.h"

#define OWNER             "vecadd.dlpack"
#define UNVERSIONED_OWNER "vecadd.dlpack_unversioned"

/* A deleter may run Python code, so the current exception is saved. */
static void
owner_free(PyObject *owner)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    struct dl_managed_tensor *managed = PyCapsule_GetPointer(owner, OWNER);
    if (managed && managed->deleter)
        managed->deleter(managed);
    PyErr_Restore(type, value, traceback);
}

static void
unversioned_owner_free(PyObject *owner)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    struct dl_unversioned_tensor *managed = PyCapsule_GetPointer(owner, UNVERSIONED_OWNER);
    if (managed && managed->deleter)
        managed->deleter(managed);
    PyErr_Restore(type, value, traceback);
}

/* Reads one of a device's two numbers, of DLPack's C type. */
static int
read_number(PyObject *pair, Py_ssize_t at, const char *what, int32_t *number)
{
    const Py_ssize_t found = PyNumber_AsSsize_t(PyTuple_GetItem(pair, at), NULL);
    if (found == -1 && PyErr_Occurred())
        return -1;
    *number = (int32_t)found;
    if (found == *number)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s: __dlpack_device__() gives %R, which is no DLPack device: its numbers have 32 bits", what, pair);
    return -1;
}

int
dlpack_device_of(struct module_state *state, PyObject *object, const char *what, struct dl_device *device)
{
    PyObject *method;
    int found = optional_attribute(object, state->names[NAME_DLPACK_DEVICE], &method);
    if (found <= 0)
        return found;
    PyObject *pair = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    if (!pair)
        return -1;
    found = -1;
    /* The type is an IntEnum in most libraries. */
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2 || !PyIndex_Check(PyTuple_GetItem(pair, 0)) ||
        !PyIndex_Check(PyTuple_GetItem(pair, 1)))
        PyErr_Format(PyExc_TypeError, "%s: __dlpack_device__() must give (device type, ordinal), not %R", what, pair);
    else if (read_number(pair, 0, what, &device->type) == 0 && read_number(pair, 1, what, &device->id) == 0)
        found = 1;
    Py_DECREF(pair);
    return found;
}

/* The keywords of __dlpack__: all, or only those from before version 1.0 of the protocol. */
static PyObject *
keywords_of(struct module_state *state, PyObject *stream, bool all)
{
    PyObject *keywords = PyDict_New();
    if (!keywords || PyDict_SetItem(keywords, state->names[NAME_STREAM], stream) < 0)
        goto failed;
    if (all) {
        PyObject *version = Py_BuildValue("(ii)", DLPACK_MAJOR, DLPACK_MINOR);
        int stored = version ? PyDict_SetItemString(keywords, "max_version", version) : -1;
        Py_XDECREF(version);
        if (stored < 0 || PyDict_SetItemString(keywords, "copy", Py_False) < 0)
            goto failed;
    }
    return keywords;
failed:
    Py_XDECREF(keywords);
    return NULL;
}

/* Calls the producer for its capsule. */
static PyObject *
capsule_of(struct module_state *state, PyObject *object, PyObject *stream)
{
    PyObject *method = PyObject_GetAttr(object, state->names[NAME_DLPACK]);
    PyObject *nothing = method ? PyTuple_New(0) : NULL;
    PyObject *capsule = NULL;
    for (int all = 1; nothing && all >= 0; all--) {
        PyObject *keywords = keywords_of(state, stream, all);
        capsule = keywords ? PyObject_Call(method, nothing, keywords) : NULL;
        Py_XDECREF(keywords);
        /* A producer from before the keywords raises TypeError, the only sign of its age. */
        if (capsule || !all || !PyErr_ExceptionMatches(PyExc_TypeError))
            break;
        PyErr_Clear();
    }
    Py_XDECREF(nothing);
    Py_XDECREF(method);
    return capsule;
}

/* Takes the tensor out of its capsule. */
static int
take_versioned(PyObject *capsule, const char *what, struct dlpack_import *import)
{
    struct dl_managed_tensor *managed = PyCapsule_GetPointer(capsule, DL_CAPSULE);
    if (!managed || PyCapsule_SetName(capsule, DL_CAPSULE_USED) < 0)
        return -1;
    import->owner = PyCapsule_New(managed, OWNER, owner_free);
    if (!import->owner) {
        if (managed->deleter)
            managed->deleter(managed);
        return -1;
    }
    if (managed->major != DLPACK_MAJOR) { /* another layout behind the flags: only the deleter may be used */
        PyErr_Format(PyExc_BufferError, "%s: its DLPack tensor has version %u.%u, and vecadd knows %d", what,
                     (unsigned)managed->major, (unsigned)managed->minor, DLPACK_MAJOR);
        Py_CLEAR(import->owner);
        return -1;
    }
    import->tensor = &managed->tensor;
    import->writable = !(managed->flags & DL_READ_ONLY);
    return 0;
}

static int
take_unversioned(PyObject *capsule, struct dlpack_import *import)
{
    struct dl_unversioned_tensor *managed = PyCapsule_GetPointer(capsule, DL_UNVERSIONED_CAPSULE);
    if (!managed || PyCapsule_SetName(capsule, DL_UNVERSIONED_CAPSULE_USED) < 0)
        return -1;
    import->owner = PyCapsule_New(managed, UNVERSIONED_OWNER, unversioned_owner_free);
    if (!import->owner) {
        if (managed->deleter)
            managed->deleter(managed);
        return -1;
    }
    import->tensor = &managed->tensor;
    import->writable = true; /* an unversioned tensor cannot say otherwise */
    return 0;
}

int
dlpack_import(struct module_state *state, PyObject *object, const char *what, PyObject *stream,
              struct dlpack_import *import)
{
    PyObject *capsule = capsule_of(state, object, stream);
    if (!capsule)
        return -1;
    int result = -1;
    if (PyCapsule_IsValid(capsule, DL_CAPSULE))
        result = take_versioned(capsule, what, import);
    else if (PyCapsule_IsValid(capsule, DL_UNVERSIONED_CAPSULE))
        result = take_unversioned(capsule, import);
    else
        PyErr_Format(PyExc_TypeError,
                     "%s: __dlpack__() must give a capsule named 'dltensor_versioned' or 'dltensor', which is "
                     "not consumed yet, not %R",
                     what, capsule);
    Py_DECREF(capsule);
    return result;
}
