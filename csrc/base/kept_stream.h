/* Another library's stream that vecadd uses after the call in which it was given. */
#ifndef VECADD_BASE_KEPT_STREAM_H
#define VECADD_BASE_KEPT_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* It exists as long as it has users: py/operands/kept_streams.c keeps its owner meanwhile. */
struct kept_stream {
    atomic_size_t users;
};

/* Both take NULL, for a stream that exists in any case. */
void kept_stream_use(struct kept_stream *kept);

/* In any thread, with or without the GIL: the owner goes when kept_streams_sweep is called next. */
void kept_stream_leave(struct kept_stream *kept);

/* Whether some stream has lost its last user since the last call of kept_streams_forget_left. */
bool kept_streams_left(void);
void kept_streams_forget_left(void);

#endif
