/* This folder in a build without CUDA: its functions fail with a status that says so, or do nothing. */
#include "transfer/ring.h"
#include "transfer/transfer.h"

/* The headers define the parameters; none is used here. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

int
transfer_add(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags, struct status *status)
{
    *fp_flags = 0;
    return status_no_cuda(status);
}

int
hybrid_add(const struct plan *plan, const struct transfer_options *options, unsigned *fp_flags, struct status *status)
{
    *fp_flags = 0;
    return status_no_cuda(status);
}

bool
transfer_memory_pinned(const void *memory, size_t bytes)
{
    return false;
}

size_t
transfer_release(void)
{
    return 0;
}

struct transfer_counts
transfer_counts(void)
{
    return (struct transfer_counts){0};
}
