/* Memory for new sums. A block returns to the pool when the caller drops its sum, so that the next sum writes to pages
 * that already exist: faulting in and zeroing fresh pages costs 1.5 to 2.5 times the addition. Large blocks use huge
 * pages.
 *
 * Any thread may call any of these; none of them makes a CUDA call. */
#ifndef VECADD_HOST_OUTPUT_POOL_H
#define VECADD_HOST_OUTPUT_POOL_H

#include <stddef.h>

/* Use malloc for smaller blocks: the C library keeps freed memory too. */
enum { OUTPUT_POOL_MIN = 1 << 20 };

/* A block of at least `bytes`, aligned to a cache line, with undefined content; the caller owns it. If memory is short,
 * the pool first gives all kept blocks back to the system; NULL if that does not help. */
void *output_pool_take(size_t bytes);

/* As output_pool_take, with `bytes` zeros. */
void *output_pool_take_zeroed(size_t bytes);

/* Takes a block back and keeps it; ignores NULL. The oldest blocks go back to the system when the kept ones exceed the
 * bound: VECADD_POOL_BYTES, or an eighth of the memory that this process may use. */
void output_pool_give(void *block);

/* Returns a block of `bytes` with as much of the content of `block` as fits, and takes `block` back. Returns NULL, with
 * `block` unchanged, if there is no memory. */
void *output_pool_resize(void *block, size_t bytes);

/* Gives all kept blocks back to the system; returns their bytes. */
size_t output_pool_empty(void);

struct output_pool_counts {
    size_t used_bytes, used_blocks; /* owned by callers */
    size_t kept_bytes, kept_blocks; /* in the pool */
    size_t bound;                   /* of kept_bytes */
};
struct output_pool_counts output_pool_counts(void);

#endif
