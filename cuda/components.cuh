/* What each component is and how it is added. Additions work on a unit, 32 or 64 bits of packed elements, because a
 * scalar addition for each int8 of a 16-byte vector would take more issue slots than the memory leaves free.
 *
 * A component has: number, its value in enum component; element, the type of one component as bits; unit; add(a, b),
 * the packed sum; and where raises_flags is true, flags(a, b, sum), the floating-point flags that the sum raised. */
#ifndef VECADD_CUDA_COMPONENTS_CUH
#define VECADD_CUDA_COMPONENTS_CUH

#include <stdint.h>

#include "base/dtype.h"
#include "base/fpflags.h"
#include "cuda/ptx.cuh"

/* Integers wrap. `Signs` has the top bit of each packed element set: with these bits left out of the addition no carry
 * leaves its element, and the exclusive or puts them back. */
template <enum component Number, typename Element, typename Unit, Unit Signs> struct integer_component {
    static constexpr enum component number = Number;
    using element = Element;
    using unit = Unit;
    static constexpr bool raises_flags = false;

    static __device__ unit
    add(unit a, unit b)
    {
        return ((a & ~Signs) + (b & ~Signs)) ^ ((a ^ b) & Signs);
    }
};

/* Logical or. Any byte but 0 is true, and true is written as 1. */
struct bool_component {
    static constexpr enum component number = COMPONENT_BOOL;
    using element = uint8_t;
    using unit = uint32_t;
    static constexpr bool raises_flags = false;

    static __device__ unit
    add(unit a, unit b)
    {
        const unit either = a | b;
        const unit top = (either | ((either & 0x7f7f7f7fu) + 0x7f7f7f7fu)) & 0x80808080u; /* set where not 0 */
        return top >> 7;
    }
};

/* Whether a floating-point sum raised a flag, read off the bits. `Infinity` is positive infinity's pattern. */
template <enum component Number, typename Element, typename Unit, Element Infinity> struct float_component {
    static constexpr enum component number = Number;
    using element = Element;
    using unit = Unit;
    static constexpr bool raises_flags = true;
    static constexpr element magnitude = static_cast<element>(~element(0)) >> 1;
    static constexpr element quiet = (Infinity & -Infinity) >> 1;

    static __device__ bool
    is_nan(element x)
    {
        return (x & magnitude) > Infinity;
    }

    static __device__ bool
    is_signalling(element x)
    {
        return is_nan(x) && !(x & quiet);
    }

    static __device__ bool
    is_finite(element x)
    {
        return (x & magnitude) < Infinity;
    }

    /* Only an infinite or NaN sum can have raised a flag, so that ordinary sums cost one comparison each. */
    template <typename Overflows>
    static __device__ unsigned
    packed_flags(unit a, unit b, unit sum, Overflows overflows)
    {
        unsigned flags = 0;
        for (unsigned shift = 0; shift < 8 * sizeof(unit); shift += 8 * sizeof(element)) {
            const element x = a >> shift, y = b >> shift, z = sum >> shift;
            if (is_finite(z))
                continue;
            if (!is_nan(z))
                flags |= is_finite(x) && is_finite(y) && overflows(x, y) ? FP_OVERFLOW : 0;
            else if (is_signalling(x) || is_signalling(y) || (!is_nan(x) && !is_nan(y)))
                flags |= FP_INVALID;
        }
        return flags;
    }

    static __device__ unsigned
    flags(unit a, unit b, unit sum)
    {
        return packed_flags(a, b, sum, [](element, element) { return true; });
    }
};

struct f16_component : float_component<COMPONENT_F16, uint16_t, uint32_t, 0x7c00> {
    static __device__ unit
    add(unit a, unit b)
    {
        return add_f16x2(a, b);
    }
};

struct bf16_component : float_component<COMPONENT_BF16, uint16_t, uint32_t, 0x7f80> {
    static __device__ unit
    add(unit a, unit b)
    {
        return add_bf16x2(a, b);
    }

    /* The float32 sum decides: one that only the rounding to bfloat16 takes to infinity raises nothing in NumPy. */
    static __device__ unsigned
    flags(unit a, unit b, unit sum)
    {
        return packed_flags(a, b, sum, [](element x, element y) {
            const uint32_t wide = bits_as<uint32_t>(bf16_low(x) + bf16_low(y));
            return (wide & 0x7fffffffu) == 0x7f800000u;
        });
    }
};

struct f32_component : float_component<COMPONENT_F32, uint32_t, uint32_t, 0x7f800000u> {
    static __device__ unit
    add(unit a, unit b)
    {
        return bits_as<unit>(bits_as<float>(a) + bits_as<float>(b));
    }
};

struct f64_component : float_component<COMPONENT_F64, uint64_t, uint64_t, 0x7ff0000000000000u> {
    static __device__ unit
    add(unit a, unit b)
    {
        return bits_as<unit>(bits_as<double>(a) + bits_as<double>(b));
    }
};

using i8_component = integer_component<COMPONENT_I8, uint8_t, uint32_t, 0x80808080u>;
using i16_component = integer_component<COMPONENT_I16, uint16_t, uint32_t, 0x80008000u>;
using i32_component = integer_component<COMPONENT_I32, uint32_t, uint32_t, 0>;
using i64_component = integer_component<COMPONENT_I64, uint64_t, uint64_t, 0>;

/* What a thread loads at once: 16 bytes are the most on every architecture. */
template <typename Component, unsigned Bytes = 16> struct alignas(Bytes) vector_of {
    typename Component::unit units[Bytes / sizeof(typename Component::unit)];
    static constexpr unsigned size = Bytes / sizeof(typename Component::element);
};

template <typename Component>
__device__ inline typename Component::element
add_elements(typename Component::element a, typename Component::element b)
{
    return static_cast<typename Component::element>(Component::add(a, b));
}

template <typename Component, unsigned Bytes>
__device__ inline vector_of<Component, Bytes>
add_vectors(const vector_of<Component, Bytes> &a, const vector_of<Component, Bytes> &b)
{
    vector_of<Component, Bytes> sum;
    for (unsigned i = 0; i < sizeof sum.units / sizeof sum.units[0]; ++i)
        sum.units[i] = Component::add(a.units[i], b.units[i]);
    return sum;
}

/* visit(component) with the one that `component` names: the only switch over components, on the host and in a kernel.
 */
#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
template <typename Visit>
__host__ __device__ inline auto
with_component(enum component component, Visit visit)
{
    switch (component) {
    case COMPONENT_BOOL:
        return visit(bool_component());
    case COMPONENT_I8:
        return visit(i8_component());
    case COMPONENT_I16:
        return visit(i16_component());
    case COMPONENT_I32:
        return visit(i32_component());
    case COMPONENT_I64:
        return visit(i64_component());
    case COMPONENT_F16:
        return visit(f16_component());
    case COMPONENT_BF16:
        return visit(bf16_component());
    case COMPONENT_F32:
        return visit(f32_component());
    case COMPONENT_F64:
    default:
        return visit(f64_component());
    }
}

#endif
