/* A grid-stride loop that has `Unroll` pieces of each input in flight before it uses the first. A piece is a lane, or a
 * vector of several. */
#ifndef VECADD_CUDA_LAB_LADDER_UNROLLED_CUH
#define VECADD_CUDA_LAB_LADDER_UNROLLED_CUH

#include <type_traits>

#include "cuda/lab/ladder/rung.cuh"

/* What a load of that many bytes brings: 0 stands for one lane, whatever its size. */
template <typename Lane, unsigned Bytes>
using piece_of = std::conditional_t<Bytes == 0, typename Lane::element, vector_of<Lane, Bytes ? Bytes : 16>>;

template <typename Lane, typename Piece>
__device__ inline Piece
add_pieces(const Piece &a, const Piece &b)
{
    if constexpr (std::is_same_v<Piece, typename Lane::element>)
        return add_elements<Lane>(a, b);
    else
        return add_vectors<Lane>(a, b);
}

template <typename Lane, unsigned Bytes, unsigned Unroll>
__global__ static void
unrolled_add(const typename Lane::element *a, const typename Lane::element *b, typename Lane::element *c, uint64_t n)
{
    using piece = piece_of<Lane, Bytes>;
    const piece *x = reinterpret_cast<const piece *>(a), *y = reinterpret_cast<const piece *>(b);
    piece *z = reinterpret_cast<piece *>(c);
    const uint64_t lanes = sizeof(piece) / sizeof *c, pieces = n / lanes;
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
                z[i + k * stride] = add_pieces<Lane>(p[k], q[k]);
    }
    const uint64_t tail = pieces * lanes + thread; /* there are as many threads as a piece has lanes, or as n is */
    if (tail < n)
        c[tail] = add_elements<Lane>(a[tail], b[tail]);
}

/* On as many threads as the device holds at once, or n where that is less. */
template <unsigned Bytes, unsigned Unroll>
inline int
launch_unrolled(const struct rung_call *call, unsigned usual_block)
{
    uint64_t threads;
    const cudaError_t error = resident_threads(call->n, &threads);
    if (error != cudaSuccess)
        return error;
    return launch_threads<LADDER_LANES>(
        call, usual_block, [=](auto) { return threads; },
        [](auto lane) { return unrolled_add<decltype(lane), Bytes, Unroll>; });
}

#endif
