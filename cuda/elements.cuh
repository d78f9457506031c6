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
#include "cuda/index_map.cuh"
#include "cuda/ptx.cuh"

template <typename Part> struct complex_of {
    Part re, im;
};

template <typename T> struct is_complex : std::false_type {
};
template <typename Part> struct is_complex<complex_of<Part>> : std::true_type {
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

/* Adjacent elements in registers. */
struct packed {
    uint32_t word[4];
};
static_assert(sizeof(packed) == MAX_ITEMSIZE, "one element of any dtype, or more");

template <typename T>
__device__ inline T
element_of(const packed &from, unsigned i)
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
template <typename T>
__device__ inline void
put_element(packed &to, unsigned i, T element)
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

template <unsigned Size>
using element_of_size = std::conditional_t<
    Size == 1, uint8_t,
    std::conditional_t<Size == 2, uint16_t,
                       std::conditional_t<Size == 4, uint32_t, std::conditional_t<Size == 8, uint2, uint4>>>>;

template <unsigned Size>
__device__ inline void
load_element(packed &to, unsigned i, const char *from)
{
    put_element(to, i, *reinterpret_cast<const element_of_size<Size> *>(from));
}

/* Loads `bytes` of elements: at once if `whole`, when `bytes` is a power of two and the address aligned to it, or to
 * 16; else byte by byte. */
__device__ inline packed
load_packed(const char *from, unsigned bytes, bool whole)
{
    packed elements = {};
    if (!whole) {
        unsigned char byte[sizeof elements] = {};
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
        if (bytes == 0)
            break;
        const uint4 four = *reinterpret_cast<const uint4 *>(words);
        elements = {four.x, four.y, four.z, four.w};
    }
    return elements;
}

__device__ inline void
store_packed(char *to, const packed &elements, unsigned bytes, bool whole)
{
    if (!whole) {
        unsigned char byte[sizeof elements];
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
        if (bytes == 0)
            break;
        *reinterpret_cast<uint4 *>(words) =
            make_uint4(elements.word[0], elements.word[1], elements.word[2], elements.word[3]);
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

/* Converts an element to the type in which the sum is computed. Integers become short floats through float, which has
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

template <typename T> struct is_short : std::false_type {
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

/* --- A few neighbours that have the sum's dtype: load, add, store. */

template <unsigned Size, unsigned Count>
__device__ inline packed
load_same_dtype(const char *from, const side &side, unsigned count)
{
    packed elements = {};
    if (Count == 1 || side.spread)
        for (unsigned i = 0; i < Count; ++i)
            load_element<Size>(elements, i, from);
    else if (side.whole && count == Count)
        load_element<16>(elements, 0, from);
    else
        for (unsigned i = 0; i < Count; ++i)
            if (i < count)
                load_element<Size>(elements, i, from + i * Size);
    return elements;
}

template <unsigned Size, unsigned Count>
__device__ inline void
store_same_dtype(char *to, const packed &elements, unsigned count)
{
    constexpr unsigned RUN = Size * Count;
    if (count == Count)
        return store_packed(to, elements, RUN, true);
    for (unsigned i = 0; i < Count; ++i)
        if (i < count)
            for (unsigned k = 0; k < Size; ++k)
                to[i * Size + k] = static_cast<char>(element_of<uint8_t>(elements, i * Size + k));
}

template <typename Component>
__device__ inline packed
add_units(const packed &x, const packed &y)
{
    using unit = typename Component::unit;
    packed sum = {};
    for (unsigned i = 0; i < sizeof sum / sizeof(unit); ++i)
        put_element(sum, i, Component::add(element_of<unit>(x, i), element_of<unit>(y, i)));
    return sum;
}

template <unsigned Size>
__device__ inline packed
add_same_dtype(enum component component, const packed &x, const packed &y)
{
    return with_component_of_size<Size>(component, [&](auto each) { return add_units<decltype(each)>(x, y); });
}

/* Calls visit(std::integral_constant) with the element size as a constant. */
template <typename Visit>
inline auto
with_size(size_t itemsize, Visit visit)
{
    switch (itemsize) {
    case 1:
        return visit(std::integral_constant<unsigned, 1>());
    case 2:
        return visit(std::integral_constant<unsigned, 2>());
    case 4:
        return visit(std::integral_constant<unsigned, 4>());
    case 8:
        return visit(std::integral_constant<unsigned, 8>());
    default:
        return visit(std::integral_constant<unsigned, 16>());
    }
}

/* Calls load(std::integral_constant) for every element size, until one fails. */
template <typename Load>
inline cudaError_t
load_sizes(Load load)
{
    cudaError_t error = cudaSuccess;
    for (size_t itemsize = 1; itemsize <= MAX_ITEMSIZE && error == cudaSuccess; itemsize *= 2)
        error = with_size(itemsize, load);
    return error;
}

/* --- The narrower of two dtypes, converted to the sum's in registers. */

/* Converts an element to the type of the sum. */
template <typename Sum, typename T>
__device__ inline Sum
in_sum(T element)
{
    const auto x = number_of(element);
    if constexpr (is_complex<Sum>::value)
        return {static_cast<float>(x), 0};
    else
        return static_cast<Sum>(x);
}

/* Calls visit(Sum()) with the C++ type of the map's sum, whose elements have Size bytes. */
template <unsigned Size, typename Visit>
__device__ inline void
with_sum(const index_map &map, Visit visit)
{
    with_component_of_size<Size>(map.component, [&](auto component) {
        using scalar = typename decltype(component)::scalar;
        if constexpr (sizeof(scalar) < Size)
            visit(complex_of<scalar>());
        else if constexpr (std::is_integral_v<scalar>)
            visit(std::make_unsigned_t<scalar>());
        else
            visit(scalar());
    });
}

/* Converts `Count` elements at the start of a vector. */
template <unsigned Size, unsigned Count>
__device__ inline packed
converted_run(const index_map &map, const side &side, const packed &run)
{
    if (side.dtype == map.sum)
        return run;
    packed result = {};
    with_dtype<INTEGERS | FLOATS>(side.dtype, [&](auto element) {
        using type = decltype(element);
        if constexpr (sizeof(type) <= Size)
            with_sum<Size>(map, [&](auto sum) {
                using sum_type = decltype(sum);
                if constexpr (!std::is_integral_v<sum_type> || std::is_integral_v<decltype(number_of(element))>)
                    for (unsigned i = 0; i < Count; ++i)
                        put_element(result, i, in_sum<sum_type>(element_of<type>(run, i)));
            });
    });
    return result;
}

/* Whether the sum has 4 or 8 bytes an element, and each input is converted to it by converted_run. */
inline bool
is_convertible(const struct strided *add)
{
    const struct dtype_row *sum = &dtype_table[add->sum];
    if (add->dtype[LAYOUT_SUM] != add->sum || (sum->itemsize != 4 && sum->itemsize != 8))
        return false;
    for (int k = 0; k < LAYOUT_SUM; ++k) {
        const struct dtype_row *own = &dtype_table[add->dtype[k]];
        if (add->dtype[k] != add->sum && (own->itemsize > sum->itemsize || own->components > 1))
            return false;
    }
    return true;
}

#endif
