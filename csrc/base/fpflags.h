/* The two floating-point flags an addition can raise, as bits of a flag word: of host threads and GPU kernels alike. */
#ifndef VECADD_BASE_FPFLAGS_H
#define VECADD_BASE_FPFLAGS_H

enum { FP_OVERFLOW = 1, FP_INVALID = 2 };

#endif
