/* Memory for new sums. A block returns to the pool when the caller drops its sum, so that the next sum writes to pages
 * that already exist: faulting in and zeroing fresh pages costs 1.5 to 2.5 times the addition. Large blocks are
 * mappings of huge pages, smaller ones are cut from such mappings.
 *
 * Any thread may call any of these; none of them makes a CUDA call. */
#ifndef VECADD_HOST_OUTPUT_POOL_H
#define VECADD_HOST_OUTPUT_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "host/huge_region.h"

/* Use malloc for smaller blocks, unless many are kept: the C library keeps freed memory too. */
enum { OUTPUT_POOL_MIN = 1 << 20 };

/* A kept block that no sum has used for so long goes back to the system. The next sum then writes to fresh pages: on
 * two cores of an EPYC 79 ms in place of 35 for 200 MB, 25 in place of 11 for 64 MB; numpy.add takes 80 and 25, each
 * time. */
enum { OUTPUT_POOL_SECONDS = 5 };

/* A block of at least `bytes`, aligned to a cache line, with undefined content; the caller owns it. If memory is short,
 * the pool first gives all kept blocks back to the system; NULL if that does not help. */
void *output_pool_take(size_t bytes);

/* As output_pool_take, with `bytes` zeros. */
void *output_pool_take_zeroed(size_t bytes);

/* Takes a block back and keeps it; ignores NULL. The oldest blocks go back to the system when the kept ones exceed the
 * bound: VECADD_POOL_BYTES, or an eighth of the memory that this process may use (nothing where RLIMIT_AS or
 * RLIMIT_DATA limits the address space), and when they have been kept for OUTPUT_POOL_SECONDS. */
void output_pool_give(void *block);

/* Gives those back that have been kept for OUTPUT_POOL_SECONDS. For a thread that has nothing else to do. Returns
 * whether there are blocks, kept or used. */
bool output_pool_age(void);

/* Returns a block of `bytes` with as much of the content of `block` as fits, and takes `block` back. Returns NULL, with
 * `block` unchanged, if there is no memory. */
void *output_pool_resize(void *block, size_t bytes);

/* Gives all kept blocks back to the system; returns their bytes. */
size_t output_pool_empty(void);

/* Whether blocks below OUTPUT_POOL_MIN are cut from huge pages, so that new ones are sooner written than malloc's.
 * *used: the bytes of such blocks that callers own. */
bool output_pool_cuts(size_t *used);

struct output_pool_counts {
    size_t used_bytes, used_blocks; /* owned by callers */
    size_t kept_bytes, kept_blocks; /* in the pool */
    size_t bound;                   /* of kept_bytes */
};
struct output_pool_counts output_pool_counts(void);

#endif
