/* All inline PTX. Each function has a C++ version for tests on the CPU (VECADD_DOUBLE: the tests' replacement for the
 * CUDA runtime). Additions of two packed 16-bit floats round once to nearest even and keep subnormals. Loads hint the
 * L2 what to keep; the CPU version reports the hints to the double. Asynchronous copies into shared memory complete at
 * once on the CPU. */
#ifndef VECADD_CUDA_PTX_CUH
#define VECADD_CUDA_PTX_CUH

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>

#if VECADD_DOUBLE
#include "kernel_on_cpu.h"
#include "tensor_map.h"
#endif

/* The value's bytes as another type of the same size. */
template <typename To, typename From>
__device__ inline To
bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits_as keeps the size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

__device__ inline uint32_t
add_f16x2(uint32_t a, uint32_t b)
{
#if VECADD_DOUBLE
    const auto half = [](uint32_t word) { return bits_as<_Float16>(static_cast<uint16_t>(word)); };
    const auto sum = [half](uint32_t x, uint32_t y) -> uint32_t {
        return bits_as<uint16_t>(_Float16(half(x) + half(y)));
    };
    return sum(a >> 16, b >> 16) << 16 | sum(a, b);
#else
    uint32_t sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
#endif
}

/* bfloat16 is the upper half of a float32. */
__device__ inline float
bf16_low(uint32_t word)
{
    return bits_as<float>(word << 16);
}

__device__ inline float
bf16_high(uint32_t word)
{
    return bits_as<float>(word & 0xffff0000u);
}

/* The nearest bfloat16, ties to even, in the lower half; a NaN stays a NaN. Rounding a sum of two bfloat16 to float32
 * first is harmless: 24 bits are at least 2 * 8 + 2. */
__device__ inline uint32_t
bf16_nearest(float x)
{
    const uint32_t word = bits_as<uint32_t>(x);
    if ((word & 0x7fffffffu) > 0x7f800000u)
        return word >> 16 | 0x40u;
    return (word + 0x7fffu + (word >> 16 & 1u)) >> 16;
}

__device__ inline uint32_t
add_bf16x2(uint32_t a, uint32_t b)
{
#if __CUDA_ARCH__ >= 900
    uint32_t sum;
    asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
#elif __CUDA_ARCH__ >= 800
    /* bfloat16 addition needs sm_90; a * 1 + b rounds once as well. */
    uint32_t sum;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(0x3f803f80u), "r"(b));
    return sum;
#else
    return bf16_nearest(bf16_high(a) + bf16_high(b)) << 16 | bf16_nearest(bf16_low(a) + bf16_low(b));
#endif
}

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

__device__ inline float
f16_value(uint16_t half)
{
#if VECADD_DOUBLE
    return bits_as<_Float16>(half);
#else
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
#endif
}

/* The nearest float16, ties to even; a NaN stays a NaN. */
__device__ inline uint16_t
f16_nearest(float x)
{
#if VECADD_DOUBLE
    return bits_as<uint16_t>(static_cast<_Float16>(x));
#else
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
#endif
}

__device__ inline uint16_t
f16_nearest(double x)
{
#if VECADD_DOUBLE
    return bits_as<uint16_t>(static_cast<_Float16>(x));
#else
    uint16_t half;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(half) : "d"(x));
    return half;
#endif
}

/* The 32 bits of `high:low` from bit `shift` on; 0 <= shift < 32. */
__device__ inline uint32_t
funnel_shift(uint32_t low, uint32_t high, unsigned shift)
{
#if VECADD_DOUBLE
    return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> shift);
#else
    return __funnelshift_r(low, high, shift);
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

enum { L2_LINE = 128 }; /* bytes per applypriority */

struct alignas(16) words {
    uint32_t word[4];
};

/* Loads 16 bytes if `inside`; else zeros. Under a predicate: a branch around the loads would first wait for the
 * comparison. */
__device__ inline words
load_if(bool inside, const words *from)
{
#if VECADD_DOUBLE
    return inside ? *from : words{};
#else
    words loaded;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.ne.u32 p, %5, 0;\n\t"
                 "mov.b32 %0, 0;\n\t"
                 "mov.b32 %1, 0;\n\t"
                 "mov.b32 %2, 0;\n\t"
                 "mov.b32 %3, 0;\n\t"
                 "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n\t"
                 "}"
                 : "=&r"(loaded.word[0]), "=&r"(loaded.word[1]), "=&r"(loaded.word[2]), "=&r"(loaded.word[3])
                 : "l"(__cvta_generic_to_global(from)), "r"(static_cast<unsigned>(inside))
                 : "memory");
    return loaded;
#endif
}

/* Loads 16 bytes, and asks the L2 to evict them last: until demote_line() they outlive plainly loaded lines. On sm_90,
 * where it was measured; elsewhere a plain load. The instruction exists from sm_80 on, but machine code for five more
 * architectures would add 27 KB to the wheel. */
__device__ inline words
load_evict_last(const words *from)
{
#if VECADD_DOUBLE
    l2_holds(from);
    return *from;
#elif __CUDA_ARCH__ == 900
    uint64_t policy;
    words loaded;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(loaded.word[0]), "=r"(loaded.word[1]), "=r"(loaded.word[2]), "=r"(loaded.word[3])
                 : "l"(__cvta_generic_to_global(from)), "l"(policy));
    return loaded;
#else
    return *from;
#endif
}

/* Makes a line of the L2 an ordinary one again. `line` is aligned to L2_LINE. */
__device__ inline void
demote_line(const void *line)
{
#if VECADD_DOUBLE
    l2_demotes(line);
#elif __CUDA_ARCH__ == 900
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(__cvta_generic_to_global(line)) : "memory");
#else
    (void)line;
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

/* For kernels launched with the programmatic attribute: waits until the preceding kernels have ended and their writes
 * are visible. A thread must not load, store or exit before it. Returns at once without the attribute, and below sm_90.
 */
__device__ inline void
wait_for_prerequisites()
{
#if VECADD_DOUBLE
    wait_for_prerequisites_on_cpu();
#elif __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
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
