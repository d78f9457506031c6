/* A block of device memory with several holders: an array, its views, and what other libraries were given of it. */
#ifndef VECADD_BLOCK_H
#define VECADD_BLOCK_H

#include <stddef.h>

#include "status.h"

struct device_block;

/* A block held once, to be used in the order of `stream`. NULL with *status set. */
struct device_block *device_block_make(int device, void *stream, size_t bytes, struct status *status);

void *device_block_memory(const struct device_block *block); /* NULL where it has 0 bytes */

void device_block_hold(struct device_block *block);

/* The last holder gives the memory back in the order of the block's stream; takes NULL. From any thread, with or
 * without Python, in a forked child and at exit too. */
void device_block_drop(struct device_block *block);

/* The same for a holder who has used the memory on another stream: it is given back after what that holds now. */
void device_block_drop_after(struct device_block *block, void *stream);

#endif
