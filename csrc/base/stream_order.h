/* Which of its operands' streams an addition runs on, and which others it waits for. */
#ifndef VECADD_BASE_STREAM_ORDER_H
#define VECADD_BASE_STREAM_ORDER_H

#include "base/operand.h"

/* The stream of the highest kind among the operands noted so far, the first of them where several have that kind.
 * Without such an operand `stream` is NULL, the legacy default stream. */
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
