/* From lists of arrays to one piece of work: many.c does what add_many does before it computes, many_run.c computes. */
#ifndef VECADD_PY_CALLS_BATCH_H
#define VECADD_PY_CALLS_BATCH_H

#include "gpu/graph.h"
#include "py/operands/operand_from.h"

/* A list of pairs, looked at and checked. The pairs that are plain (contiguous arrays of one dtype and shape) are
 * `adds`; each of the others is for add itself. */
struct many_call {
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

/* What add_many was given. Borrowed; out and stream are NULL where they are not. */
struct many_arguments {
    PyObject *xs, *ys, *out, *stream;
};

/* Looks at every pair, chooses the stream, and makes the sums that have no out. Returns 0, and many_clear() is due; or
 * -1 with an exception set that begins with the pair it is about, and nothing written. */
int many_prepare(struct module_state *state, const struct many_arguments *arguments, struct many_call *call);

/* What is queued on the device: it points into the call. */
struct device_batch many_batch(const struct many_call *call);

/* Adds; may be repeated where every pair has an out. `module` is ours; `graph` is of many_batch, or NULL. Returns 0, or
 * -1 with an exception set. */
int many_run(PyObject *module, struct many_call *call, struct graph *graph);

/* Tells the arrays' libraries of the call's stream where one of them works on another. Returns 0, or -1 with an
 * exception set. */
int many_record(struct module_state *state, const struct many_call *call);

void many_clear(struct many_call *call);

#endif
