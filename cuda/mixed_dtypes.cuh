/* Conversion of the narrower of two dtypes to the sum's, in registers. */
#ifndef VECADD_CUDA_MIXED_DTYPES_CUH
#define VECADD_CUDA_MIXED_DTYPES_CUH

#include <type_traits>

#include "cuda/elements.cuh"
#include "cuda/index_map.cuh"

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
__device__ inline packed<16>
converted_run(const index_map &map, const side &side, const packed<16> &run)
{
    if (side.dtype == map.sum)
        return run;
    packed<16> result = {};
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
