/* Exports a DeviceArray to other libraries: __cuda_array_interface__ version 3, DLPack versioned and not, and DLPack's
 * C exchange table. */
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "gpu/buffer.h"
#include "gpu/device.h"
#include "gpu/stream.h"
#include "py/array/array.h"
#include "py/base/python.h"
#include "py/calls/deferred_release.h"
#include "py/operands/device_array.h"
#include "py/operands/dlpack.h"
#include "py/operands/dtypes.h"
#include "py/operands/where.h"

PyObject *
device_array_interface(struct device_array *self, void *Py_UNUSED(closure))
{
    /* The interface names the legacy default stream 1; 0 is not allowed. */
    void *home = device_array_home(self);
    OWNED PyObject *stream = home ? PyLong_FromVoidPtr(home) : PyLong_FromLong(1);
    OWNED PyObject *shape = tuple_of_sizes(self->ndim, self->shape);
    OWNED PyObject *data = PyLong_FromVoidPtr(self->data);
    OWNED PyObject *strides =
        self->contiguous ? Py_NewRef(Py_None) : tuple_of_sizes(self->ndim, device_array_strides(self));
    PyObject *interface = NULL;
    if (stream && shape && data && strides)
        interface =
            Py_BuildValue("{s:O,s:s,s:(OO),s:O,s:i,s:O}", "shape", shape, "typestr", dtype_table[self->dtype].typestr,
                          "data", data, Py_False, "strides", strides, "version", 3, "stream", stream);
    return interface;
}

/* The memory that a capsule exports. It owns a reference to the block and no Python object: a consumer may drop it in
 * any thread, and after the interpreter has gone. */
struct export
{
    struct device_drop drop; /* first: it frees the export; its stream is the consumer's, or takes its place */
    union {
        struct dl_managed_tensor versioned;
        struct dl_unversioned_tensor unversioned;
    };
    int64_t sizes[]; /* shape, then strides */
};

/* A consumer calls it in any thread. It cannot know whether it has the GIL, so it may not wait. */
static void
export_delete(struct export *export)
{
    if (!device_buffer_drop_later(&export->drop) || kept_streams_left())
        deferred_release_sweep_soon();
}

static void
delete_versioned(struct dl_managed_tensor *tensor)
{
    export_delete(tensor->context);
}

static void
delete_unversioned(struct dl_unversioned_tensor *tensor)
{
    export_delete(tensor->context);
}

/* The caller has the GIL, which is released: ordering streams waits while one of their queues is full. */
static void
export_free(struct export *export)
{
    PyThreadState *released = PyEval_SaveThread();
    device_buffer_drop_after(&export->drop);
    PyEval_RestoreThread(released);
    kept_streams_sweep();
}

/* Frees the tensor of a capsule that was never consumed. */
static void
capsule_free(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, DL_CAPSULE))
        export_free(((struct dl_managed_tensor *)PyCapsule_GetPointer(capsule, DL_CAPSULE))->context);
    else if (PyCapsule_IsValid(capsule, DL_UNVERSIONED_CAPSULE))
        export_free(((struct dl_unversioned_tensor *)PyCapsule_GetPointer(capsule, DL_UNVERSIONED_CAPSULE))->context);
}

/* The array as a tensor that lives as long as the array. */
static struct dl_tensor
device_array_tensor(struct device_array *array)
{
    return (struct dl_tensor){.data = array->data,
                              .device = {DL_CUDA, array->device},
                              .ndim = array->ndim,
                              .dtype = dl_type_of_dtype(array->dtype),
                              .shape = array->shape,
                              .strides = device_array_steps(array)};
}

/* Becomes a user of what keeps `stream`. */
static struct export *
export_make(struct device_array *array, void *stream, struct kept_stream *kept, bool versioned, bool copied)
{
    struct export *export = malloc(sizeof *export + 2 * (size_t)array->ndim * sizeof *export->sizes);
    if (!export)
        return NULL;
    struct dl_tensor tensor = device_array_tensor(array);
    const size_t bytes = (size_t)array->ndim * sizeof *export->sizes;
    memcpy(export->sizes, tensor.shape, bytes);
    memcpy(export->sizes + array->ndim, tensor.strides, bytes);
    tensor.shape = export->sizes;
    tensor.strides = export->sizes + array->ndim;
    if (versioned)
        export->versioned = (struct dl_managed_tensor){.major = DLPACK_MAJOR,
                                                       .minor = DLPACK_MINOR,
                                                       .context = export,
                                                       .deleter = delete_versioned,
                                                       .flags = copied ? DL_COPIED : 0,
                                                       .tensor = tensor};
    else
        export->unversioned =
            (struct dl_unversioned_tensor){.tensor = tensor, .context = export, .deleter = delete_unversioned};
    export->drop = (struct device_drop){.block = array->block, .stream = stream, .kept = kept};
    kept_stream_use(kept);
    device_buffer_retain(array->block);
    return export;
}

static PyObject *
capsule_make(struct device_array *array, const struct later_stream *stream, bool versioned, bool copied)
{
    struct export *export = export_make(array, stream->stream, stream->kept, versioned, copied);
    if (!export)
        return PyErr_NoMemory();
    PyObject *capsule = versioned ? PyCapsule_New(&export->versioned, DL_CAPSULE, capsule_free)
                                  : PyCapsule_New(&export->unversioned, DL_UNVERSIONED_CAPSULE, capsule_free);
    if (!capsule)
        export_free(export);
    return capsule;
}

/* The array's memory for a consumer that works on the legacy default stream and calls the deleter; NULL with an
 * exception set. */
static struct dl_managed_tensor *
device_array_lend(struct device_array *array)
{
    struct export *export = export_make(array, NULL, NULL, true, false);
    return export ? &export->versioned : (PyErr_NoMemory(), NULL);
}

/* A new array in the memory of such a tensor, which stays the caller's; NULL with an exception set. */
static PyObject *
device_array_of_lent(PyTypeObject *type, const struct dl_managed_tensor *managed)
{
    const struct dl_tensor *tensor = &managed->tensor;
    Py_ssize_t strides[MAX_DIMENSIONS];
    enum dtype dtype;
    if (managed->deleter != delete_versioned || !dtype_of_dl_type(tensor->dtype, &dtype))
        return PyErr_Format(PyExc_BufferError,
                            "a DeviceArray has memory of vecadd's alone, and this tensor's is another "
                            "library's: vecadd.add takes that library's array as it is");
    const struct export *export = managed->context;
    for (int i = 0; i < tensor->ndim; i++)
        strides[i] = tensor->strides[i] * (Py_ssize_t)dtype_table[dtype].itemsize;
    return device_array_in(type, export->drop.block, tensor->device.id, dtype,
                           (char *)tensor->data + tensor->byte_offset, tensor->ndim, tensor->shape, strides);
}

/* The tensor's deleter, for a caller that has ordered the array's stream after the consumer's work. */
static void
device_array_end_loan(struct dl_managed_tensor *managed)
{
    export_delete(managed->context);
}

/* stream=: None is the legacy default stream, -1 asks for no order. 1 with *stream set, 0 for no order, or -1. */
static int
consumer_stream(PyObject *object, void **stream)
{
    *stream = NULL;
    if (Py_IsNone(object))
        return 1;
    if (PyIndex_Check(object) && !PyBool_Check(object)) {
        const Py_ssize_t number = PyNumber_AsSsize_t(object, NULL);
        if (number == -1)
            return PyErr_Occurred() ? -1 : 0;
        if (number == 0)
            return refuse(PyExc_ValueError,
                          "stream 0 is ambiguous in DLPack and not allowed: 1 is the legacy default stream, 2 the "
                          "per-thread one, -1 asks for no order");
    }
    return stream_from_handle(object, "stream", stream) < 0 ? -1 : 1;
}

/* max_version=: whether the consumer supports versioned tensors. 1, 0 or -1. */
static int
knows_versions(PyObject *object)
{
    if (Py_IsNone(object))
        return 0;
    PyObject *major = PyTuple_Check(object) && PyTuple_Size(object) == 2 ? PyTuple_GetItem(object, 0) : NULL;
    if (!major || !PyIndex_Check(major))
        return refuse(PyExc_TypeError, "max_version must be None or a tuple (major, minor), not %R", object);
    const Py_ssize_t number = PyNumber_AsSsize_t(major, NULL);
    return number == -1 && PyErr_Occurred() ? -1 : number >= DLPACK_MAJOR;
}

/* dl_device=: 1 where it is this array's own or None, 0 for the host, -1 with BufferError for any other. */
static int
stays_here(const struct device_array *self, PyObject *device)
{
    int type, id;
    if (Py_IsNone(device))
        return 1;
    if (!PyTuple_Check(device))
        return refuse(PyExc_TypeError, "dl_device must be None or a tuple (device type, ordinal), not %R", device);
    if (!PyArg_ParseTuple(device, "ii;dl_device must be (device type, ordinal)", &type, &id))
        return -1;
    if (type == DL_CUDA && id == self->device)
        return 1;
    if (type == DL_CPU)
        return 0;
    return refuse(PyExc_BufferError, "the array is on cuda:%d and is not given away on DLPack's device %R",
                  self->device, device);
}

enum { NEITHER = 2 }; /* copy=None, beside 0 and 1 */

/* NumPy exports the host's copy. */
static PyObject *
export_on_host(struct device_array *self, PyObject *max_version, int asked)
{
    if (asked == 0)
        return PyErr_Format(PyExc_BufferError,
                            "a DeviceArray is given to the host by a copy, which copy=False rules out");
    OWNED PyObject *array = PyObject_CallMethod((PyObject *)self, "numpy", NULL);
    OWNED PyObject *method = array ? PyObject_GetAttrString(array, "__dlpack__") : NULL;
    OWNED PyObject *nothing = PyTuple_New(0);
    OWNED PyObject *keywords = PyDict_New();
    PyObject *capsule = NULL;
    if (method && nothing && keywords &&
        (Py_IsNone(max_version) || PyDict_SetItemString(keywords, "max_version", max_version) == 0))
        capsule = PyObject_Call(method, nothing, keywords);
    return capsule;
}

/* Finds the stream to give the memory back after, where the owner of the consumer's stream is not kept. */
static int
stand_in_for(struct device_array *array, struct later_stream *after, struct status *status)
{
    enum stream_stand_in stand_in = STREAM_LEGACY;
    if (after->stream != STREAM_PER_THREAD && stream_stand_in(array->device, after->stream, &stand_in, status) < 0)
        return -1;
    if (stand_in != STREAM_LEGACY)
        device_buffer_loosen(array->block);
    after->stream = stand_in == STREAM_LEGACY ? NULL : device_array_home(array);
    return 0;
}

/* Orders the consumer's stream after the array's, and finds the stream to give the memory back after. Returns 0, with
 * *after to be cleared, or -1 with an exception set. */
static int
lend_to(struct device_array *array, void *stream, bool is_new, struct later_stream *after)
{
    void *const home = device_array_home(array);
    struct status status;
    *after = (struct later_stream){.stream = home};
    if (stream == home)
        return 0;
    if (later_stream_find(after, stream, array->device, NULL, NULL, 0, false) < 0)
        return -1;
    const int failed = WITHOUT_GIL(stream_join_consumer(array->device, home, stream, is_new, &status) < 0 ||
                                   (!after->kept && !after->lasting && stand_in_for(array, after, &status) < 0));
    if (!failed)
        return 0;
    later_stream_clear(after);
    return fail_with(state_of(array), &status);
}

const char device_array_dlpack_doc[] = PyDoc_STR(
    "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
    "A capsule for another library's from_dlpack. Work that the consumer queues on stream from now on comes after\n"
    "what is queued on the array: None or 1 is the legacy default stream, 2 the per-thread one, -1 asks for no order.\n"
    "The capsule is 'dltensor_versioned' where max_version is (1, 0) or more. The memory lives as long as its "
    "holder.\n\n"
    "Raises ValueError for stream 0 and for a stream of another GPU, BufferError for a dl_device that is neither this\n"
    "GPU nor the host, and for copy=False where only a copy will do.");

PyObject *
device_array_dlpack(struct device_array *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream_object = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    void *stream;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__", names, &stream_object, &max_version,
                                     &device, &copy))
        return NULL;
    int versioned = knows_versions(max_version);
    int here = versioned < 0 ? -1 : stays_here(self, device);
    int asked = Py_IsNone(copy) ? NEITHER : PyObject_IsTrue(copy);
    if (here < 0 || asked < 0)
        return NULL;
    if (here == 0)
        return export_on_host(self, max_version, asked);
    int ordered = consumer_stream(stream_object, &stream);
    if (ordered < 0)
        return NULL;
    struct status status;
    if (stream_check_device(self->device, stream, &status) < 0)
        return status_raise(state_of(self), &status);

    const bool copies = asked == true;
    OWNED PyObject *made = copies ? device_array_copy(self, NULL) : Py_NewRef((PyObject *)self);
    if (!made)
        return NULL;
    struct device_array *array = (struct device_array *)made;
    struct later_stream after = {0};
    /* An array without elements needs no order, and its device may not have been used yet. */
    const int lent =
        ordered && array->size ? lend_to(array, stream, copies, &after) : (after.stream = device_array_home(array), 0);
    PyObject *capsule = lent < 0 ? NULL : capsule_make(array, &after, versioned, copies);
    later_stream_clear(&after);
    return capsule;
}

PyObject *
device_array_dlpack_device(struct device_array *self, PyObject *Py_UNUSED(none))
{
    return Py_BuildValue("(ii)", DL_CUDA, self->device);
}

/* DLPack's C exchange table of DeviceArrays, by which other libraries take and make them without calling Python.
 *
 * A table names one work stream for all arrays of a device: the legacy default stream. An array that is handed out
 * moves to that stream: what was queued on it comes before the consumer's work there, and vecadd's later work and the
 * release of the memory come after. No later moment would do, because a consumer does not say when it is done with a
 * borrowed array. Plans that were made before do not wait. */

static PyTypeObject *array_type; /* owned: the table's functions are called without any object of vecadd's */

/* Returns 0, or -1 with an exception set. */
static int
move(struct device_array *array)
{
    struct status status;
    if (device_array_home(array) == NULL)
        return 0;
    /* Waits while a queue is full. */
    const int failed = WITHOUT_GIL(device_buffer_move(array->block, &status));
    return failed ? fail_with(state_of(array), &status) : 0;
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

/* The caller keeps the array alive until its work is queued. */
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
    OWNED PyObject *array =
        device_array_new(state, device, &(struct later_stream){0}, dtype, like->ndim, like->shape, NULL);
    return array ? device_array_lend((struct device_array *)array) : NULL;
}

/* Hands the exception on by its type's name and its words. */
static void
report(void *context, void (*set_error)(void *context, const char *kind, const char *message))
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    OWNED PyObject *name = type ? PyObject_GetAttrString(type, "__name__") : NULL;
    OWNED PyObject *text = value ? PyObject_Str(value) : NULL;
    OWNED PyObject *kind = name ? PyUnicode_AsUTF8String(name) : NULL;
    OWNED PyObject *message = text ? PyUnicode_AsUTF8String(text) : NULL;
    PyErr_Clear();
    set_error(context, kind ? PyBytes_AsString(kind) : "RuntimeError", message ? PyBytes_AsString(message) : "");
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
