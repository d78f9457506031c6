/* From a Python object to a struct operand: host.c for host memory, device.c for device memory, by way of
 * device_operand.c (the array interface), from_dlpack.c, torch.c and cupy.c. */
#ifndef VECADD_PY_OPERANDS_OPERANDS_H
#define VECADD_PY_OPERANDS_OPERANDS_H

#include "base/dtype.h"
#include "base/operand.h"
#include "gpu/device.h"
#include "py/base/python.h"
#include "py/operands/dlpack.h"

/* An operand's place in a call: the order of every array of three operands. */
enum role { ROLE_A, ROLE_B, ROLE_OUT, ROLE_COUNT };
extern const char *const role_name[ROLE_COUNT]; /* "a", "b", "out" */

/* Describes a host addition. Its operands have to be ndarrays (no subclass) of one of vecadd's dtypes, of one shape and
 * memory order, contiguous and aligned, with `out` NULL or writable and overlapping each input wholly or not at all.
 * add->c is NULL where out is. Returns NULL, or a short reason why this is not such an addition, with an exception set
 * where dtype_of_descr leaves one. */
struct batch_add;
const char *host_run_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], struct batch_add *add);

/* Whether these arrays are still as `add` describes them: Python code that runs between a look and the work, an
 * object's interface or a finalizer, may resize an array or change its shape. None of the three is NULL. */
bool host_run_is(struct module_state *state, PyObject *const objects[ROLE_COUNT], const struct batch_add *add);

/* Describes a contiguous, aligned ndarray of vecadd's dtypes; false for any other. */
bool host_operand(struct module_state *state, PyArrayObject *array, struct operand *operand);

enum library_flag {
    LIBRARY_HAS_EXCHANGE_TABLE = 1 << 0,
    LIBRARY_HAS_ATTRIBUTES = 1 << 1,
    LIBRARY_BY_DLPACK_ONLY = 1 << 2,
    LIBRARY_ADOPTS = 1 << 3,
    LIBRARY_HAS_HOST_ARRAYS = 1 << 4,
    LIBRARY_SUMS_IN_C_ORDER = 1 << 5,
    LIBRARY_SUMS_AS_FIRST = 1 << 6,
    LIBRARY_NUMBERS_AS_TORCH = 1 << 7,
    LIBRARY_RECORDS_STREAMS = 1 << 8,
    LIBRARY_HAS_BFLOAT16 = 1 << 9,
};

/* A library of arrays, read once (library.h). The module's state keeps it, so that no reference is counted. */
struct library {
    PyObject *object;       /* the vecadd.interop.Library */
    unsigned flags;         /* enum library_flag: its attributes of these names */
    PyObject *count_writes; /* its attribute of this name, owned; NULL: None */
};

/* What a fast reader, torch.c or cupy.c, knows of a type of arrays: made at the first such array, kept for good. */
struct kind {
    const struct library *library;
    void (*clear)(struct kind *kind);
};

/* An operand and the references that keep it: a NumPy array or an array in device memory, as a DeviceArray or any
 * object with __cuda_array_interface__. Must not be moved: its operand's shape and strides may point into it. */
struct owned_operand {
    struct operand operand;             /* its data is the address of the first element */
    Py_ssize_t extents[MAX_DIMENSIONS]; /* storage of the shape, for other libraries' arrays */
    Py_ssize_t steps[MAX_DIMENSIONS];   /* storage of their strides */
    PyObject *exported; /* the object that was read, owned until the work is queued; NULL for a DeviceArray */
    const struct library *library; /* NULL where vecadd knows none */
    bool needs_keepalive;          /* `exported` has to live until the work is done (deferred_release.h) */
};

/* A new device array's layout, and the operand whose library makes it. */
struct device_shape {
    enum dtype dtype;
    int ndim;
    const Py_ssize_t *shape;
    enum role like;
    const Py_ssize_t *strides; /* bytes; of contiguous memory in another order than C's; NULL: C order */
};

/* The ranges of memory with a list's arrays, by the arrays' addresses: caching allocators cut small tensors out of
 * ranges of 2 MiB, and lists come in any order. Begins as {0}. */
enum { KNOWN_RANGES = 256, KNOWN_RANGE_BITS = 21 };
struct known_ranges {
    struct device_range at[KNOWN_RANGES];
};

/* What the arrays of one call share, so that it is asked once. Begins as {0}, nothing known. Only for calls in which no
 * library's current stream changes. */
struct operand_reader {
    struct device_range range[ROLE_COUNT]; /* the range of each role's last array */
    struct known_ranges *ranges;           /* of a list's arrays; NULL for a few arrays */
    struct known_kind {
        PyTypeObject *type; /* of each role's last tensor, and what torch.c knows of it: borrowed */
        const struct kind *kind;
    } torch[ROLE_COUNT];
    struct known_stream {
        int device; /* one more than the ordinal; 0: not known */
        void *stream;
    } torch_stream, cupy_stream;
    struct known_dtype {
        struct dl_data_type type; /* of the last tensor; without components: not known */
        enum dtype dtype;
    } torch_dtype;
    bool defers;           /* see DEVICE_OPERAND_DEFERRED */
    bool leaves;           /* see DEVICE_OPERAND_LEFT */
    bool again;            /* this call has read and checked the tensors before: only their shape is needed */
    int keeps_gradients;   /* one more than PyTorch's grad mode, 1 or 0; 0: not known */
    int recorded;          /* 1: PyTorch records no operations now, 2: it does; 0: not known */
    int outside_inference; /* 1: PyTorch is outside of its inference mode now, 2: inside; 0: not known */
};

/* Describes `object` if it is in device memory. Returns 1 (to be cleared), 0 where it is not (nothing to clear), or -1
 * with an exception set. Refuses a null or unknown pointer, elements outside the allocation, a mask, and
 * dtypes that the kernels do not know. `stream` is the caller's stream=, or NULL; it is passed to producers that order
 * a consumer's stream themselves (DLPack's). */
int device_operand_from(struct module_state *state, PyObject *object, enum role role, PyObject *stream,
                        struct owned_operand *result);

/* Some producers order the consumer's stream themselves and have to be given it. If the caller gave none, it is the
 * stream of another operand, which may not be known yet. A reader that defers then makes device_operand_read return
 * this value (to be cleared), and device_operand_read_deferred reads the object once the stream is known. */
enum { DEVICE_OPERAND_DEFERRED = 2 };

/* Some objects only their library can add, for example tensors that need their gradient or arrays that are traced. A
 * reader that leaves them to it makes device_operand_read return this value (to be cleared), with only result->library
 * set. For other readers they are an error. */
enum { DEVICE_OPERAND_LEFT = 3 };

/* device_operand_from for one of a call's many arrays. */
int device_operand_read(struct module_state *state, PyObject *object, enum role role, PyObject *stream,
                        struct operand_reader *reader, struct owned_operand *result);
int device_operand_read_deferred(struct module_state *state, PyObject *object, enum role role, void *stream,
                                 struct owned_operand *result);

/* device_operand_from for an object with a DLPack tensor in memory of CUDA; `what` names it in messages. The tensor's
 * owner replaces result->exported, which may be set. The producer orders its work before later work on `stream`. */
int dlpack_operand_from(struct module_state *state, PyObject *object, const char *what, void *stream,
                        struct owned_operand *result);

/* device_operand_from for the __cuda_array_interface__ of an object; result->exported and library are set. Returns 0,
 * or -1 with an exception set. */
int cai_operand_from(struct module_state *state, PyObject *interface, const char *what, struct owned_operand *result);

/* Sets size and shape from ndim and extents. Returns 0, or -1 with an exception where that is larger than any memory.
 */
int device_operand_measure(const char *what, struct owned_operand *result);

/* device_operand_from for a tensor of a kind that torch_kind_make has made, in a tenth of the time. Returns 1, 0 where
 * another reader has to read it (without an exception), or -1 with an exception set. */
int torch_operand_from(struct module_state *state, PyObject *object, const struct kind *kind, enum role role,
                       struct operand_reader *reader, struct owned_operand *result);

/* Whether PyTorch lets an x be written that torch_operand_from has read: 1, 0 (also where another reader has), or -1
 * with an exception set. */
int torch_operand_may_be_written(PyObject *object, struct operand_reader *reader);

/* The kind of the object's type, by which torch_operand_from reads; NULL where the type has no exchange table of
 * DLPack's, or with an exception set. */
struct kind *torch_kind_make(struct module_state *state, PyObject *object, const struct library *library);

/* The last plain tensor of a list, and by it all of its dtype, shape, memory order and device. Begins as {0}. */
struct known_tensor {
    bool set;
    struct owned_operand like; /* in C order; its references are not set */
    struct dl_data_type type;
    struct dl_device device;
    int64_t strides[MAX_DIMENSIONS]; /* as the table gives them: of an axis of one element they may be anything */
    size_t bytes;
};

/* Reads a list's pair whose operands are all plain tensors of one dtype and shape in C order, of types that
 * torch_operand_from has met in their roles: known->like is then x, and data[] the addresses of all (out's is NULL
 * where the pair has none). Owns no reference. Returns 1; 0 for every other pair, whose operands device_operand_read
 * reads, to report what is wrong with them; or -1 with an exception set. `reader` has ranges; x and y are not NULL. */
int torch_pair_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], struct operand_reader *reader,
                    struct known_tensor *known, void *data[ROLE_COUNT]);

/* The arguments with which torch makes tensors of one dtype and shape. Callers that make many tensors keep them, so
 * that each tensor like the one before reuses the objects: that saves 0.2 us of 1.6. Begins as {0}. */
struct tensor_form {
    PyObject *arguments; /* owned: sizes, strides and dtype; NULL: none yet */
    enum dtype dtype;
    int ndim;
    Py_ssize_t shape[MAX_DIMENSIONS];
};
void tensor_form_clear(struct tensor_form *form);

/* A new tensor in C order in place of a plain torch.Tensor, allocated for torch's current stream. Sets the operand,
 * object and library of *result. `form` may be NULL. NULL where vecadd.interop has to make it, or with an exception
 * set. */
PyObject *torch_empty_like(const struct module_state *state, const struct owned_operand *like,
                           const struct device_shape *shape, struct tensor_form *form, struct owned_operand *result);

/* The same for cupy.ndarray. */
int cupy_operand_from(struct module_state *state, PyObject *object, const struct kind *kind, enum role role,
                      struct operand_reader *reader, struct owned_operand *result);
struct kind *cupy_kind_make(struct module_state *state, PyObject *object, const struct library *library);
PyObject *cupy_empty_like(struct module_state *state, const struct owned_operand *like,
                          const struct device_shape *expected, struct owned_operand *result);

void device_operand_clear(struct owned_operand *operand);

/* Sets the strides, in bytes, of an operand of one element or more; NULL: C order. Leaves `result->strides` NULL for C
 * order and aligned data. `strides` may be its own `steps`. */
void device_operand_set_strides(struct owned_operand *result, const Py_ssize_t *strides);

/* Checks that every element is in memory that the driver knows (device_check_pointer_near), and finds its device. The
 * operand has elements. Returns 0, or -1 with an exception set. */
int device_operand_locate(struct module_state *state, const char *what, struct device_range *known,
                          struct owned_operand *result);

/* Whether an operand is C-contiguous and aligned, with this dtype and shape. */
bool operand_is(const struct operand *operand, enum dtype dtype, int ndim, const Py_ssize_t *shape);

/* Whether an operand has the dtype, shape and memory order expected of a sum. */
bool operand_is_expected(const struct operand *operand, const struct device_shape *expected);

/* A new sum as it was requested: known without reading it. Its shape and strides are `expected`'s own. */
struct operand operand_of_sum(const struct device_shape *expected, int device, void *data, void *stream);

struct host_sum {
    enum dtype dtype;
    PyArray_Descr *descr; /* owned: NumPy's choice of long and long long, which vecadd treats as one */
};

/* Describes a and b, of which a number becomes a 0-d array, and finds the sum's dtype as numpy.add does. Returns NULL,
 * and the caller clears *sum and both operands; or, with nothing to clear, a short reason why NumPy has to add them,
 * for example that their sum has fewer than `least` bytes. An exception is then set where clear_refusal() leaves one.
 */
const char *host_pair_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], npy_intp least,
                           struct owned_operand operands[ROLE_COUNT], struct host_sum *sum);

/* Describes host operands of any kind, which a GPU can add once they are copied into arrays of the sum's dtype and
 * shape: `exported` is numpy.asarray's array, or a Python number, whose dtype gives way. An operand's dtype is the
 * sum's, its data and strides are the array's. Finds the sum's dtype, in
 * native byte order and without metadata. Returns 0, and the caller clears *sum and both operands; or -1 with an
 * exception set. */
int host_any_pair_from(struct module_state *state, PyObject *const objects[ROLE_COUNT],
                       struct owned_operand operands[ROLE_COUNT], struct host_sum *sum);

/* Describes out; false where it is not a plain ndarray of a supported dtype. */
bool host_out_from(struct module_state *state, PyObject *object, struct owned_operand *operand);

#endif
