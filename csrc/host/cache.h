/* How large this processor's caches are. */
#ifndef VECADD_HOST_CACHE_H
#define VECADD_HOST_CACHE_H

#include <stddef.h>

/* Cache sizes that the thresholds stand on, in bytes; 0 where the system does not say. */
size_t host_cache_bytes(int level);

#endif
