/* Elements whose dtype is known only at run time: a few neighbours in registers, and what they are as numbers.
 *
 * Additions work on one of four kinds of value: integers of 64 bits, of which every width is a part, float, double, and
 * complex numbers of two doubles. A kernel for each pair of dtypes would be 225 of them. Sums of float16 and bfloat16
 * in float, and of complex64 in doubles, are rounded to what they would be by themselves: 24 bits are at least
 * 2 * 11 + 2, and 53 at least 2 * 24 + 2. */
#ifndef VECADD_CUDA_ELEMENTS_CUH
#define VECADD_CUDA_ELEMENTS_CUH

#include <stdint.h>

#include <type_traits>

#include "base/dtype.h"
#include "cuda/ptx.cuh"

/* Element types that C++ has none for. */
struct truth {
    uint8_t byte;
};
struct half {
    uint16_t bits;
};
struct bfloat {
    uint16_t bits;
};
template <typename Part> struct complex_of {
    Part re, im;
};

template <typename T> struct is_complex {
    static constexpr bool value = false;
};
template <typename Part> struct is_complex<complex_of<Part>> {
    static constexpr bool value = true;
};

/* visit(T()) with the element type of a dtype, if it is of one of these kinds: the only switch over dtypes. */
enum dtype_kinds { INTEGERS = 1, FLOATS = 2, COMPLEXES = 4 };

template <unsigned Kinds, typename Visit>
__device__ inline void
with_dtype(enum dtype dtype, Visit visit)
{
    if constexpr ((Kinds & FLOATS) != 0)
        switch (dtype) {
        case DTYPE_FLOAT16:
            return visit(half());
        case DTYPE_BFLOAT16:
            return visit(bfloat());
        case DTYPE_FLOAT32:
            return visit(float());
        case DTYPE_FLOAT64:
            return visit(double());
        default:
            break;
        }
    if constexpr ((Kinds & COMPLEXES) != 0)
        switch (dtype) {
        case DTYPE_COMPLEX64:
            return visit(complex_of<float>());
        case DTYPE_COMPLEX128:
            return visit(complex_of<double>());
        default:
            break;
        }
    if constexpr ((Kinds & INTEGERS) != 0)
        switch (dtype) {
        case DTYPE_BOOL:
            return visit(truth());
        case DTYPE_INT8:
            return visit(int8_t());
        case DTYPE_INT16:
            return visit(int16_t());
        case DTYPE_INT32:
            return visit(int32_t());
        case DTYPE_INT64:
            return visit(int64_t());
        case DTYPE_UINT8:
            return visit(uint8_t());
        case DTYPE_UINT16:
            return visit(uint16_t());
        case DTYPE_UINT32:
            return visit(uint32_t());
        case DTYPE_UINT64:
            return visit(uint64_t());
        default:
            break;
        }
}

/* Elements that lie side by side, 16 bytes of them at most. */
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

/* What it overwrites is 0. */
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

/* `bytes` of elements, a power of two where they are `whole`: aligned to as many, or to 16. Others come byte by byte.
 */
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

/* An element as a number of C++. */
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

__device__ inline float
number_of(half element)
{
    return f16_value(element.bits);
}

__device__ inline float
number_of(bfloat element)
{
    return bf16_low(element.bits);
}

/* The nearest of `sum`'s numbers, of which float has more. */
__device__ inline float
nearest_of(enum dtype sum, float x)
{
    return sum == DTYPE_FLOAT16 ? f16_value(f16_nearest(x)) : sum == DTYPE_BFLOAT16 ? bf16_low(bf16_nearest(x)) : x;
}

/* Of a complex number of dtype `sum`. */
template <typename Number>
__device__ inline double
part_of(enum dtype sum, Number x)
{
    return sum == DTYPE_COMPLEX64 ? static_cast<double>(static_cast<float>(x)) : static_cast<double>(x);
}

/* As a value of the kind that additions are done in. A double becomes a float16 in one rounding, as in NumPy; integers
 * come by way of float, which keeps those that a float16 can come near, and doubles by the same way to bfloat16, as
 * ml_dtypes goes it. */
template <typename Value, typename T>
__device__ inline Value
value_of(enum dtype sum, T element)
{
    const auto x = number_of(element);
    if constexpr (is_complex<Value>::value) {
        if constexpr (is_complex<T>::value)
            return {part_of(sum, x.re), part_of(sum, x.im)};
        else
            return {part_of(sum, x), 0};
    } else if constexpr (std::is_same_v<Value, float> && std::is_same_v<T, double>)
        return sum == DTYPE_FLOAT16 ? f16_value(f16_nearest(x)) : static_cast<float>(x);
    else
        return static_cast<Value>(x);
}

template <typename T, typename Number>
__device__ inline T
element_from(Number x)
{
    using narrow = std::conditional_t<std::is_integral_v<Number>, float, Number>;
    if constexpr (std::is_same_v<T, truth>)
        return {x != 0};
    else if constexpr (std::is_same_v<T, half>)
        return {f16_nearest(static_cast<narrow>(x))};
    else if constexpr (std::is_same_v<T, bfloat>)
        return {static_cast<uint16_t>(bf16_nearest(static_cast<float>(x)))};
    else
        return static_cast<T>(x);
}

/* A value of `sum`'s dtype as an element of another one. */
template <typename T, typename Value>
__device__ inline T
converted(enum dtype sum, Value x)
{
    if constexpr (is_complex<T>::value) {
        using part = decltype(T().re);
        if constexpr (is_complex<Value>::value)
            return {static_cast<part>(x.re), static_cast<part>(x.im)};
        else
            return {converted<part>(sum, x), 0};
    } else if constexpr (is_complex<Value>::value)
        return element_from<T>(x.re);
    else if constexpr (std::is_integral_v<Value> && !std::is_integral_v<T>)
        return sum == DTYPE_UINT64 ? element_from<T>(x) : element_from<T>(static_cast<int64_t>(x));
    else
        return element_from<T>(x);
}

#endif
