/* One operand of an addition as plain data. py/operands fills it in from a Python object; all other code sees only
 * this. */
#ifndef VECADD_BASE_OPERAND_H
#define VECADD_BASE_OPERAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/dtype.h"

enum place { PLACE_HOST, PLACE_DEVICE, PLACE_NUMBER };

/* The kind of an operand's stream, lowest priority first. Without stream= an addition runs on the operands' stream of
 * the highest kind: the user's current stream goes before the stream that last wrote the data (exported), and that
 * before the stream of its allocation (home). */
enum stream_kind { STREAM_HOME, STREAM_EXPORTED, STREAM_CURRENT };

struct operand {
    void *data;  /* the first element, borrowed; for PLACE_NUMBER the number, in `dtype`; may be NULL if size is 0 */
    size_t size; /* elements */
    int ndim;
    const ssize_t *shape;
    const ssize_t *strides; /* bytes; NULL: C-contiguous and aligned, like every array without elements */
    enum dtype dtype;
    enum place place;
    int device; /* CUDA ordinal of the memory; -1 elsewhere */
    bool writable;
    bool has_stream; /* its producer ordered it on `stream` */
    void *stream;    /* cudaStream_t; NULL is the legacy default stream */
    enum stream_kind stream_kind;
};

/* Which of its operands' streams an addition runs on: the stream of the highest kind among the operands noted so far,
 * the first of them where several have that kind. Without such an operand `stream` is NULL, the legacy default stream.
 */
struct stream_leader {
    bool found;
    enum stream_kind kind;
    void *stream;
};

static inline void
stream_leader_note(struct stream_leader *leader, const struct operand *operand)
{
    if (operand->has_stream && (!leader->found || operand->stream_kind > leader->kind))
        *leader = (struct stream_leader){true, operand->stream_kind, operand->stream};
}

static inline bool
stream_is_among(void *const *streams, size_t count, const void *stream)
{
    for (size_t i = count; i-- > 0;) /* the last one first: arrays of one stream often follow each other */
        if (streams[i] == stream)
            return true;
    return false;
}

#endif
