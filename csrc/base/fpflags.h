/* The two floating-point flags an addition can raise, as bits of a flag word that host threads and GPU kernels share.
 */
#ifndef VECADD_BASE_FPFLAGS_H
#define VECADD_BASE_FPFLAGS_H

enum { FP_OVERFLOW = 1, FP_INVALID = 2 };

#endif
