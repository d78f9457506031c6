/* The page-locked ring that transfers of ordinary memory go through, kept from one transfer to the next. */
#ifndef VECADD_TRANSFER_RING_H
#define VECADD_TRANSFER_RING_H

#include <stddef.h>

/* Frees the ring, its slots and streams, and returns the bytes of their page-locked memory; the next transfer makes new
 * ones. Leaves a ring that a transfer in another thread uses. Waits for the work of every stream, so the caller holds
 * no lock. */
size_t transfer_release(void);

/* The page-locked memory that the ring keeps from transfer to transfer: up to 2 * threads * 2 MiB. */
struct transfer_counts {
    size_t bytes, blocks;
};
struct transfer_counts transfer_counts(void);

#endif
