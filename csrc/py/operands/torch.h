/* What torch.c knows of PyTorch's tensors, for the files that read pairs of them and make sums. */
#ifndef VECADD_PY_OPERANDS_TORCH_H
#define VECADD_PY_OPERANDS_TORCH_H

#include "py/operands/descriptor.h"
#include "py/operands/dlpack.h"
#include "py/operands/operand_from.h"

/* What is known of a type of tensors. */
struct torch_kind {
    const struct dl_exchange *exchange; /* lives as long as the process */
    PyObject *library;                  /* owned */
    struct descriptor requires_grad, base;
    struct descriptor version; /* an inference tensor has none; without an object: nor has any tensor here */
    /* Owned: the library's attributes of these names. NULL: this torch has no such thing. */
    PyObject *recorders, *forward_mode, *in_inference_mode, *count_writes;
    PyObject *has_names;     /* the type's method, owned; NULL: this torch has no named tensors */
    PyObject *empty_strided; /* makes tensors of exactly this type, owned; NULL: vecadd.interop makes them */
};

/* Borrowed, for good; NULL where torch_learn has met no such object. */
const struct torch_kind *torch_kind_of(const struct module_state *state, PyObject *object);

/* Each of these four returns false where operands/device.c has to read the tensor, maybe with an exception set. */

/* Describes a tensor that is aligned, with elements, in device memory. Sets no reference of *result. */
bool torch_describe(const struct torch_kind *kind, const struct dl_tensor *tensor, struct operand_reader *reader,
                    struct owned_operand *result);

/* Whether a tensor's first element is at an address, and at a multiple of its component's size. */
bool torch_is_aligned(const struct dl_tensor *tensor, enum dtype dtype);

/* Whether kernels of ours may add the tensor: PyTorch records nothing now, and the tensor needs no gradient, has no
 * names and is no conjugated or negated view. */
bool torch_is_plain(const struct module_state *state, PyObject *tensor, const struct torch_kind *kind,
                    struct operand_reader *reader, const struct owned_operand *described);

/* Whether PyTorch lets the tensor be written. */
bool torch_may_be_written(PyObject *tensor, const struct torch_kind *kind, struct operand_reader *reader);

/* device_operand_locate by what is known of the reader's other arrays. */
int torch_locate(struct module_state *state, enum role role, struct operand_reader *reader,
                 struct owned_operand *result);

/* The range that may hold a list's array at this address. */
static inline struct device_range *
known_range(struct known_ranges *ranges, const void *data)
{
    return &ranges->at[((uintptr_t)data >> KNOWN_RANGE_BITS) % KNOWN_RANGES];
}

#endif
