/* Copies into shared memory by the copy engine, from compute capability 9.0 on. */
#include <cudaTypedefs.h>

#include "cuda/lab/ptx.cuh"
#include "cuda/lab/rung.cuh"

enum { TILES_AT = 128 }; /* bytes of shared memory before the tiles, for the barrier */

// bulk_copy: one thread orders a block's operands, and the copy engine brings them.
//
//   after    async_copy
//   changes  two cp.async.bulk a block, 16 bytes times the block size each, that complete on a barrier in shared
//            memory for which all threads wait. Bulk copies take 16-byte aligned addresses and sizes: the components
//            after the last vector, and all components where a, b or c is misaligned, are added from global memory as
//            in naive.
//   expects  the same bytes in flight as float4, ordered by 2 instructions a block in place of 2 a thread; 4 KiB a
//            copy is above the 2 KiB from which the document prefers bulk copies. No gain where the memory is the
//            limit.
//   from     founding document 003
//   try      vecadd bench ladder --rungs async_copy,bulk_copy

template <typename Component>
__global__ static void
bulk_copy_add(const typename Component::element *a, const typename Component::element *b,
              typename Component::element *c, uint64_t n, bool bulk)
{
    using vector = vector_of<Component>;
    const uint64_t tile = static_cast<uint64_t>(blockDim.x) * vector::size, first = blockIdx.x * tile;
    const uint64_t end = n - first < tile ? n : first + tile;
    const unsigned vectors = bulk ? static_cast<unsigned>((end - first) / vector::size) : 0;
    uint64_t *barrier = reinterpret_cast<uint64_t *>(shared_memory());
    vector *x = reinterpret_cast<vector *>(shared_memory() + TILES_AT), *y = x + blockDim.x;

    if (threadIdx.x == 0)
        barrier_init(barrier, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned bytes = vectors * sizeof(vector);
        barrier_expect(barrier, 2 * bytes);
        if (bytes) {
            copy_bulk(x, a + first, bytes, barrier);
            copy_bulk(y, b + first, bytes, barrier);
        }
    }
    barrier_wait(barrier, 0);
    if (threadIdx.x < vectors)
        reinterpret_cast<vector *>(c + first)[threadIdx.x] = add_vectors<Component>(x[threadIdx.x], y[threadIdx.x]);
    for (uint64_t i = first + vectors * vector::size + threadIdx.x; i < end; i += blockDim.x)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static int
bulk_copy_launch(const struct rung_call *call)
{
    const unsigned block = block_of(call);
    const uintptr_t place = reinterpret_cast<uintptr_t>(call->a) | reinterpret_cast<uintptr_t>(call->b) |
                            reinterpret_cast<uintptr_t>(call->c);
    if (call->n == 0)
        return cudaSuccess;
    return with_component_of<LADDER_COMPONENTS>(call, [=](auto component) -> int {
        using element = typename decltype(component)::element;
        using vector = vector_of<decltype(component)>;
        const uint64_t blocks = ceil_div(call->n, block * static_cast<uint64_t>(vector::size));
        if (blocks > INT32_MAX)
            return cudaErrorInvalidConfiguration;
        return launch_grid(bulk_copy_add<decltype(component)>, dim3(blocks), dim3(block),
                           TILES_AT + 2 * block * sizeof(vector), target_of(call),
                           static_cast<const element *>(call->a), static_cast<const element *>(call->b),
                           static_cast<element *>(call->c), call->n, place % 16 == 0 && call->params[0]);
    });
}

extern "C" const struct rung rung_bulk_copy = {
    .name = "bulk_copy",
    .after = "async_copy",
    .changes = "two bulk copies a block, ordered by one thread",
    .components = LADDER_COMPONENTS,
    .bytes_per_load = 16,
    .load = "UBLKCP.S.G",
    .min_cc = 90,
    .params = {{"bulk", "1: bulk copies where addresses allow them, 0: none, as where they do not", 0, 1, 1}},
    .launch = bulk_copy_launch,
};

// bulk_tensor_copy: bulk copies that know the array's shape.
//
//   after    bulk_copy
//   changes  a and b are described to the copy engine once, by tensor maps: rows of up to 256 elements, the most that a
//            box may have. A block orders one box of rows of each, and the hardware fills the part of a box past the
//            last row with zeros: the kernel computes no size. A map's rows are whole, so that the elements after the
//            last one, fewer than 256, are added from global memory. Shared memory is 128-byte aligned, a, b and c are
//            16-byte aligned, rows are multiples of 16 bytes.
//   expects  what bulk_copy has: the same bytes by the same two instructions a block. Maps are for copying a tile of a
//            matrix with its edges in one instruction, which gains nothing for one dimension; encoding two of them
//            takes the host some microseconds before the launch, which the event clock does not see.
//   from     founding document 003, in a table
//   try      vecadd bench ladder --rungs bulk_copy,bulk_tensor_copy

enum { BOX_MAX = 256, ENCODE_SINCE = 12000 };

template <typename Component>
__global__ static void
bulk_tensor_copy_add(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                     const typename Component::element *a, const typename Component::element *b,
                     typename Component::element *c, uint64_t n, uint64_t mapped, unsigned rows)
{
    using vector = vector_of<Component>;
    const uint64_t tile = static_cast<uint64_t>(blockDim.x) * vector::size, first = blockIdx.x * tile;
    uint64_t *barrier = reinterpret_cast<uint64_t *>(shared_memory());
    vector *x = reinterpret_cast<vector *>(shared_memory() + TILES_AT), *y = x + blockDim.x;

    if (threadIdx.x == 0)
        barrier_init(barrier, 1);
    __syncthreads();
    if (first < mapped) {
        if (threadIdx.x == 0) {
            const int row = static_cast<int>(blockIdx.x * rows);
            barrier_expect(barrier, 2 * blockDim.x * sizeof(vector)); /* whole boxes, with their zeros */
            copy_box(x, &map_a, 0, row, barrier);
            copy_box(y, &map_b, 0, row, barrier);
        }
        barrier_wait(barrier, 0);
        const uint64_t i = first + threadIdx.x * vector::size;
        if (i < mapped)
            *reinterpret_cast<vector *>(c + i) = add_vectors<Component>(x[threadIdx.x], y[threadIdx.x]);
    }
    const uint64_t end = n - first < tile ? n : first + tile;
    for (uint64_t i = (first < mapped ? mapped : first) + threadIdx.x; i < end; i += blockDim.x)
        c[i] = add_elements<Component>(a[i], b[i]);
}

static CUtensorMapDataType
unsigned_of(size_t bytes)
{
    return bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
           : bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
           : bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32
                        : CU_TENSOR_MAP_DATA_TYPE_UINT64;
}

/* The driver's cuTensorMapEncodeTiled, looked up by the CUDA runtime: this library is not linked with the driver's. */
static cudaError_t
find_encode(PFN_cuTensorMapEncodeTiled_v12000 *encode)
{
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, ENCODE_SINCE, cudaEnableDefault, &found);
    *encode = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
    return error != cudaSuccess ? error : found != cudaDriverEntryPointSuccess ? cudaErrorSymbolNotFound : cudaSuccess;
}

/* Encodes a map of `rows` rows of `width` components of `size` bytes, copied in boxes of `box_rows` rows. */
static cudaError_t
encode_rows(PFN_cuTensorMapEncodeTiled_v12000 encode, CUtensorMap *map, const void *array, size_t size, uint64_t width,
            uint64_t rows, unsigned box_rows)
{
    const cuuint64_t extent[] = {width, rows}, stride[] = {width * size};
    const cuuint32_t box[] = {static_cast<cuuint32_t>(width), box_rows}, every[] = {1, 1};
    const CUresult result = encode(map, unsigned_of(size), 2, const_cast<void *>(array), extent, stride, box, every,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return static_cast<cudaError_t>(result); /* CUresult and cudaError_t number their common errors alike */
}

static int
bulk_tensor_copy_launch(const struct rung_call *call)
{
    if (call->n == 0)
        return cudaSuccess;
    return with_component_of<LADDER_COMPONENTS>(call, [=](auto component) -> int {
        using element = typename decltype(component)::element;
        using vector = vector_of<decltype(component)>;
        const unsigned block = block_of(call);
        const uint64_t tile = static_cast<uint64_t>(block) * vector::size, blocks = ceil_div(call->n, tile);
        uint64_t width = BOX_MAX;
        while (tile % width)
            width /= 2; /* down to the 32 of a warp's vectors at worst: no row is shorter than a vector */
        const uint64_t rows = call->n / width;
        const unsigned box_rows = static_cast<unsigned>(tile / width);
        CUtensorMap maps[2] = {};
        if (blocks > INT32_MAX || rows > INT32_MAX)
            return cudaErrorInvalidConfiguration;
        if (rows && !call->describe) {
            PFN_cuTensorMapEncodeTiled_v12000 encode;
            cudaError_t error = find_encode(&encode);
            if (error == cudaSuccess)
                error = encode_rows(encode, &maps[0], call->a, sizeof(element), width, rows, box_rows);
            if (error == cudaSuccess)
                error = encode_rows(encode, &maps[1], call->b, sizeof(element), width, rows, box_rows);
            if (error != cudaSuccess)
                return error;
        }
        return launch_grid(bulk_tensor_copy_add<decltype(component)>, dim3(blocks), dim3(block),
                           TILES_AT + 2 * block * sizeof(vector), target_of(call), maps[0], maps[1],
                           static_cast<const element *>(call->a), static_cast<const element *>(call->b),
                           static_cast<element *>(call->c), call->n, rows * width, box_rows);
    });
}

extern "C" const struct rung rung_bulk_tensor_copy = {
    .name = "bulk_tensor_copy",
    .after = "bulk_copy",
    .changes = "tensor maps: boxes of rows, cut by the hardware",
    .components = LADDER_COMPONENTS,
    .bytes_per_load = 16,
    .load = "UTMALDG.2D",
    .min_cc = 90,
    .alignment = 16,
    .launch = bulk_tensor_copy_launch,
};
