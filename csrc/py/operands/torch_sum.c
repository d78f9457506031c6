/* Sums as tensors of PyTorch's own allocator. */
#include <string.h>

#include "gpu/device.h"
#include "py/base/errors.h"
#include "py/operands/torch.h"

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

/* Returns 0, or -1 with an exception set and nothing held. */
static int
form_fill(const struct module_state *state, struct tensor_form *form, const struct owned_operand *like,
          const struct device_shape *expected)
{
    Py_ssize_t strides[MAX_DIMENSIONS], step = 1;
    tensor_form_clear(form);
    for (int i = expected->ndim; i-- > 0; step *= expected->shape[i])
        strides[i] = step;
    PyObject *sizes = tuple_of_sizes(expected->ndim, expected->shape), *steps = tuple_of_sizes(expected->ndim, strides);
    PyObject *dtype = PyObject_GetAttr(like->exported, state->names[NAME_DTYPE]);
    form->arguments = sizes && steps && dtype ? PyTuple_Pack(3, sizes, steps, dtype) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(steps);
    Py_XDECREF(dtype);
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
    const struct torch_kind *kind = like->exported ? torch_kind_of(state, like->exported) : NULL;
    const struct operand *operand = &like->operand;
    struct operand_reader reader = {.torch_stream = {operand->device + 1, operand->stream}};
    struct tensor_form own;
    struct status status;
    int device;
    if (!kind || !kind->empty_strided || expected->dtype != operand->dtype || operand->size == 0)
        return NULL;
    if (!(form && form->arguments) && (device_current(&device, &status) < 0 || device != operand->device))
        return NULL;
    own.arguments = NULL;
    PyObject *made = make_tensor(state, kind, like, expected, form ? form : &own);
    tensor_form_clear(&own);
    struct dl_tensor tensor;
    if (made && Py_TYPE(made) == Py_TYPE(like->exported) && kind->exchange->tensor_from_object(made, &tensor) == 0 &&
        torch_describe(kind, &tensor, &reader, result) && result->operand.device == operand->device &&
        operand_is_expected(&result->operand, expected)) {
        result->exported = Py_NewRef(made);
        result->library = Py_NewRef(kind->library);
        result->count_writes = NULL; /* new memory: no earlier write to count */
        result->needs_keepalive = false;
        return made;
    }
    Py_XDECREF(made);
    clear_refusal(); /* vecadd.interop makes one, or raises torch's own error */
    return NULL;
}
