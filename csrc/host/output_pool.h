/* Memory for the sums that are made for a caller: blocks, the large ones of huge pages, that come back when he drops
 * the sum, so that the next one writes to pages that are there. A fresh page costs a fault and its zeros, 1.5 to 2.5
 * times the addition.
 *
 * Any thread may call any of these; none of them makes a CUDA call. */
#ifndef VECADD_HOST_OUTPUT_POOL_H
#define VECADD_HOST_OUTPUT_POOL_H

#include <stddef.h>

/* Smaller blocks are the C library's business: it keeps what is dropped too. */
enum { OUTPUT_POOL_MIN = 1 << 20 };

/* A block of at least `bytes`, aligned to a cache line, whose content is anything; NULL where there is no memory, after
 * everything that the pool keeps has been given back. Owned by the caller. */
void *output_pool_take(size_t bytes);

/* The same, all zeros. */
void *output_pool_take_zeroed(size_t bytes);

/* Takes a block back (NULL too) and keeps it, or the oldest ones go back to the system: what is kept stays below the
 * bound, an eighth of the memory that this process may use, or VECADD_POOL_BYTES. */
void output_pool_give(void *block);

/* A block of `bytes` with the content of `block` as far as it fits, which is taken back; NULL leaves `block` alone. */
void *output_pool_resize(void *block, size_t bytes);

/* Gives all that is kept back to the system; returns how many bytes. */
size_t output_pool_empty(void);

struct output_pool_counts {
    size_t used_bytes, used_blocks; /* callers' sums */
    size_t kept_bytes, kept_blocks; /* waiting for the next */
    size_t bound;                   /* of kept_bytes */
};
struct output_pool_counts output_pool_counts(void);

#endif
