/* A SIMD level: the loops for one instruction set. */
#ifndef VECADD_HOST_SIMD_H
#define VECADD_HOST_SIMD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"

/* c[i] = a[i] + b[i] for n components. a, b, c are aligned to the component; c may be a or b, but overlap neither in
 * part. */
typedef void host_add_function(const void *a, const void *b, void *c, size_t n);

/* Bytes that repeat one element: a vector is read from them at any component of the longest element. */
enum { LONGEST_ELEMENT = 16, REPEATED_BYTES = 128 };

/* One instruction set. The tables are complete: every component has all functions. The functions that end in `_one` add
 * one element to all of a: b points to REPEATED_BYTES of it. */
struct host_simd {
    const char *name;                           /* "avx512", "avx2", "neon", "c": the values of VECADD_SIMD */
    bool (*supported)(void);                    /* by this processor and operating system */
    host_add_function *add[COMPONENT_COUNT];    /* ordinary stores */
    host_add_function *stream[COMPONENT_COUNT]; /* non-temporal stores, fenced; or `add` where there are none */
    host_add_function *add_one[COMPONENT_COUNT], *stream_one[COMPONENT_COUNT];
    const struct host_simd *narrower; /* vectors of half the length, or NULL */
};

/* The levels, one file each; a build has those of its architecture. */
extern const struct host_simd host_simd_avx512, host_simd_avx2, host_simd_neon, host_simd_c;

#endif
