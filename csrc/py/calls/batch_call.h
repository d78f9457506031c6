/* A list of pairs of arrays to be added. */
#ifndef VECADD_PY_CALLS_BATCH_CALL_H
#define VECADD_PY_CALLS_BATCH_CALL_H

#include "base/plan.h"
#include "py/operands/operand_from.h"

/* A checked list of pairs. Plain pairs (contiguous arrays of one dtype and shape) are in `adds`; add itself adds each
 * of the others. */
struct batch_call {
    Py_ssize_t count;
    PyObject *lists[ROLE_COUNT]; /* owned tuples of the operands; out's is NULL where there is none */
    PyObject *result;            /* owned: the list of sums; the caller's own if each pair has an out */
    PyObject *gaps;              /* owned: the caller's list of outs if some pairs have none, or NULL. Other threads may
                                  * change it during the work, so that `result` holds the sums meanwhile */
    PyObject *held;              /* owned: a list of other objects to keep alive until the work is queued, or NULL */

    PyObject *count_writes;   /* owned: counts a write to each out of `adds` whose library counts writes; NULL: none */
    Py_ssize_t first_written; /* these are the outs of so many first pairs */
    PyObject *written;        /* and those of this list, owned, or NULL */

    struct batch_add *adds;
    size_t add_count;
    Py_ssize_t *add_pair; /* the pair of each of `adds` */
    size_t missing;       /* of `adds`: those without an out, whose sums are to be made */
    Py_ssize_t *others;   /* pairs for add itself */
    size_t other_count;

    enum place place; /* where all pairs are */
    int device;       /* on the device: all pairs' device, and the stream that the work runs on */
    void *stream;
    PyObject *stream_object; /* owned: the stream for add; NULL on the host */
    void **join;
    size_t joins, join_room;
};

#endif
