// float4_arg: vectors in, components out: a and b are pointers to 16-byte vectors, c is one to components.
//
//   after    float4_float2
//   changes  a vector's sums are stored one by one. The document compares the thread's number with n and reads up to 12
//            bytes past the end where n % 4 is not 0; here the last thread reads the remaining components one by one.
//   expects  float4's loads, and 4x its store instructions, each of which touches 16 sectors for the 4 that it fills:
//            slower than float4 where the L2 cannot merge the stores
//   from     founding document 002
//   try      vecadd bench ladder --rungs float4,float4_arg
#include "cuda/lab/ladder/rung.cuh"

enum { BLOCK = 256 };

template <typename Component> struct elements_of {
    typename Component::element at[vector_of<Component>::size];
};

template <typename Component>
__global__ static void
float4_arg_add(const vector_of<Component> *a, const vector_of<Component> *b, typename Component::element *c, uint64_t n)
{
    const unsigned size = vector_of<Component>::size;
    const uint64_t i = thread_number(), first = i * size;
    if (first + size <= n) {
        const vector_of<Component>
            x = a[i],
            y = b[i]; /* copies: added in place, the vectors would be loaded component by component */
        const auto sum = bits_as<elements_of<Component>>(add_vectors<Component>(x, y));
        for (unsigned k = 0; k < size; ++k)
            c[first + k] = sum.at[k];
        return;
    }
    const typename Component::element *x = reinterpret_cast<const typename Component::element *>(a);
    const typename Component::element *y = reinterpret_cast<const typename Component::element *>(b);
    for (unsigned k = 0; k < size; ++k) /* not up to n: the compiler would unroll that to 64 loads */
        if (first + k < n)
            c[first + k] = add_elements<Component>(x[first + k], y[first + k]);
}

static int
float4_arg_launch(const struct rung_call *call)
{
    return with_component_of<LADDER_COMPONENTS>(call, [call](auto component) -> int {
        using vector = vector_of<decltype(component)>;
        return launch(float4_arg_add<decltype(component)>, ceil_div(call->n, vector::size), block_of(call, BLOCK),
                      target_of(call), static_cast<const vector *>(call->a), static_cast<const vector *>(call->b),
                      static_cast<typename decltype(component)::element *>(call->c), call->n);
    });
}

extern "C" const struct rung rung_float4_arg = {
    .name = "float4_arg",
    .kind = RUNG_DEVICE,
    .after = "float4_float2",
    .changes = "vectors loaded, scalars stored",
    .tested = "double",
    .components = LADDER_COMPONENTS,
    .family = FAMILY_KERNELS,
    .load = "LDG.E.128",
    .headline = false,
    .sum = SUM_WRITTEN,
    .bytes_per_element = 12,
    .bytes_per_load = 16,
    .loads_in_flight = 2,
    .block = BLOCK,
    .blocks = 0,
    .min_cc = 0,
    .alignment = 16,
    .params = {},
    .launch = float4_arg_launch,
    .run = nullptr,
};
