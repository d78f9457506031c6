/* What the lists of add_many contain: every pair is read and checked, and the stream is chosen. */
#ifndef VECADD_PY_CALLS_PAIRS_H
#define VECADD_PY_CALLS_PAIRS_H

#include "base/plan.h"
#include "py/calls/prepare.h"
#include "py/operands/operands.h"

/* A checked list of pairs. Plain pairs (contiguous arrays of one dtype and shape) are in `adds`; add itself adds each
 * other pair. */
struct pairs {
    Py_ssize_t count;
    PyObject *lists[ROLE_COUNT]; /* owned tuples of the operands; out's is NULL where there is none */
    PyObject *result;            /* owned: the list of sums; the caller's own if each pair has an out */
    PyObject *outs_with_none;    /* owned: the caller's list of outs if some pairs have none, or NULL. Other threads may
                                  * change it during the work, so `result` keeps the sums alive meanwhile */
    PyObject *exports;           /* owned: a list of other objects to keep alive until the work is queued, or NULL */

    const struct library *counting; /* the library that counts writes to outs of `adds`; NULL: none does */
    Py_ssize_t first_written;       /* the outs of this many first pairs, */
    PyObject *written;              /* and those in this list, owned, or NULL */

    struct batch_add *adds;
    size_t add_count;
    Py_ssize_t *add_pair; /* the pair of each of `adds` */
    size_t missing;       /* of `adds`: those without an out, whose sums are to be made */
    Py_ssize_t *single;   /* pairs for add itself */
    size_t single_count;

    enum place place; /* where all pairs are */
    int device;       /* on the device: all pairs' device, and the stream that the work runs on */
    void *stream;
    PyObject *stream_object; /* owned: the stream for add; NULL on the host */
    void **join;
    size_t joins, join_room;
};

/* Reads the lists: takes them, reads every pair, refuses an out that overlaps another pair's array, and chooses the
 * stream. Returns 0, and the caller calls pairs_clear(); or -1 with an exception set that begins with its pair. */
int pairs_read(struct module_state *state, const struct add_arguments *arguments, struct pairs *pairs);

void pairs_clear(struct pairs *pairs);

/* An operand of a pair, borrowed; NULL where it has none. */
PyObject *pairs_object(const struct pairs *pairs, enum role role, Py_ssize_t pair);

/* Notes an operand's stream among those to join. Returns 0, or -1 with an exception set. */
int pairs_join(struct pairs *pairs, const struct operand *operand);

/* Puts the pair's number into the message of the exception that is set. */
void prefix_error_with_pair(Py_ssize_t pair);

#endif
