/* One operand of an addition as plain data. py/operands fills it in from a Python object; all other code sees only
 * this. */
#ifndef VECADD_BASE_OPERAND_H
#define VECADD_BASE_OPERAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/dtype.h"

enum place { PLACE_HOST, PLACE_DEVICE, PLACE_NUMBER };

/* The kind of an operand's stream, lowest priority first. Without stream= an addition runs on the operands' stream of
 * the highest kind: the user's current stream goes before the stream that last wrote the data (exported), and that
 * before the stream of its allocation (home). */
enum stream_kind { STREAM_HOME, STREAM_EXPORTED, STREAM_CURRENT };

struct operand {
    void *data;  /* the first element, borrowed; for PLACE_NUMBER the number, in `dtype`; may be NULL if size is 0 */
    size_t size; /* elements */
    int ndim;
    const ssize_t *shape;
    const ssize_t *strides; /* bytes; NULL: C-contiguous and aligned, like every array without elements */
    enum dtype dtype;
    enum place place;
    int device; /* CUDA ordinal of the memory; -1 elsewhere */
    bool writable;
    bool has_stream; /* its producer ordered it on `stream` */
    void *stream;    /* cudaStream_t; NULL is the legacy default stream */
    enum stream_kind stream_kind;
};

#endif
