/* The part of the L2 that is set aside for memory that persists there. */
#include <cuda_runtime_api.h>

#include "../../c/tests.h"

TEST(what_is_set_aside_is_told)
{
    size_t bytes = 1, most = 0;
    CHECK(cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess); /* not 0 on every machine */
    for (most = (size_t)1 << 16; cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, most) == cudaSuccess; most *= 2) {
        CHECK(cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess);
        CHECK(bytes >= most); /* a GPU rounds up */
    }
    CHECK(most > (size_t)1 << 16);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0) == cudaSuccess);
    CHECK(cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess);
    CHECK(bytes == 0);
}

TEST(lines_are_given_back_and_the_part_stays_set_aside)
{
    size_t bytes = 0;
    CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 16) == cudaSuccess);
    CHECK(cudaCtxResetPersistingL2Cache() == cudaSuccess);
    CHECK(cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess);
    CHECK(bytes >= 1 << 16);
    CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0) == cudaSuccess);
}
