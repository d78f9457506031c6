#include "py/calls/batch_sums.h"

#include "base/operand.h"
#include "gpu/stream.h"
#include "py/base/errors.h"
#include "py/calls/batch_others.h"
#include "py/calls/result.h"

int
batch_join(struct batch_call *call, const struct operand *operand)
{
    if (!operand->has_stream || stream_is_among(call->join, call->joins, operand->stream))
        return 0;
    if (call->joins == call->join_room) {
        size_t room = call->join_room ? 2 * call->join_room : 4;
        void **join = PyMem_Resize(call->join, void *, room);
        if (!join) {
            PyErr_NoMemory();
            return -1;
        }
        call->join = join;
        call->join_room = room;
    }
    call->join[call->joins++] = operand->stream;
    return 0;
}

/* Whether an x that is read again still gives what was to be added: Python code that runs between the looks, its own
 * interface or a later pair's, may resize it. */
static bool
is_as_read(const struct operand *x, const struct batch_add *add)
{
    const struct dtype_row *dtype = &dtype_table[x->dtype];
    return x->size * dtype->components == add->n && dtype->component == add->component;
}

/* Makes the sum of an addition without an out. */
static PyObject *
make_sum(struct module_state *state, struct batch_call *call, struct sum_stream *stream, struct operand_reader *reader,
         struct tensor_form *form, struct batch_add *add, PyObject *a)
{
    if (call->place == PLACE_HOST) {
        PyArrayObject *like = (PyArrayObject *)a;
        PyObject *sum = host_result(state, PyArray_DESCR(like), PyArray_NDIM(like), PyArray_DIMS(like),
                                    !PyArray_IS_C_CONTIGUOUS(like));
        if (sum)
            add->c = PyArray_DATA((PyArrayObject *)sum);
        return sum;
    }
    struct owned_operand like, made;
    PyObject *sum = NULL;
    int found = device_operand_read(state, a, ROLE_A, call->stream_object, reader, &like);
    if (found > 0 && !is_as_read(&like.operand, add)) {
        PyErr_SetString(PyExc_ValueError, "x has been resized while the lists were looked at");
        device_operand_clear(&like);
    } else if (found > 0) {
        const struct device_shape expected = {like.operand.dtype, like.operand.ndim, like.operand.shape, ROLE_A, NULL};
        sum = device_result(state, &like, &expected, call->device, stream, form, &made);
        device_operand_clear(&like);
    } else if (found == 0)
        PyErr_SetString(PyExc_RuntimeError, "x is no device array any more");
    if (sum) {
        add->c = made.operand.data;
        if (made.operand.stream != call->stream && batch_join(call, &made.operand) < 0)
            Py_CLEAR(sum);
        device_operand_clear(&made);
    }
    return sum;
}

/* Whether some pair has no out. */
static bool
has_gaps(const struct batch_call *call)
{
    bool gaps = call->missing > 0;
    for (size_t i = 0; i < call->other_count && !gaps; i++)
        gaps = !batch_object(call, ROLE_OUT, call->others[i]);
    return gaps;
}

int
batch_make_sums(struct module_state *state, struct batch_call *call, PyObject *out, PyObject *given)
{
    struct operand_reader reader = {.again = true};
    struct tensor_form form = {0};
    struct sum_stream stream = {.given = given, .objects = call->lists, .lists = true};
    bool failed = false;
    struct status status;
    const bool is_list = out && PyList_Check(out);
    if (call->missing && call->place == PLACE_DEVICE &&
        stream_of_memory(call->device, call->stream, call->join, call->joins, &stream.stream, &status) < 0) {
        status_raise(state, &status);
        return -1;
    }
    if (is_list && has_gaps(call))
        call->gaps = Py_NewRef(out);
    call->result = is_list && !call->gaps ? Py_NewRef(out) : PyList_New(call->count);
    if (!call->result)
        return -1;
    for (Py_ssize_t pair = 0; call->result != out && pair < call->count; pair++) {
        PyObject *object = batch_object(call, ROLE_OUT, pair);
        PyList_SetItem(call->result, pair, Py_NewRef(object ? object : Py_None));
    }
    for (size_t i = 0; i < call->add_count && call->missing && !failed; i++) {
        Py_ssize_t pair = call->add_pair[i];
        if (batch_object(call, ROLE_OUT, pair))
            continue;
        PyObject *x = PyTuple_GetItem(call->lists[ROLE_A], pair);
        PyObject *sum = make_sum(state, call, &stream, &reader, &form, &call->adds[i], x);
        if (!sum)
            batch_name_pair(pair);
        failed = !sum || PyList_SetItem(call->result, pair, sum) < 0;
    }
    tensor_form_clear(&form);
    sum_stream_clear(&stream);
    return failed ? -1 : 0;
}

int
batch_fill_gaps(struct batch_call *call)
{
    if (!call->gaps)
        return 0;
    for (Py_ssize_t pair = 0; pair < call->count; pair++) {
        if (batch_object(call, ROLE_OUT, pair))
            continue;
        PyObject *sum = PyList_GetItem(call->result, pair);
        if (!sum || PyList_SetItem(call->gaps, pair, Py_NewRef(sum)) < 0)
            return -1;
    }
    Py_DECREF(call->result);
    call->result = Py_NewRef(call->gaps);
    return 0;
}
