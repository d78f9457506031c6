/* empty_pinned: NumPy arrays in page-locked memory, which GPUs copy from and to at the link's full speed. */
#include <stdint.h>

#include "base/layout.h"
#include "gpu/memory.h"
#include "py/base/errors.h"
#include "py/base/methods.h"
#include "py/operands/operand_from.h"
#include "py/operands/sizes.h"

static const char capsule_name[] = "vecadd pinned memory";

static void
release_capsule(PyObject *capsule)
{
    void *memory = PyCapsule_GetPointer(capsule, capsule_name);
    size_t bytes = (uintptr_t)PyCapsule_GetContext(capsule);
    PyThreadState *released = PyEval_SaveThread(); /* CUDA waits here for the work of every stream */
    pinned_release(memory, bytes);
    PyEval_RestoreThread(released);
}

/* The bytes of an array, or -1 with the exceptions of numpy.empty. */
static Py_ssize_t
count_bytes(int ndim, const Py_ssize_t *shape, size_t itemsize)
{
    size_t elements;
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0) {
            PyErr_SetString(PyExc_ValueError, "negative dimensions are not allowed");
            return -1;
        }
    if (layout_count(ndim, shape, itemsize, &elements))
        return (Py_ssize_t)(elements * itemsize);
    PyErr_SetString(PyExc_ValueError, "array is too big; its bytes are more than can be counted");
    return -1;
}

/* Allocates page-locked memory in a capsule that frees it; the capsule's context is the number of bytes. */
static PyObject *
pinned_capsule(struct module_state *state, size_t bytes)
{
    void *memory = NULL;
    struct status status;
    PyThreadState *released = PyEval_SaveThread(); /* takes 350 ms a gigabyte */
    int failed = pinned_allocate(bytes, &memory, &status);
    PyEval_RestoreThread(released);
    if (failed)
        return status_raise(state, &status);
    PyObject *capsule = PyCapsule_New(memory, capsule_name, release_capsule);
    if (!capsule) {
        released = PyEval_SaveThread();
        pinned_release(memory, bytes);
        PyEval_RestoreThread(released);
    } else
        PyCapsule_SetContext(capsule, (void *)(uintptr_t)bytes); /* fails only for an object that is not a capsule */
    return capsule;
}

/* Takes the reference to dtype. */
static PyObject *
pinned_array(struct module_state *state, int ndim, const Py_ssize_t *shape, PyArray_Descr *dtype)
{
    Py_ssize_t bytes = count_bytes(ndim, shape, (size_t)PyDataType_ELSIZE(dtype));
    PyObject *capsule = bytes < 0 ? NULL : pinned_capsule(state, (size_t)bytes);
    if (!capsule) {
        Py_DECREF((PyObject *)dtype);
        return NULL;
    }
    void *memory = PyCapsule_GetPointer(capsule, capsule_name);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL, memory, NPY_ARRAY_CARRAY, NULL);
    if (!array)
        Py_DECREF(capsule);
    else if (PyArray_SetBaseObject((PyArrayObject *)array, capsule) < 0) /* takes the capsule in either case */
        Py_CLEAR(array);
    return array;
}

/* shape: an int, or a sequence of ints. Returns the number of dimensions, or -1. */
static int
read_shape(PyObject *object, Py_ssize_t *shape)
{
    PyObject *tuple = PyIndex_Check(object) ? PyTuple_Pack(1, object) : PySequence_Tuple(object);
    int ndim = tuple ? sizes_of_tuple(tuple, "shape", shape) : -1;
    Py_XDECREF(tuple);
    return ndim;
}

const char empty_pinned_doc[] = PyDoc_STR(
    "empty_pinned($module, shape, dtype='float64')\n--\n\n"
    "A C-contiguous numpy.ndarray in page-locked memory: a GPU copies from and to it at the full speed of the\n"
    "link, where ordinary memory goes through buffers.\n\n"
    "shape is an int or a sequence of ints, dtype one that add takes. Page-locked memory is scarce and slow to\n"
    "make (0.35 s a gigabyte): keep the array and use it again. It is given back when the last view of it goes.\n\n"
    "Raises TypeError for other dtypes, ValueError for a shape that no array has, MemoryError, and RuntimeError\n"
    "where CUDA cannot be used.\n\n"
    ">>> a = vecadd.empty_pinned((2, 3), 'float32')\n"
    ">>> a[:] = 1\n"
    ">>> vecadd.add(a, a, device='cuda')\n"
    "array([[2., 2., 2.],\n"
    "       [2., 2., 2.]], dtype=float32)");

PyObject *
py_empty_pinned(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"shape", "dtype", NULL};
    struct module_state *state = PyModule_GetState(module);
    PyObject *shape_object;
    PyArray_Descr *dtype = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|O&:empty_pinned", names, &shape_object,
                                     PyArray_DescrConverter, &dtype))
        return NULL;
    if (!dtype)
        dtype = PyArray_DescrFromType(NPY_DOUBLE);

    Py_ssize_t shape[MAX_DIMENSIONS];
    int ndim = read_shape(shape_object, shape);
    if (ndim >= 0 && dtype_of_descr(state, dtype) >= 0)
        return pinned_array(state, ndim, shape, dtype);
    if (ndim >= 0)
        dtype_refuse("the array", (PyObject *)dtype);
    Py_DECREF((PyObject *)dtype);
    return NULL;
}
