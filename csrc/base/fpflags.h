/* The floating-point flags an addition can raise, as bits of a flag word that host threads and GPU kernels share. Only
 * a thread that flushes subnormal results to zero raises FP_UNDERFLOW: else such a sum is exact. */
#ifndef VECADD_BASE_FPFLAGS_H
#define VECADD_BASE_FPFLAGS_H

enum { FP_OVERFLOW = 1, FP_INVALID = 2, FP_UNDERFLOW = 4 };

#endif
