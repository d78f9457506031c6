/* The floating-point environment of one thread: sticky flags and control bits, without the x87 half that <fenv.h> drags
 * in (fnstenv alone costs more than a small add).
 *
 * Only overflow and invalid are followed: an addition cannot divide by zero, and its subnormal results are exact. */
#ifndef VECADD_BASE_FPENV_H
#define VECADD_BASE_FPENV_H

#include "base/fpflags.h"

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
    return ((word >> 3) & 1u ? FP_OVERFLOW : 0u) | (word & 1u ? FP_INVALID : 0u);
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
    return ((word >> 2) & 1u ? FP_OVERFLOW : 0u) | (word & 1u ? FP_INVALID : 0u);
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

/* Around arithmetic whose flags are wanted. The register is written only where that changes something: to write it
 * twice in quick succession takes 120 ns on a Sapphire Rapids, to read it 1 ns. */
static inline fpenv_word
fpenv_begin(void)
{
    const fpenv_word environment = fpenv_get();
    if (fpenv_flags(environment))
        fpenv_set(fpenv_without_flags(environment));
    return environment;
}

/* Puts the environment back to what fpenv_begin returned and gives the flags raised in between. */
static inline unsigned
fpenv_end(fpenv_word environment)
{
    const fpenv_word after = fpenv_get();
    if (after != environment)
        fpenv_set(environment);
    return fpenv_flags(after);
}

#endif
