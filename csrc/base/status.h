/* How core/ reports what went wrong: a code, which py/base/errors.c turns into an exception type by one table, and a
 * sentence.
 *
 * Functions that can fail take a `struct status *`, return 0, or -1 with the status filled. The sentence says what was
 * given, what is accepted and what to do. */
#ifndef VECADD_BASE_STATUS_H
#define VECADD_BASE_STATUS_H

enum status_code {
    STATUS_OK,
    STATUS_VALUE,          /* a value outside what is accepted: pointers, extents, device ordinals, stream handles */
    STATUS_MEMORY,         /* host, pinned or device memory could not be had */
    STATUS_NO_CUDA_BUILD,  /* built with VECADD_CUDA=0 */
    STATUS_NO_GPU,         /* no driver, or a driver that sees no device */
    STATUS_DRIVER_TOO_OLD, /* a driver older than the CUDA runtime this build carries */
    STATUS_FORKED,         /* CUDA was initialised before this process was forked */
    STATUS_DEVICE_LOST,    /* a sticky error: no device call of this process works any more */
    STATUS_CAPTURE,        /* a stream captures, and the call cannot be made beside that */
    STATUS_CUDA,           /* any other error of the CUDA runtime */
    STATUS_CODE_COUNT
};

struct status {
    enum status_code code;
    int cuda; /* the cudaError_t behind it; 0 where there is none */
    char text[320];
};

/* Fills *status, printf fashion; long texts are cut. Always returns -1, so that a caller can `return status_set(...)`.
 */
int status_set(struct status *status, enum status_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What every call that needs CUDA reports in a build without it. Returns -1. */
int status_no_cuda(struct status *status);

#endif
