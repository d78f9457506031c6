/* A grid-stride loop that has `Unroll` pieces of each input in flight before it uses the first. A piece is a component,
 * or a vector of several. */
#ifndef VECADD_CUDA_LAB_UNROLLED_CUH
#define VECADD_CUDA_LAB_UNROLLED_CUH

#include <type_traits>

#include "cuda/lab/rung.cuh"

/* The type that a load of `Bytes` bytes gives; 0: one component, whatever its size. */
template <typename Component, unsigned Bytes>
using piece_of = std::conditional_t<Bytes == 0, typename Component::element, vector_of<Component, Bytes ? Bytes : 16>>;

template <typename Component, typename Piece>
__device__ inline Piece
add_pieces(const Piece &a, const Piece &b)
{
    if constexpr (std::is_same_v<Piece, typename Component::element>)
        return add_elements<Component>(a, b);
    else
        return add_vectors<Component>(a, b);
}

template <typename Component, unsigned Bytes, unsigned Unroll>
__global__ static void
unrolled_add(const typename Component::element *a, const typename Component::element *b, typename Component::element *c,
             uint64_t n)
{
    using piece = piece_of<Component, Bytes>;
    const piece *x = reinterpret_cast<const piece *>(a), *y = reinterpret_cast<const piece *>(b);
    piece *z = reinterpret_cast<piece *>(c);
    const uint64_t components = sizeof(piece) / sizeof *c, pieces = n / components;
    const uint64_t thread = thread_number(), stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;

    for (uint64_t i = thread; i < pieces; i += Unroll * stride) {
        piece p[Unroll] = {}, q[Unroll] = {};
        for (unsigned k = 0; k < Unroll; ++k)
            if (i + k * stride < pieces) {
                p[k] = x[i + k * stride];
                q[k] = y[i + k * stride];
            }
        for (unsigned k = 0; k < Unroll; ++k)
            if (i + k * stride < pieces)
                z[i + k * stride] = add_pieces<Component>(p[k], q[k]);
    }
    const uint64_t tail = pieces * components + thread; /* at least as many threads as a piece has components, or n */
    if (tail < n)
        c[tail] = add_elements<Component>(a[tail], b[tail]);
}

/* Queues the kernel on as many threads as fit on the device at once, or n where that is less. */
template <unsigned Bytes, unsigned Unroll>
inline int
launch_unrolled(const struct rung_call *call)
{
    uint64_t threads;
    const cudaError_t error = resident_threads(call->n, &threads);
    if (error != cudaSuccess)
        return error;
    return launch_threads<LADDER_COMPONENTS>(
        call, [=](auto) { return threads; },
        [](auto component) { return unrolled_add<decltype(component), Bytes, Unroll>; });
}

#endif
