/* The type and the addition of each component: a struct for each name of EACH_COMPONENT (csrc/base/dtype.h),
 * f32_component for f32; a missing one does not compile. Additions work on a unit, 32 or 64 bits of packed elements,
 * because a scalar addition for each int8 of a 16-byte vector would take more issue slots than the memory leaves free.
 *
 * A component has: number, its value in enum component; element, an unsigned integer with its bits; scalar, its C++
 * arithmetic type; unit; add(a, b), the packed sum; and if raises_flags, flags(a, b, sum), the floating-point flags
 * that the sum raised. A short float's scalar is short_scalar of its component; that component has to_float(bits),
 * exact, and nearest(x), which rounds a float or a double, ties to even. */
#ifndef VECADD_CUDA_COMPONENTS_CUH
#define VECADD_CUDA_COMPONENTS_CUH

#include <stdint.h>

#include <type_traits>

#include "base/dtype.h"
#include "cuda/ptx.cuh"

/* Scalar types for bool and short floats, which have no C++ arithmetic type here. */
struct truth {
    uint8_t byte;
};
template <typename Component> struct short_scalar {
    typename Component::element bits;
};

/* Integers wrap. `Signs` has the top bit of each packed element set: the addition leaves these bits out, so that no
 * carry crosses into the next element; the exclusive or then adds them. */
template <enum component Number, typename Element, typename Unit, Unit Signs> struct integer_component {
    static constexpr enum component number = Number;
    using element = Element;
    using scalar = std::make_signed_t<Element>;
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
    using scalar = truth;
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

/* Floating-point components; flags() finds the flags of a sum from the bits. `Infinity` is positive infinity's pattern.
 */
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

    /* Only an infinite or NaN sum can have raised a flag, so that finite sums cost one comparison each. */
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

/* float8_e4m3fn: 4 bits of exponent, 3 of fraction, no infinity, one NaN of either sign. No sum raises a flag: the
 * format has no infinities and no signalling NaNs, and ml_dtypes rounds without flags. */
struct e4m3fn_component {
    static constexpr enum component number = COMPONENT_E4M3FN;
    using element = uint8_t;
    using scalar = short_scalar<e4m3fn_component>;
    using unit = uint32_t;
    static constexpr bool raises_flags = false;

    /* The value as a float, exactly; a NaN stays a NaN. */
    static __device__ float
    to_float(element bits)
    {
        const uint32_t sign = (bits & 0x80u) << 24, magnitude = bits & 0x7fu;
        if (magnitude == 0x7f)
            return bits_as<float>(sign | 0x7fc00000u);
        return bits_as<float>(sign | bits_as<uint32_t>(bits_as<float>(magnitude << 20) * 0x1p120f));
    }

    /* Rounds to nearest, ties to even, a double to float first, as ml_dtypes does; gives a NaN above 464, halfway from
     * the largest number, 448, to the next multiple, 480. */
    static __device__ element
    nearest(float x)
    {
        const uint32_t word = bits_as<uint32_t>(x), magnitude = word & 0x7fffffffu, sign = word >> 24 & 0x80u;
        uint32_t number = 0x7f;
        if (magnitude < 0x3c800000u) /* 2^-6, the least normal number: adding 2^14 rounds to a multiple of 2^-9 */
            number = bits_as<uint32_t>(bits_as<float>(magnitude) + 0x1p14f) - 0x46800000u;
        else if (magnitude <= 0x43e80000u)
            number = ((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3);
        return static_cast<element>(sign | number);
    }

    /* Converts the even bytes of a word to float16 numbers of 2^-8 times their value, by moving bits; subnormals stay
     * subnormal. */
    static __device__ uint32_t
    as_f16x2(uint32_t word)
    {
        return (word & 0x007f007fu) << 7 | (word & 0x00800080u) << 8;
    }

    /* Rounds 2^8 times each float16 to e4m3fn, ties to even, into the even bytes. The earlier rounding of the sum to
     * float16 is harmless: 11 bits are at least 2 * 4 + 2, and sums below the least normal number are exact. */
    static __device__ uint32_t
    from_f16x2(uint32_t halves)
    {
        const uint32_t magnitude = halves & 0x7fff7fffu;
        const uint32_t number = (magnitude + 0x003f003fu + (magnitude >> 7 & 0x00010001u)) >> 7 & 0x00ff00ffu;
        return ((number | (number >> 7 & 0x00010001u) * 0x7f) & 0x007f007fu) | (halves >> 8 & 0x00800080u);
    }

    /* Sets the top bit of each byte that is a NaN. */
    static __device__ uint32_t
    nans(uint32_t word)
    {
        return ((word & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u;
    }

    /* A NaN sum has a's sign if a is a NaN, else sign 0, as in ml_dtypes. */
    static __device__ unit
    add(unit a, unit b)
    {
        const uint32_t even = from_f16x2(add_f16x2(as_f16x2(a), as_f16x2(b)));
        const uint32_t odd = from_f16x2(add_f16x2(as_f16x2(a >> 8), as_f16x2(b >> 8)));
        const uint32_t first = nans(a), any = first | nans(b), nan = any - (any >> 7);
        return ((even | odd << 8) & ~(any | nan)) | nan | (first & a);
    }
};

struct f16_component : float_component<COMPONENT_F16, uint16_t, uint32_t, 0x7c00> {
    using scalar = short_scalar<f16_component>;

    static __device__ float
    to_float(element bits)
    {
        return f16_value(bits);
    }

    /* Rounds a double to float16 once, as NumPy does. */
    template <typename Number>
    static __device__ element
    nearest(Number x)
    {
        return f16_nearest(x);
    }

    static __device__ unit
    add(unit a, unit b)
    {
        return add_f16x2(a, b);
    }
};

struct bf16_component : float_component<COMPONENT_BF16, uint16_t, uint32_t, 0x7f80> {
    using scalar = short_scalar<bf16_component>;

    static __device__ float
    to_float(element bits)
    {
        return bf16_low(bits);
    }

    /* Rounds a double to float first, as ml_dtypes does. */
    static __device__ element
    nearest(float x)
    {
        return static_cast<element>(bf16_nearest(x));
    }

    static __device__ unit
    add(unit a, unit b)
    {
        return add_bf16x2(a, b);
    }

    /* The float32 sum decides: if only its rounding to bfloat16 gives infinity, NumPy raises nothing. */
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
    using scalar = float;

    static __device__ unit
    add(unit a, unit b)
    {
        return bits_as<unit>(bits_as<float>(a) + bits_as<float>(b));
    }
};

struct f64_component : float_component<COMPONENT_F64, uint64_t, uint64_t, 0x7ff0000000000000u> {
    using scalar = double;

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

/* The struct of a value of enum component. */
template <enum component Number> struct component_numbered;
#define NUMBER_COMPONENT(ID, name, ...)                                                                                \
    template <> struct component_numbered<COMPONENT_##ID> {                                                            \
        using type = name##_component;                                                                                 \
        static_assert(type::number == COMPONENT_##ID && sizeof(type::element) == sizeof(type::scalar));                \
    };
EACH_COMPONENT(NUMBER_COMPONENT)
#undef NUMBER_COMPONENT

/* A vector, which a thread loads at once: 16 bytes, the most on every architecture. */
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

/* Calls visit(x_component()) with the struct of `component`, on the host or in a kernel. */
#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
template <typename Visit>
__host__ __device__ inline auto
with_component(enum component component, Visit visit)
{
#define VISIT_COMPONENT(ID, name, ...)                                                                                 \
    case COMPONENT_##ID:                                                                                               \
        return visit(name##_component());
    switch (component) {
        EACH_COMPONENT(VISIT_COMPONENT)
    case COMPONENT_COUNT:
        break;
    }
#undef VISIT_COMPONENT
    __builtin_unreachable();
}

/* Calls load(x_component()) with the struct of each component, until one fails. */
template <typename Load>
inline cudaError_t
load_components(Load load)
{
    cudaError_t error = cudaSuccess;
    for (int component = 0; component < COMPONENT_COUNT && error == cudaSuccess; ++component)
        error = with_component(static_cast<enum component>(component), load);
    return error;
}

#endif
