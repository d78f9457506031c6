/* Elements whose dtype is known only at run time: a few neighbours in registers, and their conversion to numbers.
 *
 * Additions work on one of four types: 64-bit integers, whose low bits are the sum of every narrower type, float,
 * double, and complex numbers of two doubles. A kernel for each pair of dtypes would mean 225 kernels. Computing
 * float16 and bfloat16 sums in float, and complex64 sums in doubles, and then rounding gives the same bits as one
 * rounding: 24 bits are at least 2 * 11 + 2, and 53 at least 2 * 24 + 2. */
#ifndef VECADD_CUDA_ELEMENTS_CUH
#define VECADD_CUDA_ELEMENTS_CUH

#include <stdint.h>

#include <type_traits>

#include "base/dtype.h"
#include "cuda/components.cuh"
#include "cuda/ptx.cuh"

template <typename Part> struct complex_of {
    Part re, im;
};

template <typename T> struct is_complex {
    static constexpr bool value = false;
};
template <typename Part> struct is_complex<complex_of<Part>> {
    static constexpr bool value = true;
};

/* The C++ type of an element, from its kind of value and its component's scalar. */
template <enum value_kind Value, typename Scalar> struct element_type {
    using type = Scalar;
};
template <typename Scalar> struct element_type<VALUE_UNSIGNED, Scalar> {
    using type = std::make_unsigned_t<Scalar>;
};
template <typename Scalar> struct element_type<VALUE_COMPLEX, Scalar> {
    using type = complex_of<Scalar>;
};

/* with_dtype<Kinds> calls visit(T()) with the element type of a dtype, if its kind of value is one of Kinds. */
enum value_kinds {
    INTEGERS = 1 << VALUE_BOOL | 1 << VALUE_SIGNED | 1 << VALUE_UNSIGNED,
    FLOATS = 1 << VALUE_FLOAT,
    COMPLEXES = 1 << VALUE_COMPLEX
};

template <unsigned Kinds, typename Visit>
__device__ inline void
with_dtype(enum dtype dtype, Visit visit)
{
#define VISIT_DTYPE(ID, name, typestr, VALUE, COMPONENT, NUMPY, DLPACK)                                                \
    case DTYPE_##ID:                                                                                                   \
        if constexpr ((Kinds & 1 << VALUE_##VALUE) != 0)                                                               \
            visit(typename element_type<VALUE_##VALUE,                                                                 \
                                        typename component_numbered<COMPONENT_##COMPONENT>::type::scalar>::type());    \
        break;
    switch (dtype) {
        EACH_DTYPE(VISIT_DTYPE)
    case DTYPE_COUNT:
        break;
    }
#undef VISIT_DTYPE
}

/* Whether some dtype has elements of Size bytes made of one or two of this component. */
template <enum component Component, unsigned Size>
static constexpr bool component_has_size =
#define HAS_SIZE(ID, name, typestr, VALUE, COMPONENT, NUMPY, DLPACK)                                                   \
    (COMPONENT_##COMPONENT == Component &&                                                                             \
     (VALUE_##VALUE == VALUE_COMPLEX ? 2 : 1) * sizeof(typename component_numbered<Component>::type::element) ==       \
         Size) ||
    EACH_DTYPE(HAS_SIZE) false;
#undef HAS_SIZE

/* Calls visit(x_component()) with the struct of `component`; compiles only components whose elements have Size bytes.
 */
template <unsigned Size, typename Visit>
__device__ inline auto
with_component_of_size(enum component component, Visit visit)
{
#define VISIT_COMPONENT(ID, name, ...)                                                                                 \
    if constexpr (component_has_size<COMPONENT_##ID, Size>)                                                            \
        if (component == COMPONENT_##ID)                                                                               \
            return visit(name##_component());
    EACH_COMPONENT(VISIT_COMPONENT)
#undef VISIT_COMPONENT
    __builtin_unreachable();
}

/* Adjacent elements in registers, at most 16 bytes. */
template <unsigned Bytes> struct packed {
    uint32_t word[Bytes / 4];
};

template <typename T, unsigned Bytes>
__device__ inline T
element_of(const packed<Bytes> &from, unsigned i)
{
    if constexpr (sizeof(T) >= 4) {
        struct {
            uint32_t word[sizeof(T) / 4];
        } words;
        for (unsigned k = 0; k < sizeof(T) / 4; ++k)
            words.word[k] = from.word[i * (sizeof(T) / 4) + k];
        return bits_as<T>(words);
    } else if constexpr (sizeof(T) == 2)
        return bits_as<T>(static_cast<uint16_t>(from.word[i / 2] >> i % 2 * 16));
    else
        return bits_as<T>(static_cast<uint8_t>(from.word[i / 4] >> i % 4 * 8));
}

/* Sets the i-th element, which is 0 before. */
template <typename T, unsigned Bytes>
__device__ inline void
put_element(packed<Bytes> &to, unsigned i, T element)
{
    if constexpr (sizeof(T) >= 4) {
        struct words {
            uint32_t word[sizeof(T) / 4];
        };
        const words bits = bits_as<words>(element);
        for (unsigned k = 0; k < sizeof(T) / 4; ++k)
            to.word[i * (sizeof(T) / 4) + k] = bits.word[k];
    } else if constexpr (sizeof(T) == 2)
        to.word[i / 2] |= static_cast<uint32_t>(bits_as<uint16_t>(element)) << i % 2 * 16;
    else
        to.word[i / 4] |= static_cast<uint32_t>(bits_as<uint8_t>(element)) << i % 4 * 8;
}

/* Loads `bytes` of elements: at once if `whole`, when `bytes` is a power of two and the address aligned to it, or to
 * 16; else byte by byte. */
template <unsigned Bytes>
__device__ inline packed<Bytes>
load_packed(const char *from, unsigned bytes, bool whole)
{
    packed<Bytes> elements = {};
    if (!whole) {
        unsigned char byte[Bytes] = {};
        for (unsigned k = 0; k < bytes; ++k)
            byte[k] = static_cast<unsigned char>(from[k]);
        __builtin_memcpy(&elements, byte, sizeof elements);
        return elements;
    }
    const uint32_t *words = reinterpret_cast<const uint32_t *>(from);
    switch (bytes) {
    case 1:
        elements.word[0] = *reinterpret_cast<const uint8_t *>(from);
        break;
    case 2:
        elements.word[0] = *reinterpret_cast<const uint16_t *>(from);
        break;
    case 4:
        elements.word[0] = *words;
        break;
    case 8: {
        const uint2 two = *reinterpret_cast<const uint2 *>(from);
        elements.word[0] = two.x, elements.word[1] = two.y;
        break;
    }
    default:
        for (unsigned vector = 0; vector < Bytes / 16; ++vector) {
            if (vector * 16 >= bytes)
                break;
            const uint4 four = *reinterpret_cast<const uint4 *>(words + 4 * vector);
            elements.word[4 * vector] = four.x, elements.word[4 * vector + 1] = four.y;
            elements.word[4 * vector + 2] = four.z, elements.word[4 * vector + 3] = four.w;
        }
    }
    return elements;
}

template <unsigned Bytes>
__device__ inline void
store_packed(char *to, const packed<Bytes> &elements, unsigned bytes, bool whole)
{
    if (!whole) {
        unsigned char byte[Bytes];
        __builtin_memcpy(byte, &elements, sizeof elements);
        for (unsigned k = 0; k < bytes; ++k)
            to[k] = static_cast<char>(byte[k]);
        return;
    }
    uint32_t *words = reinterpret_cast<uint32_t *>(to);
    switch (bytes) {
    case 1:
        *reinterpret_cast<uint8_t *>(to) = static_cast<uint8_t>(elements.word[0]);
        break;
    case 2:
        *reinterpret_cast<uint16_t *>(to) = static_cast<uint16_t>(elements.word[0]);
        break;
    case 4:
        *words = elements.word[0];
        break;
    case 8:
        *reinterpret_cast<uint2 *>(to) = {elements.word[0], elements.word[1]};
        break;
    default:
        for (unsigned vector = 0; vector < Bytes / 16; ++vector)
            if (vector * 16 < bytes)
                *reinterpret_cast<uint4 *>(words + 4 * vector) =
                    make_uint4(elements.word[4 * vector], elements.word[4 * vector + 1], elements.word[4 * vector + 2],
                               elements.word[4 * vector + 3]);
    }
}

/* Converts an element to a C++ number. */
template <typename T>
__device__ inline T
number_of(T element)
{
    return element;
}

__device__ inline uint8_t
number_of(truth element)
{
    return element.byte != 0;
}

template <typename Component>
__device__ inline float
number_of(short_scalar<Component> element)
{
    return Component::to_float(element.bits);
}

/* Rounds x to the nearest number of the short float `sum`, or else to float. */
template <typename Number>
__device__ inline float
nearest_of(enum component sum, Number x)
{
#define NEAREST(ID, name, ...)                                                                                         \
    if (sum == COMPONENT_##ID)                                                                                         \
        return name##_component::to_float(name##_component::nearest(x));
    EACH_SHORT_FLOAT_COMPONENT(NEAREST)
#undef NEAREST
    return static_cast<float>(x);
}

/* Rounds one part of a complex number to the component `sum`. */
template <typename Number>
__device__ inline double
part_of(enum component sum, Number x)
{
    return sum == COMPONENT_F32 ? static_cast<double>(static_cast<float>(x)) : static_cast<double>(x);
}

/* Converts an element to the type in which the sum is computed. Integers become short floats through float, which holds
 * every integer in float16's range exactly. */
template <typename Value, typename T>
__device__ inline Value
value_of(enum component sum, T element)
{
    const auto x = number_of(element);
    if constexpr (is_complex<Value>::value) {
        if constexpr (is_complex<T>::value)
            return {part_of(sum, x.re), part_of(sum, x.im)};
        else
            return {part_of(sum, x), 0};
    } else if constexpr (std::is_same_v<Value, float> && std::is_same_v<T, double>)
        return nearest_of(sum, x);
    else
        return static_cast<Value>(x);
}

template <typename T> struct is_short {
    static constexpr bool value = false;
};
template <typename Component> struct is_short<short_scalar<Component>> : Component {
    static constexpr bool value = true;
};

template <typename T, typename Number>
__device__ inline T
element_from(Number x)
{
    using narrow = std::conditional_t<std::is_integral_v<Number>, float, Number>;
    if constexpr (std::is_same_v<T, truth>)
        return {x != 0};
    else if constexpr (is_short<T>::value)
        return {is_short<T>::nearest(static_cast<narrow>(x))};
    else
        return static_cast<T>(x);
}

/* Converts a sum to an element of another dtype. */
template <typename T, typename Value>
__device__ inline T
converted(bool is_signed, Value x)
{
    if constexpr (is_complex<T>::value) {
        using part = decltype(T().re);
        if constexpr (is_complex<Value>::value)
            return {static_cast<part>(x.re), static_cast<part>(x.im)};
        else
            return {converted<part>(is_signed, x), 0};
    } else if constexpr (is_complex<Value>::value)
        return element_from<T>(x.re);
    else if constexpr (std::is_integral_v<Value> && !std::is_integral_v<T>)
        return is_signed ? element_from<T>(static_cast<int64_t>(x)) : element_from<T>(x);
    else
        return element_from<T>(x);
}

#endif
