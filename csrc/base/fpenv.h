/* The floating-point environment of one thread: sticky flags and control bits. <fenv.h> would add the x87 half, and its
 * fnstenv alone costs more than a small addition.
 *
 * An addition cannot divide by zero, and its subnormal results are exact: it underflows only where they are flushed. */
#ifndef VECADD_BASE_FPENV_H
#define VECADD_BASE_FPENV_H

#include "base/dtype.h"

#if defined(__SSE2__)
#include <xmmintrin.h>

typedef unsigned fpenv_word; /* MXCSR: bits 0-5 sticky flags, the rest control */

static inline fpenv_word
fpenv_get(void)
{
    return _mm_getcsr();
}

static inline void
fpenv_set(fpenv_word word)
{
    _mm_setcsr(word);
}

static inline fpenv_word
fpenv_without_flags(fpenv_word word)
{
    return word & ~0x3fu;
}

static inline unsigned
fpenv_flags(fpenv_word word)
{
    return ((word >> 3) & 1u ? FP_OVERFLOW : 0u) | (word & 1u ? FP_INVALID : 0u) |
           ((word & 0x8010u) == 0x8010u ? FP_UNDERFLOW : 0u);
}

static inline fpenv_word
fpenv_with_flags(fpenv_word word, unsigned flags)
{
    return word | (flags & FP_OVERFLOW ? 1u << 3 : 0u) | (flags & FP_INVALID ? 1u : 0u) |
           (flags & FP_UNDERFLOW ? 1u << 4 : 0u);
}

/* Round to nearest, no flush to zero, no denormals-are-zero, nothing unmasked: what the GPU's arithmetic does. */
static inline int
fpenv_is_default(fpenv_word word)
{
    return (word & 0xffc0u) == 0x1f80u;
}

static inline int
fpenv_rounds_to_nearest(fpenv_word word)
{
    return (word & 0x6000u) == 0;
}

#elif defined(__aarch64__)
#include <stdint.h>

typedef uint64_t fpenv_word; /* FPCR in the high half, FPSR in the low one */

static inline fpenv_word
fpenv_get(void)
{
    uint64_t control, status;
    __asm__ __volatile__("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(status)::"memory");
    return control << 32 | (status & 0xffffffffu);
}

static inline void
fpenv_set(fpenv_word word)
{
    __asm__ __volatile__("msr fpcr, %0\n\tmsr fpsr, %1" ::"r"(word >> 32), "r"(word & 0xffffffffu) : "memory");
}

static inline fpenv_word
fpenv_without_flags(fpenv_word word)
{
    return word & ~(fpenv_word)0x9f;
}

static inline unsigned
fpenv_flags(fpenv_word word)
{
    const fpenv_word flushed = (fpenv_word)1 << 56 | 1u << 3;
    return ((word >> 2) & 1u ? FP_OVERFLOW : 0u) | (word & 1u ? FP_INVALID : 0u) |
           ((word & flushed) == flushed ? FP_UNDERFLOW : 0u);
}

static inline fpenv_word
fpenv_with_flags(fpenv_word word, unsigned flags)
{
    return word | (flags & FP_OVERFLOW ? 1u << 2 : 0u) | (flags & FP_INVALID ? 1u : 0u) |
           (flags & FP_UNDERFLOW ? 1u << 3 : 0u);
}

static inline int
fpenv_is_default(fpenv_word word)
{
    return ((word >> 32) & 0x07c09f00u) == 0;
}

static inline int
fpenv_rounds_to_nearest(fpenv_word word)
{
    return ((word >> 32) & 0x00c00000u) == 0;
}

#else
#error "fpenv.h knows x86-64 and AArch64; teach it this processor's floating-point status register"
#endif

/* Clears the flags before arithmetic whose flags are wanted, and returns the environment for fpenv_end. Writes the
 * register only to change it: two writes in quick succession take 120 ns on a Sapphire Rapids, a read 1 ns. */
static inline fpenv_word
fpenv_begin(void)
{
    const fpenv_word environment = fpenv_get();
    if (fpenv_flags(environment))
        fpenv_set(fpenv_without_flags(environment));
    return environment;
}

/* Restores the environment that fpenv_begin returned, and returns the flags raised since. */
static inline unsigned
fpenv_end(fpenv_word environment)
{
    const fpenv_word after = fpenv_get();
    if (after != environment)
        fpenv_set(environment);
    return fpenv_flags(after);
}

/* Sets flags in this thread's environment, as arithmetic would have. */
static inline void
fpenv_raise(unsigned flags)
{
    if (flags)
        fpenv_set(fpenv_with_flags(fpenv_get(), flags));
}

#endif
