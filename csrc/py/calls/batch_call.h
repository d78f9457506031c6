/* A list of pairs of arrays that are to be added. */
#ifndef VECADD_PY_CALLS_BATCH_CALL_H
#define VECADD_PY_CALLS_BATCH_CALL_H

#include "base/plan.h"
#include "py/operands/operand_from.h"

/* A list of pairs, looked at and checked. The pairs that are plain (contiguous arrays of one dtype and shape) are
 * `adds`; each of the others is for add itself. */
struct batch_call {
    Py_ssize_t count;
    PyObject *lists[ROLE_COUNT]; /* owned tuples of the operands; out's is NULL where there is none */
    PyObject *result;            /* owned: the list of sums */
    PyObject *held;              /* owned: a list of what else has to live until the work is queued, or NULL */

    PyObject *count_writes; /* owned: the function that counts a write to each of `written`; NULL: there is none */
    PyObject *written;      /* owned: a list of those outs of `adds` whose library counts, or NULL */

    struct batch_add *adds;
    size_t add_count;
    Py_ssize_t *add_pair; /* the pair that each is of */
    Py_ssize_t *others;   /* pairs for add itself */
    size_t other_count;

    enum place place; /* of all pairs */
    int device;       /* on the device: of all pairs, and the stream that all run on */
    void *stream;
    PyObject *stream_object; /* owned: that stream for add; NULL on the host */
    void **join;
    size_t joins, join_room;
};

#endif
