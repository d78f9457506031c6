/* How C code reports an error: a code, which one table in py/base/errors.c maps to an exception type, and a sentence.
 *
 * Functions that can fail take a `struct status *`, return 0, or -1 with the status filled. The sentence names the
 * value given, the values accepted, and the remedy. */
#ifndef VECADD_BASE_STATUS_H
#define VECADD_BASE_STATUS_H

enum status_code {
    STATUS_OK,
    STATUS_VALUE,          /* a value that is not accepted: pointers, extents, device ordinals, stream handles */
    STATUS_MEMORY,         /* host, pinned or device memory could not be allocated */
    STATUS_NO_CUDA_BUILD,  /* built with VECADD_CUDA=0 */
    STATUS_NO_GPU,         /* no driver, or a driver that sees no device */
    STATUS_DRIVER_TOO_OLD, /* a driver older than the CUDA runtime this build carries */
    STATUS_FORKED,         /* CUDA was initialised before this process was forked */
    STATUS_DEVICE_LOST,    /* a sticky error: no device call of this process works any more */
    STATUS_CAPTURE,        /* a stream is capturing, and the call is not allowed during a capture */
    STATUS_CUDA,           /* any other error of the CUDA runtime */
    STATUS_CODE_COUNT
};

struct status {
    enum status_code code;
    int cuda; /* the underlying cudaError_t; 0 if there is none */
    char text[320];
};

/* Fills *status, printf fashion; long texts are cut. Always returns -1, so that a caller can `return status_set(...)`.
 */
int status_set(struct status *status, enum status_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The error of every call that needs CUDA in a build without it. Returns -1. */
int status_no_cuda(struct status *status);

#endif
