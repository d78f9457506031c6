/* What an object becomes in core/'s terms: operand_numpy.c for host memory, operand_device.c for device memory, by way
 * of operand_cai.c, operand_dlpack.c, operand_torch.c and operand_cupy.c. */
#ifndef VECADD_PY_OPERANDS_OPERAND_FROM_H
#define VECADD_PY_OPERANDS_OPERAND_FROM_H

#include "base/dtype.h"
#include "base/operand.h"
#include "gpu/device.h"
#include "py/base/python.h"
#include "py/operands/dlpack.h"
#include "py/operands/sizes.h"

/* The place of an operand in a call: the order of every array of three here. */
enum role { ROLE_A, ROLE_B, ROLE_OUT, ROLE_COUNT };
extern const char *const role_name[ROLE_COUNT]; /* "a", "b", "out" */

/* The dtype of a NumPy dtype object, or -1 where it is none of ours: other byte order and metadata included. */
int dtype_of_descr(struct module_state *state, PyArray_Descr *descr);

/* Whether the array may be written, and without the warning that NumPy gives before it writes to an array that
 * numpy.broadcast_arrays made. */
bool written_silently(PyArrayObject *array);

/* A new reference to the NumPy dtype object; NULL with an exception where it is ml_dtypes' and that is not imported. */
PyArray_Descr *dtype_descr(struct module_state *state, enum dtype dtype);

/* Raises the TypeError of an element type that vecadd does not add, naming those that it does. Returns NULL. */
void *dtype_refuse(const char *what, PyObject *given);

/* Describes a host addition if its operands are plain ndarrays of one of our dtypes that lie element against element:
 * of one shape and memory order, contiguous and aligned, `out` NULL or writable and overlapping each input wholly or
 * not at all. add->c is NULL where out is. Returns NULL, or in a few words why the addition is none. */
struct batch_add;
const char *host_run_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], struct batch_add *add);

/* Whether these arrays, looked at again, are still what `add` was made of: Python code that runs between a look and the
 * work, an object's interface or a finalizer, may resize an array or change its shape. All three are there. */
bool host_run_is(struct module_state *state, PyObject *const objects[ROLE_COUNT], const struct batch_add *add);

/* The operand of one contiguous, aligned ndarray of our dtypes; false where it is none. */
bool host_operand(struct module_state *state, PyArrayObject *array, struct operand *operand);

/* An operand and what keeps it: an array in device memory, a DeviceArray or anything with __cuda_array_interface__, or
 * a NumPy array. Not to be moved: its operand's shape and strides may point into it. */
struct owned_operand {
    struct operand operand;             /* its data is the address of the first element */
    Py_ssize_t extents[MAX_DIMENSIONS]; /* where the shape is, for other libraries' arrays */
    Py_ssize_t steps[MAX_DIMENSIONS];   /* where their strides are */
    PyObject *exported; /* what the interface was read from, held until the work is queued; NULL for a DeviceArray */
    PyObject *library;  /* its vecadd.interop.Library; NULL where there is none */
    PyObject *count_writes; /* the library's, held, for interop_written; NULL where it counts none */
    bool needs_keepalive;   /* its owner does not order its release: `exported` lives until the work is done (keep.h) */
};

/* What a new device array is to be, and of which operand's library. */
struct device_shape {
    enum dtype dtype;
    int ndim;
    const Py_ssize_t *shape;
    enum role like;
    const Py_ssize_t *strides; /* bytes, of contiguous memory in another order than C's; NULL: C order */
};

/* What the arrays of one call have in common, so that it is asked once. Begins as {0}, nothing known; for a call in
 * which no stream becomes another library's current one. */
struct operand_reader {
    struct device_range range[ROLE_COUNT]; /* where the last array of each role lay */
    PyTypeObject *torch_type;              /* of the last tensor, and what is known of the type: borrowed */
    const struct torch_kind *torch_kind;
    struct known_stream {
        int device; /* one more than the ordinal; 0: not known */
        void *stream;
    } torch_stream, cupy_stream;
    struct known_dtype {
        struct dl_data_type type; /* of the last tensor; no components: not known */
        enum dtype dtype;
    } torch_dtype;
    bool defers;         /* see DEVICE_OPERAND_DEFERRED */
    bool again;          /* tensors were read and checked in this call before: their shape is what is asked for */
    int keeps_gradients; /* PyTorch's grad mode: 1 or 0, one more than each; 0: not known */
};

/* Describes `object` if it is in device memory. Returns 1 (to be cleared), 0 where it is not (nothing to clear), or
 * -1 with an exception set. A null or unknown pointer is refused, and one whose elements, wherever its strides put
 * them, are not all inside its allocation; so are a mask and a dtype that the kernels do not know. `stream` is the
 * caller's stream=, or NULL: producers that order a consumer's stream themselves (DLPack's) are told. */
int device_operand_from(struct module_state *state, PyObject *object, enum role role, PyObject *stream,
                        struct owned_operand *result);

/* A producer that orders the consumer's stream itself has to be told it, and where nobody gave one it is another
 * operand's. A reader that defers has device_operand_read give this for an object that may be such a producer's (to be
 * cleared), and device_operand_read_deferred go on when the stream is known. */
enum { DEVICE_OPERAND_DEFERRED = 2 };

/* The same for one of a call's many arrays. */
int device_operand_read(struct module_state *state, PyObject *object, enum role role, PyObject *stream,
                        struct operand_reader *reader, struct owned_operand *result);
int device_operand_read_deferred(struct module_state *state, PyObject *object, enum role role, void *stream,
                                 struct owned_operand *result);

/* The same for an object whose DLPack tensor is in memory of CUDA; `what` names it in messages. result->exported, which
 * may be set, becomes the tensor's owner. The producer orders its work before what is queued on `stream` from now on.
 */
int dlpack_operand_from(struct module_state *state, PyObject *object, const char *what, void *stream,
                        struct owned_operand *result);

/* The same for what an object has as its __cuda_array_interface__; result->exported and library are set. Returns 0, or
 * -1 with an exception set. */
int cai_operand_from(struct module_state *state, PyObject *interface, const char *what, struct owned_operand *result);

/* Sets shape and operand.size from ndim and extents. Returns 0, or -1 with an exception where no memory holds it. */
int device_operand_measure(const char *what, struct owned_operand *result);

/* The same for a tensor of a type that torch_learn knows, in a tenth of the time. Returns 1, 0 where it is to be read
 * in another way (without an exception), or -1 with an exception set. */
int torch_operand_from(struct module_state *state, PyObject *object, enum role role, struct operand_reader *reader,
                       struct owned_operand *result);

/* Has further objects of this one's type go by torch_operand_from, if the type has DLPack's C exchange table; `library`
 * is theirs. Returns 0, or -1 with an exception set. */
int torch_learn(struct module_state *state, PyObject *object, PyObject *library);

/* A new reference to the function that counts writes to the library's tensors; NULL without an exception: none does. */
PyObject *torch_count_writes(PyObject *library);

/* What torch makes tensors of one dtype and shape by. Whoever makes many keeps it, so that each tensor like the one
 * before is made by the same objects: 0.2 us of 1.6. Begins as {0}. */
struct tensor_form {
    PyObject *arguments; /* owned: sizes, strides and dtype; NULL: none yet */
    enum dtype dtype;
    int ndim;
    Py_ssize_t shape[MAX_DIMENSIONS];
};
void tensor_form_clear(struct tensor_form *form);

/* A new contiguous tensor where a plain torch.Tensor is, allocated for torch's current stream, and described in *result
 * (to be cleared). `form` may be NULL. NULL without an exception where torch itself has to be asked. */
PyObject *torch_empty_like(const struct module_state *state, const struct owned_operand *like,
                           const struct device_shape *shape, struct tensor_form *form, struct owned_operand *result);

/* The same for a cupy.ndarray, once cupy_learn has met one: 1, 0 or -1. */
int cupy_operand_from(struct module_state *state, PyObject *object, enum role role, struct operand_reader *reader,
                      struct owned_operand *result);
int cupy_learn(struct module_state *state, PyObject *object, PyObject *library);
PyObject *cupy_empty_like(struct module_state *state, const struct owned_operand *like, struct owned_operand *result);

void device_operand_clear(struct owned_operand *operand);

/* Gives an operand of one element or more these strides, in bytes; NULL are those of C order. `result->strides` is NULL
 * after it where they are these and the data is aligned. `strides` may be its own `steps`. */
void device_operand_set_strides(struct owned_operand *result, const Py_ssize_t *strides);

/* Checks that every element lies in memory that the driver knows (device_check_pointer_near), and finds its device. The
 * operand has elements. Returns 0, or -1 with an exception set. */
int device_operand_locate(struct module_state *state, const char *what, struct device_range *known,
                          struct owned_operand *result);

/* Whether an operand is C-contiguous and aligned, of this dtype and shape. */
bool operand_is(const struct operand *operand, enum dtype dtype, int ndim, const Py_ssize_t *shape);

/* Whether an operand is of the dtype, shape and order of memory that a sum is to have. */
bool operand_is_expected(const struct operand *operand, const struct device_shape *expected);

#endif
