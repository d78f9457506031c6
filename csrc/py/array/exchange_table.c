/* DLPack's C exchange table of DeviceArrays, by which other libraries take and make them without a call of Python's.
 *
 * A table names one work stream for all arrays of a device: the legacy default stream. An array that is handed out
 * moves to that stream: what was queued on it comes before the consumer's work there, and vecadd's later work and the
 * end of the memory come after. A consumer does not say when it is done with a borrowed array, so that nothing else
 * would. Plans that were made before do not wait. */
#include "base/layout.h"
#include "gpu/buffer.h"
#include "gpu/device.h"
#include "py/array/methods.h"
#include "py/base/errors.h"
#include "py/calls/deferred_release.h"

static PyTypeObject *array_type; /* owned: the table's functions are called without any object of vecadd's */

/* Returns 0, or -1 with an exception set. */
static int
move(struct device_array *array)
{
    struct status status;
    if (device_array_home(array) == NULL)
        return 0;
    PyThreadState *released = PyEval_SaveThread(); /* it waits while a queue is full */
    const int failed = device_buffer_move(array->block, &status);
    PyEval_RestoreThread(released);
    if (failed)
        status_raise(PyType_GetModuleState(Py_TYPE((PyObject *)array)), &status);
    return failed;
}

static int
managed_from_object(void *object, struct dl_managed_tensor **made)
{
    struct device_array *array = object;
    if (move(array) < 0)
        return -1;
    *made = device_array_lend(array);
    return *made ? 0 : -1;
}

/* The caller holds the array until its work is queued. */
static int
tensor_from_object(void *object, struct dl_tensor *borrowed)
{
    struct device_array *array = object;
    if (move(array) < 0)
        return -1;
    *borrowed = device_array_tensor(array);
    return 0;
}

static int
object_from_managed(struct dl_managed_tensor *stolen, void **object)
{
    PyObject *made = device_array_of_lent(array_type, stolen);
    if (made && move((struct device_array *)made) < 0) /* of a capsule, whose consumer had a stream of its own */
        Py_CLEAR(made);
    if (made)
        device_array_end_loan(stolen);
    *object = made;
    return made ? 0 : -1;
}

/* A new array's memory; NULL with an exception set. */
static struct dl_managed_tensor *
make_like(const struct dl_tensor *like)
{
    struct module_state *state = PyType_GetModuleState(array_type);
    struct status status;
    enum dtype dtype;
    size_t elements;
    int device = like->device.id;
    if (like->device.type != DL_CUDA || !dtype_of_dl_type(like->dtype, &dtype) || like->ndim < 0 ||
        like->ndim > MAX_DIMENSIONS || !layout_count(like->ndim, like->shape, dtype_table[dtype].itemsize, &elements)) {
        PyErr_Format(PyExc_BufferError,
                     "a DeviceArray is in memory of CUDA, of a dtype that vecadd adds and up to %d dimensions; asked "
                     "for were DLPack's device type %d, type code %d of %d bits and %d dimensions",
                     MAX_DIMENSIONS, (int)like->device.type, (int)like->dtype.code, (int)like->dtype.bits,
                     (int)like->ndim);
        return NULL;
    }
    if (device_find(&device, &status) < 0)
        return status_raise(state, &status);
    deferred_release_sweep();
    PyObject *array = device_array_new(state, device, &(struct later_stream){0}, dtype, like->ndim, like->shape, NULL);
    struct dl_managed_tensor *made = array ? device_array_lend((struct device_array *)array) : NULL;
    Py_XDECREF(array);
    return made;
}

/* Hands the exception on by its type's name and its words. */
static void
report(void *context, void (*set_error)(void *context, const char *kind, const char *message))
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *name = type ? PyObject_GetAttrString(type, "__name__") : NULL, *text = value ? PyObject_Str(value) : NULL;
    PyObject *kind = name ? PyUnicode_AsUTF8String(name) : NULL, *message = text ? PyUnicode_AsUTF8String(text) : NULL;
    PyErr_Clear();
    set_error(context, kind ? PyBytes_AsString(kind) : "RuntimeError", message ? PyBytes_AsString(message) : "");
    Py_XDECREF(kind);
    Py_XDECREF(message);
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* The caller may be without the GIL. */
static int
allocate(struct dl_tensor *like, struct dl_managed_tensor **made, void *context,
         void (*set_error)(void *context, const char *kind, const char *message))
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    *made = make_like(like);
    if (!*made)
        report(context, set_error);
    PyGILState_Release(gil);
    return *made ? 0 : -1;
}

static int
current_stream(int32_t Py_UNUSED(device_type), int32_t Py_UNUSED(device), void **stream)
{
    *stream = NULL;
    return 0;
}

static struct dl_exchange table = {
    .header = {.version = {DLPACK_MAJOR, DL_EXCHANGE_MINOR}},
    .allocate = allocate,
    .managed_from_object = managed_from_object,
    .object_from_managed = object_from_managed,
    .tensor_from_object = tensor_from_object,
    .current_stream = current_stream,
};

PyObject *
device_array_exchange_table(PyTypeObject *type)
{
    PyTypeObject *before = array_type;
    array_type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    Py_XDECREF((PyObject *)before);
    return PyCapsule_New(&table, DL_EXCHANGE_CAPSULE, NULL);
}
