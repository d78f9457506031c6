/* One side of an addition as plain data: what py/operands makes of an object, and all that the rest knows of it. */
#ifndef VECADD_BASE_OPERAND_H
#define VECADD_BASE_OPERAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/dtype.h"

enum place { PLACE_HOST, PLACE_DEVICE, PLACE_NUMBER };

/* What an operand's stream is. Without stream= an addition runs on the last of these that an operand has: where the
 * user works now comes before where the data was last written, and that before where it was allocated. */
enum stream_kind { STREAM_HOME, STREAM_EXPORTED, STREAM_CURRENT };

struct operand {
    void *data;  /* the first element, borrowed; of PLACE_NUMBER the number, in `dtype`; may be NULL where size is 0 */
    size_t size; /* elements */
    int ndim;
    const ssize_t *shape;
    const ssize_t *strides; /* bytes; NULL: C-contiguous and aligned, as every array of no element is */
    enum dtype dtype;
    enum place place;
    int device; /* CUDA ordinal of the memory; -1 elsewhere */
    bool writable;
    bool has_stream; /* its producer ordered it on `stream` */
    void *stream;    /* cudaStream_t; NULL is the legacy default stream */
    enum stream_kind stream_kind;
};

#endif
