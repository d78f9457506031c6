/* What only the ladder and the calibration ask of a transfer. */
#ifndef VECADD_TRANSFER_OPTIONS_H
#define VECADD_TRANSFER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum transfer_step { TRANSFER_TO_DEVICE, TRANSFER_KERNEL, TRANSFER_TO_HOST };

/* Is told of every copy and kernel, from several threads at once: before it is queued on `stream` (cudaStream_t), the
 * one of slot number `slot`, and after, with what `before` returned. */
struct transfer_observer {
    size_t (*before)(void *context, enum transfer_step step, int slot, void *stream, size_t chunk);
    void (*after)(void *context, size_t token, void *stream);
    void *context;
};

enum transfer_way {
    TRANSFER_BEST,      /* of those below, by where the operands lie and how long they are */
    TRANSFER_COPIES,    /* never zero-copy */
    TRANSFER_ZERO_COPY, /* at any size, where the operands are pinned */
    TRANSFER_STAGED,    /* all through the ring, pinned operands too */
};

struct transfer_options {
    enum transfer_way way;
    int threads;                              /* that fill and empty the ring; 0: all there are */
    const struct transfer_observer *observer; /* NULL: nobody asks */
};

#endif
