/* Inline PTX that only the laboratory's kernels need, as cuda/ptx.cuh has the product's. Asynchronous copies into
 * shared memory complete at once on the CPU. */
#ifndef VECADD_CUDA_LAB_PTX_CUH
#define VECADD_CUDA_LAB_PTX_CUH

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>

#include "cuda/ptx.cuh"

#if VECADD_DOUBLE
#include "tensor_map.h"
#endif

/* Adds one float16 as add_f16x2 adds two. */
__device__ inline uint16_t
add_f16(uint16_t a, uint16_t b)
{
#if VECADD_DOUBLE
    return bits_as<uint16_t>(_Float16(bits_as<_Float16>(a) + bits_as<_Float16>(b)));
#else
    uint16_t sum;
    asm("add.rn.f16 %0, %1, %2;" : "=h"(sum) : "h"(a), "h"(b));
    return sum;
#endif
}

__device__ inline uint16_t
add_bf16(uint16_t a, uint16_t b)
{
#if __CUDA_ARCH__ >= 900
    uint16_t sum;
    asm("add.rn.bf16 %0, %1, %2;" : "=h"(sum) : "h"(a), "h"(b));
    return sum;
#elif __CUDA_ARCH__ >= 800
    uint16_t sum;
    asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(sum) : "h"(a), "h"(static_cast<uint16_t>(0x3f80)), "h"(b));
    return sum;
#else
    return static_cast<uint16_t>(bf16_nearest(bf16_low(a) + bf16_low(b)));
#endif
}

/* Accesses that always reach the L2: neither the L1 nor the compiler caches them. */
__device__ inline uint4
load_past_l1(const uint4 *from)
{
#if VECADD_DOUBLE
    return *from;
#else
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(__cvta_generic_to_global(from)));
    return v;
#endif
}

__device__ inline const void *
load_past_l1(const void *const *from)
{
#if VECADD_DOUBLE
    return *from;
#else
    const void *pointer;
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(pointer) : "l"(__cvta_generic_to_global(from)));
    return pointer;
#endif
}

__device__ inline void
store_past_l1(uint4 *to, uint4 v)
{
#if VECADD_DOUBLE
    *to = v;
#else
    asm volatile("st.global.cg.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
#endif
}

/* The clock cycle counter of this multiprocessor. */
__device__ inline int64_t
cycle_counter()
{
#if VECADD_DOUBLE
    static thread_local int64_t cycles;
    return cycles += 1000;
#else
    return clock64();
#endif
}

#if !VECADD_DOUBLE
__device__ inline uint32_t
shared_address(const void *shared)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}
#endif

/* Begins a copy of 4, 8 or 16 bytes, aligned to their number; bypasses the L1 unless ThroughL1. From sm_80 on. */
template <unsigned Bytes, bool ThroughL1>
__device__ inline void
copy_async(void *shared, const void *global)
{
    static_assert(ThroughL1 || Bytes == 16, "only 16 bytes go past the L1");
#if VECADD_DOUBLE
    __builtin_memcpy(shared, global, Bytes);
#elif __CUDA_ARCH__ >= 800
    if constexpr (ThroughL1)
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(shared)),
                     "l"(__cvta_generic_to_global(global)), "n"(Bytes)
                     : "memory");
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)),
                     "l"(__cvta_generic_to_global(global))
                     : "memory");
#endif
}

/* Makes a group of the copies that this thread began since its last group. */
__device__ inline void
copy_async_commit()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until all but the newest `Groups` groups of this thread have arrived. */
template <unsigned Groups>
__device__ inline void
copy_async_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
#endif
}

/* A barrier in shared memory for `arrivals` arrivals, visible to the copy engine too. Barriers and the bulk copies
 * below need sm_90. */
__device__ inline void
barrier_init(uint64_t *barrier, unsigned arrivals)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
    (void)barrier, (void)arrivals;
#endif
}

/* Arrives, and makes the barrier wait for `bytes` bytes of copies too. */
__device__ inline void
barrier_expect(uint64_t *barrier, unsigned bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
#else
    (void)barrier, (void)bytes;
#endif
}

/* Waits until the barrier's phase of that parity has completed. */
__device__ inline void
barrier_wait(uint64_t *barrier, unsigned parity)
{
#if __CUDA_ARCH__ >= 900
    unsigned over = 0;
    while (!over)
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(over)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
#else
    (void)barrier, (void)parity;
#endif
}

/* Begins a bulk copy that signals the barrier when done; addresses and bytes are multiples of 16. */
__device__ inline void
copy_bulk(void *shared, const void *global, unsigned bytes, uint64_t *barrier)
{
#if VECADD_DOUBLE
    (void)barrier;
    __builtin_memcpy(shared, global, bytes);
#elif __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(shared)),
                 "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
#endif
}

/* Begins a copy of a two-dimensional tensor map's box whose first element is (x, y). It signals the barrier with a
 * whole box's bytes; elements beyond the array are zeros. `shared` is 128-byte aligned, the map a __grid_constant__
 * parameter. */
__device__ inline void
copy_box(void *shared, const CUtensorMap *map, int x, int y, uint64_t *barrier)
{
#if VECADD_DOUBLE
    (void)barrier;
    double_copy_box(shared, map, x, y);
#elif __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
                 "[%4];" ::"r"(shared_address(shared)),
                 "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier))
                 : "memory");
#endif
}

/* Lets dependent kernels that were launched programmatically begin once every block has called this or ended. The
 * double treats it as called at the start. From sm_90 on. */
__device__ inline void
trigger_dependents()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#endif
