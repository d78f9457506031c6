#include "base/kept_stream.h"

static atomic_bool left;

void
kept_stream_use(struct kept_stream *kept)
{
    if (kept)
        atomic_fetch_add_explicit(&kept->users, 1, memory_order_relaxed);
}

void
kept_stream_leave(struct kept_stream *kept)
{
    if (kept && atomic_fetch_sub_explicit(&kept->users, 1, memory_order_acq_rel) == 1)
        atomic_store(&left, true);
}

bool
kept_streams_left(void)
{
    return atomic_load_explicit(&left, memory_order_relaxed);
}

void
kept_streams_forget_left(void)
{
    atomic_store(&left, false);
}
