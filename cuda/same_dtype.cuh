/* Loads, adds and stores a few neighbours that have the sum's dtype. */
#ifndef VECADD_CUDA_SAME_DTYPE_CUH
#define VECADD_CUDA_SAME_DTYPE_CUH

#include <type_traits>

#include "cuda/components.cuh"
#include "cuda/elements.cuh"
#include "cuda/index_map.cuh"

template <unsigned Size>
using element_of_size = std::conditional_t<
    Size == 1, uint8_t,
    std::conditional_t<Size == 2, uint16_t,
                       std::conditional_t<Size == 4, uint32_t, std::conditional_t<Size == 8, uint2, uint4>>>>;

template <unsigned Size>
__device__ inline void
load_element(packed<16> &to, unsigned i, const char *from)
{
    put_element(to, i, *reinterpret_cast<const element_of_size<Size> *>(from));
}

template <unsigned Size, unsigned Count>
__device__ inline packed<16>
load_same_dtype(const char *from, const side &side, unsigned count)
{
    packed<16> elements = {};
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
store_same_dtype(char *to, const packed<16> &elements, unsigned count)
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
__device__ inline packed<16>
add_units(const packed<16> &x, const packed<16> &y)
{
    using unit = typename Component::unit;
    packed<16> sum = {};
    for (unsigned i = 0; i < sizeof sum / sizeof(unit); ++i)
        put_element(sum, i, Component::add(element_of<unit>(x, i), element_of<unit>(y, i)));
    return sum;
}

template <unsigned Size>
__device__ inline packed<16>
add_same_dtype(enum component component, const packed<16> &x, const packed<16> &y)
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

#endif
