/* The sizes of this processor's caches. */
#ifndef VECADD_HOST_CACHE_H
#define VECADD_HOST_CACHE_H

#include <stddef.h>

/* Bytes of the data cache of that level, 1 to 3, from which the thresholds are derived; 0 if unknown. */
size_t host_cache_bytes(int level);

#endif
