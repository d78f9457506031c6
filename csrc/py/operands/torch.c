/* PyTorch's tensors through DLPack's C exchange table, 0.1 us a tensor where __cuda_array_interface__ takes 2.
 *
 * Reads only plain tensors: aligned, with elements, in device memory, that need no gradient, have no names and are no
 * conjugated or negated views, while PyTorch records nothing. All others are left to operands/device.c, which leaves
 * them to PyTorch or reports what is wrong with them. */
#include <stdint.h>
#include <string.h>

#include "gpu/device.h"
#include "py/base/python.h"
#include "py/operands/dlpack.h"
#include "py/operands/dtypes.h"
#include "py/operands/library.h"
#include "py/operands/operands.h"

/* What is known of a type of tensors. */
struct torch_kind {
    struct kind kind;
    const struct dl_exchange *exchange; /* lives as long as the process */
    struct descriptor requires_grad, base;
    struct descriptor version; /* an inference tensor has none; without an object: nor has any tensor here */
    /* Owned: the library's attributes of these names. NULL: this torch has no such thing. */
    PyObject *recorders, *forward_mode, *in_inference_mode;
    PyObject *has_names;     /* the type's method, owned; NULL: this torch has no named tensors */
    PyObject *empty_strided; /* makes tensors of exactly this type, owned; NULL: vecadd.interop makes them */
};

/* The functions below that return false do so where operands/device.c has to read the tensor, maybe with an exception
 * set. */

/* The known range that may contain this address. */
static inline struct device_range *
known_range(struct known_ranges *ranges, const void *data)
{
    return &ranges->at[((uintptr_t)data >> KNOWN_RANGE_BITS) % KNOWN_RANGES];
}

#define LEGACY_STREAM ((void *)1)

static void
kind_clear(struct kind *given)
{
    struct torch_kind *kind = (struct torch_kind *)given;
    Py_XDECREF(kind->recorders);
    Py_XDECREF(kind->forward_mode);
    Py_XDECREF(kind->in_inference_mode);
    Py_XDECREF(kind->empty_strided);
    Py_XDECREF(kind->has_names);
    descriptor_clear(&kind->base);
    descriptor_clear(&kind->requires_grad);
    descriptor_clear(&kind->version);
}

/* The table of the major version that vecadd knows; NULL where the library has none, or with an exception set. */
static const struct dl_exchange *
exchange_of(PyObject *type)
{
    OWNED PyObject *capsule = attribute_of(type, DL_EXCHANGE_ATTRIBUTE);
    const struct dl_exchange_header *header = capsule && PyCapsule_IsValid(capsule, DL_EXCHANGE_CAPSULE)
                                                  ? PyCapsule_GetPointer(capsule, DL_EXCHANGE_CAPSULE)
                                                  : NULL;
    while (header && header->version.major != DLPACK_MAJOR)
        header = header->previous;
    const struct dl_exchange *exchange = (const struct dl_exchange *)header;
    return exchange && exchange->tensor_from_object && exchange->current_stream ? exchange : NULL;
}

/* False with an exception set too. */
static bool
is_tensor_itself(PyObject *type)
{
    OWNED PyObject *name = attribute_of(type, "__name__"), *module = name ? attribute_of(type, "__module__") : NULL;
    return module && PyUnicode_Check(name) && PyUnicode_Check(module) &&
           PyUnicode_CompareWithASCIIString(name, "Tensor") == 0 &&
           PyUnicode_CompareWithASCIIString(module, "torch") == 0;
}

struct kind *
torch_kind_make(struct module_state *state, PyObject *object, const struct library *library)
{
    PyObject *type = (PyObject *)Py_TYPE(object);
    const struct dl_exchange *exchange = exchange_of(type);
    struct torch_kind *kind = exchange ? PyMem_Malloc(sizeof *kind) : NULL;
    if (!kind)
        return exchange ? (PyErr_NoMemory(), NULL) : NULL;
    *kind = (struct torch_kind){.kind = {library, kind_clear},
                                .exchange = exchange,
                                .recorders = attribute_of(library->object, "recorders"),
                                .forward_mode = attribute_of(library->object, "forward_mode"),
                                .in_inference_mode = attribute_of(library->object, "in_inference_mode"),
                                .empty_strided =
                                    is_tensor_itself(type) ? attribute_of(library->object, "empty_strided") : NULL,
                                .has_names = attribute_of(type, "has_names"),
                                .base = descriptor_find(type, state->names[NAME_BASE]),
                                .requires_grad = descriptor_find(type, state->names[NAME_REQUIRES_GRAD]),
                                .version = descriptor_find(type, state->names[NAME_VERSION])};
    return &kind->kind;
}

/* Whether the answer, whose reference is taken, is False; not where it is NULL. */
static bool
is_false(PyObject *answer)
{
    OWNED PyObject *given = answer;
    return given && Py_IsFalse(given);
}

/* Whether object.method() returns False; not where the call fails. */
static bool
denies(PyObject *object, PyObject *method)
{
    return is_false(PyObject_CallMethodObjArgs(object, method, NULL));
}

/* Whether PyTorch keeps no gradients now; false as well with an exception set. Asked once a call. */
static bool
keeps_no_gradients(const struct torch_kind *kind, struct operand_reader *reader)
{
    if (!reader->keeps_gradients) {
        OWNED PyObject *kept = PyObject_CallMethod(kind->kind.library->object, "keeps_gradients", NULL);
        if (!kept)
            return false;
        reader->keeps_gradients = Py_IsFalse(kept) ? 1 : 2;
    }
    return reader->keeps_gradients == 1;
}

/* Whether no gradient would be lost: integers have none, and no_grad mode records none. A list asks for the mode first:
 * each tensor's attribute takes 0.04 us. */
static bool
needs_no_gradient(PyObject *tensor, const struct torch_kind *kind, struct operand_reader *reader)
{
    if (reader->ranges && keeps_no_gradients(kind, reader))
        return true;
    PyObject *wanted = PyErr_Occurred() ? NULL : descriptor_get(&kind->requires_grad, tensor);
    const bool read = wanted;
    return is_false(wanted) || (read && keeps_no_gradients(kind, reader));
}

/* Whether a function without arguments gives nothing but 0, False or None. */
static bool
answers_no(PyObject *function)
{
    OWNED PyObject *answer = PyObject_CallNoArgs(function);
    return answer && PyObject_IsTrue(answer) == 0;
}

/* Whether no mode, tracer or forward-mode derivative of PyTorch's misses operations of ours. Asked once a call: 0.08 us
 * in all. */
static bool
is_unrecorded(const struct module_state *state, const struct torch_kind *kind, struct operand_reader *reader)
{
    if (!reader->recorded) {
        bool unrecorded = true;
        const Py_ssize_t count = kind->recorders ? PyTuple_Size(kind->recorders) : 0;
        for (Py_ssize_t i = 0; i < count && unrecorded; i++)
            unrecorded = answers_no(PyTuple_GetItem(kind->recorders, i));
        if (!unrecorded && !PyErr_Occurred()) { /* the library looks more closely */
            OWNED PyObject *why = PyObject_CallMethod(kind->kind.library->object, "records", NULL);
            unrecorded = why && Py_IsNone(why);
        }
        OWNED PyObject *level = NULL;
        if (unrecorded && kind->forward_mode &&
            optional_attribute(kind->forward_mode, state->names[NAME_CURRENT_LEVEL], &level) < 0)
            return false;
        unrecorded = unrecorded && (!level || PyLong_AsLong(level) < 0);
        if (PyErr_Occurred())
            return false;
        reader->recorded = unrecorded ? 1 : 2;
    }
    return reader->recorded == 1;
}

/* False as well with an exception set. Asked once a call. */
static bool
is_outside_inference(const struct torch_kind *kind, struct operand_reader *reader)
{
    if (!reader->outside_inference) {
        const bool outside = !kind->in_inference_mode || answers_no(kind->in_inference_mode);
        if (PyErr_Occurred())
            return false;
        reader->outside_inference = outside ? 1 : 2;
    }
    return reader->outside_inference == 1;
}

/* Whether PyTorch lets the tensor be written. Outside of its inference mode PyTorch lets no inference tensor be
 * written, which has no version to count the write by. Inside, reading the version would raise, which takes longer than
 * the question, asked once a call. */
static bool
torch_may_be_written(PyObject *tensor, const struct torch_kind *kind, struct operand_reader *reader)
{
    if (!kind->in_inference_mode || !kind->version.object)
        return true;
    if (!is_outside_inference(kind, reader))
        return !PyErr_Occurred();
    OWNED PyObject *version = descriptor_get(&kind->version, tensor);
    return version;
}

int
torch_operand_may_be_written(PyObject *object, struct operand_reader *reader)
{
    const struct known_kind *x = &reader->torch[ROLE_A];
    if (Py_TYPE(object) != x->type)
        return 0;
    return torch_may_be_written(object, (const struct torch_kind *)x->kind, reader) ? 1 : clear_refusal();
}

/* Whether an address is a multiple of a power of two. A division instead would add 5 % to the reading of a list's
 * tensor. */
static bool
is_multiple(const void *address, size_t power)
{
    return ((uintptr_t)address & (power - 1)) == 0;
}

/* Whether the stride of some axis is an odd number of elements. */
static bool
has_odd_stride(const struct owned_operand *tensor)
{
    const Py_ssize_t itemsize = (Py_ssize_t)dtype_table[tensor->operand.dtype].itemsize;
    if (!tensor->operand.strides)
        return tensor->operand.size > 1;
    for (int i = 0; i < tensor->operand.ndim; i++)
        if (tensor->operand.shape[i] > 1 && tensor->operand.strides[i] / itemsize % 2 != 0)
            return true;
    return false;
}

/* Whether the tensor is not a negated view. is_neg() takes 0.18 us because PyTorch releases the GIL in it, and would
 * lengthen the reading of a list by half, so it is called for views alone. What is negated is a view: the imaginary
 * part of a conjugated tensor, whose elements are an even number apart in each view of it, or torch._neg_view()'s of
 * any tensor. PyTorch does not say of inference tensors that they are views. Not detected is the `data` of a view of
 * torch._neg_view()'s whose elements are adjacent, and such a view of an inference tensor outside of inference mode. */
static bool
is_not_negated(const struct module_state *state, PyObject *tensor, const struct torch_kind *kind,
               struct operand_reader *reader, const struct owned_operand *result)
{
    if (has_odd_stride(result) && is_outside_inference(kind, reader)) {
        OWNED PyObject *base = descriptor_get(&kind->base, tensor);
        if (!base || Py_IsNone(base))
            return base;
    }
    return !PyErr_Occurred() && denies(tensor, state->names[NAME_IS_NEG]);
}

/* Whether kernels of ours may add the tensor: PyTorch records nothing now, and the tensor needs no gradient, has no
 * names and is not a conjugated or negated view. */
static bool
torch_is_plain(const struct module_state *state, PyObject *tensor, const struct torch_kind *kind,
               struct operand_reader *reader, const struct owned_operand *result)
{
    const struct operand *operand = &result->operand;
    const struct dtype_row *row = &dtype_table[operand->dtype];
    if (!is_unrecorded(state, kind, reader))
        return false;
    if (kind->has_names && !is_false(PyObject_CallFunctionObjArgs(kind->has_names, tensor, NULL)))
        return false;
    if (value_is_float(row->value) && !needs_no_gradient(tensor, kind, reader))
        return false;
    if (row->components == 2 && !denies(tensor, state->names[NAME_IS_CONJ]))
        return false;
    return is_not_negated(state, tensor, kind, reader, result);
}

/* Reads a tensor of one element or more. Its strides are in elements, and NULL for C order. */
static bool
read_layout(const struct dl_tensor *tensor, struct owned_operand *result)
{
    const size_t itemsize = dtype_table[result->operand.dtype].itemsize;
    if (tensor->ndim < 0 || tensor->ndim > MAX_DIMENSIONS)
        return false;
    size_t size = 1;
    bool contiguous = true;
    for (int i = tensor->ndim; i-- > 0;) {
        int64_t extent = tensor->shape[i];
        contiguous = contiguous && (extent == 1 || !tensor->strides || tensor->strides[i] == (int64_t)size);
        if (extent < 1 || __builtin_mul_overflow(size, (size_t)extent, &size))
            return false;
        result->extents[i] = extent;
    }
    result->operand.ndim = tensor->ndim;
    result->operand.shape = result->extents;
    result->operand.strides = NULL;
    result->operand.size = size;
    for (int i = 0; !contiguous && i < tensor->ndim; i++)
        if (__builtin_mul_overflow(tensor->strides[i], (int64_t)itemsize, &result->steps[i]))
            return false;
    if (!contiguous)
        result->operand.strides = result->steps;
    size_t bytes;
    return !__builtin_mul_overflow(size, itemsize, &bytes) && bytes <= (size_t)PY_SSIZE_T_MAX;
}

/* PyTorch adds only those of ml_dtypes' dtypes that its interface names: it has float8_e4m3fn, and does not add it. */
static bool
read_dtype(const struct torch_kind *kind, struct dl_data_type type, struct known_dtype *known, enum dtype *dtype)
{
    if (known->type.code != type.code || known->type.bits != type.bits || known->type.components != type.components) {
        enum dtype found;
        if (!dtype_of_dl_type(type, &found) || (dtype_is_ml(found) && !library_has_dtype(kind->kind.library, found)))
            return false;
        *known = (struct known_dtype){.type = type, .dtype = found};
    }
    *dtype = known->dtype;
    return true;
}

static bool
read_stream(const struct dl_exchange *exchange, struct known_stream *known, struct operand *operand)
{
    if (known->device != operand->device + 1) {
        void *stream;
        if (exchange->current_stream(DL_CUDA, operand->device, &stream) < 0)
            return false;
        *known = (struct known_stream){operand->device + 1, stream == LEGACY_STREAM ? NULL : stream};
    }
    operand->stream = known->stream;
    return true;
}

/* Whether a tensor's first element is at an address, and at a multiple of its component's size. */
static bool
torch_is_aligned(const struct dl_tensor *tensor, enum dtype dtype)
{
    /* Null: a tensor of torch.func's, without memory. */
    return tensor->data &&
           is_multiple((char *)tensor->data + tensor->byte_offset, component_size[dtype_table[dtype].component]);
}

/* Describes a tensor that is aligned, with elements, in device memory. Sets no reference of *result. */
static bool
torch_describe(const struct torch_kind *kind, const struct dl_tensor *tensor, struct operand_reader *reader,
               struct owned_operand *result)
{
    struct operand *operand = &result->operand;
    *operand = (struct operand){.place = PLACE_DEVICE,
                                .device = tensor->device.id,
                                .writable = true,
                                .has_stream = true,
                                .stream_kind = STREAM_CURRENT};
    if ((tensor->device.type != DL_CUDA && tensor->device.type != DL_CUDA_MANAGED) ||
        !read_dtype(kind, tensor->dtype, &reader->torch_dtype, &operand->dtype) || !read_layout(tensor, result))
        return false;
    operand->data = (char *)tensor->data + tensor->byte_offset;
    return torch_is_aligned(tensor, operand->dtype) && read_stream(kind->exchange, &reader->torch_stream, operand);
}

/* device_operand_locate by what is known of the reader's other arrays. */
static int
torch_locate(struct module_state *state, enum role role, struct operand_reader *reader, struct owned_operand *result)
{
    enum { MOST = 16 }; /* places that one range takes, all that a segment of PyTorch's allocator has */
    if (!reader->ranges)
        return device_operand_locate(state, role_name[role], &reader->range[role], result);
    struct device_range *known = known_range(reader->ranges, result->operand.data);
    const uintptr_t before = known->begin;
    if (device_operand_locate(state, role_name[role], known, result) < 0)
        return -1;
    const uintptr_t first = known->begin >> KNOWN_RANGE_BITS, last = (known->end - 1) >> KNOWN_RANGE_BITS;
    for (uintptr_t i = first; known->begin != before && last - first < MOST && i <= last; i++)
        reader->ranges->at[i % KNOWN_RANGES] = *known;
    return 0;
}

int
torch_operand_from(struct module_state *state, PyObject *object, const struct kind *given, enum role role,
                   struct operand_reader *reader, struct owned_operand *result)
{
    const struct torch_kind *kind = (const struct torch_kind *)given;
    struct dl_tensor tensor;
    if (kind->exchange->tensor_from_object(object, &tensor) < 0 || !torch_describe(kind, &tensor, reader, result) ||
        !(reader->again || torch_is_plain(state, object, kind, reader, result)) ||
        (role == ROLE_OUT && !torch_may_be_written(object, kind, reader)))
        return clear_refusal(); /* operands/device.c reads it again and reports any error */
    if (!reader->again && torch_locate(state, role, reader, result) < 0)
        return -1;
    reader->torch[role] = (struct known_kind){Py_TYPE(object), given};
    result->exported = Py_NewRef(object);
    result->library = given->library;
    return 1;
}

/* A list's pair of plain tensors, read without an operand for each.
 *
 * Most pairs are tensors of one dtype and shape, and often of the dtype and shape of the pair before. Such a tensor
 * differs from the last one in its address alone, so one description serves them all: a pair takes 1000 instructions
 * less, of 3900 for one in place, 1800 of which are PyTorch's answers. */

/* Whether torch_describe would say of a tensor what it said of the last one, apart from the address. */
static bool
is_alike(const struct known_tensor *known, const struct dl_tensor *tensor)
{
    if (!known->set || tensor->ndim != known->like.operand.ndim || !tensor->strides ||
        memcmp(&tensor->dtype, &known->type, sizeof known->type) != 0 ||
        memcmp(&tensor->device, &known->device, sizeof known->device) != 0)
        return false;
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] != known->like.extents[i] || tensor->strides[i] != known->strides[i])
            return false;
    return true;
}

/* Describes a tensor, and those alike with it. False where torch_describe cannot, or where it is not in C order. */
static bool
describe_alike(const struct torch_kind *kind, const struct dl_tensor *tensor, struct operand_reader *reader,
               struct known_tensor *known)
{
    known->set = false;
    if (!tensor->strides || !torch_describe(kind, tensor, reader, &known->like) || known->like.operand.strides)
        return false;
    known->type = tensor->dtype;
    known->device = tensor->device;
    memcpy(known->strides, tensor->strides, (size_t)tensor->ndim * sizeof *known->strides);
    known->bytes = known->like.operand.size * dtype_table[known->like.operand.dtype].itemsize;
    known->set = true;
    return true;
}

static bool
is_located(struct module_state *state, enum role role, struct operand_reader *reader, struct known_tensor *known)
{
    struct operand *operand = &known->like.operand;
    const struct device_range *range = known_range(reader->ranges, operand->data);
    return (device_range_contains(range, (uintptr_t)operand->data, known->bytes) &&
            range->device == known->device.id) ||
           (torch_locate(state, role, reader, &known->like) == 0 && operand->device == known->device.id);
}

/* Reads a tensor whose type was met in this role. x decides what its pair's other tensors have to be like. */
static bool
read_one(struct module_state *state, PyObject *object, enum role role, struct operand_reader *reader,
         struct known_tensor *known)
{
    const struct torch_kind *kind = (const struct torch_kind *)reader->torch[role].kind;
    struct dl_tensor tensor;
    if (kind->exchange->tensor_from_object(object, &tensor) < 0)
        return false;
    if (!is_alike(known, &tensor) && !(role == ROLE_A && describe_alike(kind, &tensor, reader, known)))
        return false;
    if (!torch_is_aligned(&tensor, known->like.operand.dtype))
        return false;
    known->like.operand.data = (char *)tensor.data + tensor.byte_offset;
    return is_located(state, role, reader, known) && torch_is_plain(state, object, kind, reader, &known->like) &&
           (role != ROLE_OUT || torch_may_be_written(object, kind, reader));
}

int
torch_pair_from(struct module_state *state, PyObject *const objects[ROLE_COUNT], struct operand_reader *reader,
                struct known_tensor *known, void *data[ROLE_COUNT])
{
    const bool in_place = objects[ROLE_OUT] == objects[ROLE_A];
    data[ROLE_OUT] = NULL;
    for (int role = 0; role < ROLE_COUNT; role++)
        if (objects[role] && !(role == ROLE_OUT && in_place) && Py_TYPE(objects[role]) != reader->torch[role].type)
            return 0;
    for (int role = 0; role < ROLE_COUNT; role++) {
        if (!objects[role])
            continue;
        const bool as_x = role == ROLE_OUT && in_place;
        if (as_x ? !torch_may_be_written(objects[role], (const struct torch_kind *)reader->torch[ROLE_A].kind, reader)
                 : !read_one(state, objects[role], (enum role)role, reader, known)) {
            known->set = false; /* an error may have left it half described */
            return clear_refusal();
        }
        data[role] = as_x ? data[ROLE_A] : known->like.operand.data;
    }
    known->like.operand.data = data[ROLE_A];
    known->like.library = reader->torch[ROLE_A].kind->library;
    return 1;
}

/* Sums as tensors of PyTorch's own allocator. */

void
tensor_form_clear(struct tensor_form *form)
{
    Py_CLEAR(form->arguments);
}

static bool
form_is(const struct tensor_form *form, const struct device_shape *expected)
{
    return form->arguments && form->dtype == expected->dtype && form->ndim == expected->ndim &&
           memcmp(form->shape, expected->shape, (size_t)expected->ndim * sizeof *expected->shape) == 0;
}

/* Returns 0, or -1 with an exception set and nothing to clear. */
static int
form_fill(const struct module_state *state, struct tensor_form *form, const struct owned_operand *like,
          const struct device_shape *expected)
{
    Py_ssize_t strides[MAX_DIMENSIONS], step = 1;
    tensor_form_clear(form);
    for (int i = expected->ndim; i-- > 0; step *= expected->shape[i])
        strides[i] = step;
    OWNED PyObject *sizes = tuple_of_sizes(expected->ndim, expected->shape);
    OWNED PyObject *steps = tuple_of_sizes(expected->ndim, strides);
    OWNED PyObject *dtype = PyObject_GetAttr(like->exported, state->names[NAME_DTYPE]);
    form->arguments = sizes && steps && dtype ? PyTuple_Pack(3, sizes, steps, dtype) : NULL;
    form->dtype = expected->dtype;
    form->ndim = expected->ndim;
    memcpy(form->shape, expected->shape, (size_t)expected->ndim * sizeof *expected->shape);
    return form->arguments ? 0 : -1;
}

/* Calls the function that torch's compiled code calls: 1 us, where torch.empty_like parses arguments and dispatches for
 * 4.8 on an H200's host. The exchange table's allocator would wrap one tensor in another, whose memory record_stream()
 * does not know. */
static PyObject *
make_tensor(const struct module_state *state, const struct torch_kind *kind, const struct owned_operand *like,
            const struct device_shape *expected, struct tensor_form *form)
{
    if (!form_is(form, expected) && form_fill(state, form, like, expected) < 0)
        return NULL;
    return PyObject_Call(kind->empty_strided, form->arguments, NULL);
}

PyObject *
torch_empty_like(const struct module_state *state, const struct owned_operand *like,
                 const struct device_shape *expected, struct tensor_form *form, struct owned_operand *result)
{
    const struct kind *found = like->exported ? kind_of(state, like->exported) : NULL;
    const struct torch_kind *kind = (const struct torch_kind *)found;
    const struct operand *operand = &like->operand;
    struct operand sum = operand_of_sum(expected, operand->device, NULL, operand->stream);
    struct tensor_form own;
    struct status status;
    int device;
    if (!found || !library_is(found->library, LIBRARY_HAS_EXCHANGE_TABLE) || !kind->empty_strided ||
        sum.dtype != operand->dtype || sum.size == 0 || sum.strides)
        return NULL;
    if (!(form && form->arguments) && (device_current(&device, &status) < 0 || device != operand->device))
        return NULL;
    own.arguments = NULL;
    OWNED PyObject *made = make_tensor(state, kind, like, expected, form ? form : &own);
    tensor_form_clear(&own);
    struct dl_tensor tensor;
    if (made && Py_TYPE(made) == Py_TYPE(like->exported) && kind->exchange->tensor_from_object(made, &tensor) == 0 &&
        tensor.data && tensor.device.id == operand->device) {
        sum.data = (char *)tensor.data + tensor.byte_offset; /* all else is as requested */
        result->operand = sum;
        result->exported = Py_NewRef(made);
        result->library = found->library;
        return hand_out(&made);
    }
    clear_refusal(); /* vecadd.interop makes one, or raises torch's own error */
    return NULL;
}
