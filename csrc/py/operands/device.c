/* Device arrays as operands, each by the fastest reader that describes it. */
#include "py/base/python.h"
#include "py/operands/device_array.h"
#include "py/operands/library.h"
#include "py/operands/operands.h"
#include "py/operands/where.h"

enum { MAX_KINDS = 16 }; /* types are kept for good: cupy.ndarray, Tensor, Parameter and a few of the user's own */

/* Lets the library's fast reader, if it has one, read later objects of this one's type. Returns 0, or -1 with an
 * exception set. */
static int
learn_kind(struct module_state *state, PyObject *object, const struct library *library)
{
    const bool has_table = library_is(library, LIBRARY_HAS_EXCHANGE_TABLE);
    if (!(has_table || library_is(library, LIBRARY_HAS_ATTRIBUTES)) || PyDict_Size(state->kinds) >= MAX_KINDS ||
        kind_of(state, object) || PyErr_Occurred())
        return PyErr_Occurred() ? -1 : 0;
    struct kind *kind = (has_table ? torch_kind_make : cupy_kind_make)(state, object, library);
    return kind ? kind_keep(state, object, kind) : PyErr_Occurred() ? -1 : 0;
}

static int
read_finish(struct module_state *state, PyObject *object, int found, struct owned_operand *result)
{
    if (found > 0 && learn_kind(state, object, result->library) < 0)
        found = -1;
    if (found <= 0)
        device_operand_clear(result);
    return found;
}

int
device_operand_from(struct module_state *state, PyObject *object, enum role role, PyObject *stream,
                    struct owned_operand *result)
{
    struct operand_reader reader = {0};
    return device_operand_read(state, object, role, stream, &reader, result);
}

int
device_operand_read(struct module_state *state, PyObject *object, enum role role, PyObject *stream,
                    struct operand_reader *reader, struct owned_operand *result)
{
    result->exported = NULL;
    result->library = NULL;
    result->needs_keepalive = false;
    if (Py_TYPE(object) == state->device_array_type) {
        struct device_array *array = (struct device_array *)object;
        result->operand = device_array_operand(array);
        result->operand.ndim = array->ndim;
        result->operand.shape = array->shape;
        result->operand.strides = array->contiguous ? NULL : device_array_strides(array);
        return 1;
    }
    int found = 0;
    const struct kind *kind =
        reader->torch[role].type == Py_TYPE(object) ? reader->torch[role].kind : kind_of(state, object);
    if (kind)
        found = (library_is(kind->library, LIBRARY_HAS_EXCHANGE_TABLE) ? torch_operand_from : cupy_operand_from)(
            state, object, kind, role, reader, result);
    else if (PyErr_Occurred())
        found = clear_refusal();
    if (found != 0)
        return found;
    found = library_export(state, object, role == ROLE_OUT, &result->library, &result->exported);
    if (found <= 0 || (found == DEVICE_OPERAND_LEFT && reader->leaves))
        return found;
    if (found == DEVICE_OPERAND_LEFT) {
        found = library_refuse(result->library, object, role == ROLE_OUT);
        device_operand_clear(result);
        return found;
    }

    PyObject *interface;
    found = library_is(result->library, LIBRARY_BY_DLPACK_ONLY)
                ? 0
                : optional_attribute(result->exported, state->names[NAME_CUDA_ARRAY_INTERFACE], &interface);
    if (found == 0) {
        void *handle = NULL;
        if (reader->defers)
            return DEVICE_OPERAND_DEFERRED;
        if (!stream || stream_from_object(state, stream, &handle) == 0)
            return device_operand_read_deferred(state, object, role, handle, result);
        found = -1;
    } else if (found > 0) {
        found = cai_operand_from(state, interface, role_name[role], result) < 0 ? -1 : 1;
        Py_DECREF(interface);
    }
    return read_finish(state, object, found, result);
}

int
device_operand_read_deferred(struct module_state *state, PyObject *object, enum role role, void *stream,
                             struct owned_operand *result)
{
    int found = dlpack_operand_from(state, result->exported, role_name[role], stream, result);
    return read_finish(state, object, found, result);
}
