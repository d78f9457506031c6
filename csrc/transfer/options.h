/* Options of a transfer that only the ladder and tests set. */
#ifndef VECADD_TRANSFER_OPTIONS_H
#define VECADD_TRANSFER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum transfer_step { TRANSFER_TO_DEVICE, TRANSFER_KERNEL, TRANSFER_TO_HOST };

/* Called for every copy and kernel, from several threads at once: `before` before it is queued on `stream`
 * (cudaStream_t), that of slot number `slot`, and `after` afterwards, with the result of `before`. */
struct transfer_observer {
    size_t (*before)(void *context, enum transfer_step step, int slot, void *stream, size_t chunk);
    void (*after)(void *context, size_t token, void *stream);
    void *context;
};

enum transfer_way {
    TRANSFER_BEST,      /* chosen from those below by where the operands lie and how long they are */
    TRANSFER_COPIES,    /* never zero-copy */
    TRANSFER_ZERO_COPY, /* at any size, where the operands are pinned */
    TRANSFER_STAGED,    /* all through the ring, pinned operands too */
};

struct transfer_options {
    enum transfer_way way;
    int threads;                              /* threads that fill and empty the ring; 0: all available */
    const struct transfer_observer *observer; /* NULL: none */
};

#endif
