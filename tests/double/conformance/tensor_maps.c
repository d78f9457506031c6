/* Tensor maps: what may be described to the copy engine, and what a box brings. */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <string.h>

#include "../../c/tests.h"
#include "lab/base/rung.h"

extern const struct rung rung_bulk_tensor_copy;

enum { ROW = 64, ROWS = 5, BYTES = ROW * ROWS * (int)sizeof(unsigned) };

/* What cuTensorMapEncodeTiled takes and our kernels vary. */
struct description {
    cuuint64_t extent[2], stride[1];
    cuuint32_t box[2], step[2];
    size_t misaligned; /* bytes past the allocation's start */
};

static const struct description usual = {{ROW, ROWS}, {ROW * sizeof(unsigned)}, {ROW, 2}, {1, 1}, 0};

static void *
entry_point(const char *name, unsigned version, enum cudaDriverEntryPointQueryResult *found)
{
    void *function = NULL;
    CHECK(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, found) == cudaSuccess);
    return function;
}

static CUresult
encode(const struct description *d, char *memory)
{
    enum cudaDriverEntryPointQueryResult found;
    CUtensorMap map;
    PFN_cuTensorMapEncodeTiled_v12000 function;
    void *address = entry_point("cuTensorMapEncodeTiled", 12000, &found);
    CHECK(found == cudaDriverEntryPointSuccess && address);
    memcpy(&function, &address, sizeof function);
    return function(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, memory + d->misaligned, d->extent, d->stride, d->box,
                    d->step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* Devices without the copy engine have nothing to describe. */
static bool
has_tensor_maps(void)
{
    int major = 0;
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess);
    return major >= 9;
}

TEST(the_driver_knows_the_function_since_12_0)
{
    enum cudaDriverEntryPointQueryResult found;
    CHECK(entry_point("cuTensorMapEncodeTiled", 12000, &found) != NULL && found == cudaDriverEntryPointSuccess);
    CHECK(entry_point("cuTensorMapEncodeTiled", 11000, &found) == NULL && found != cudaDriverEntryPointSuccess);
}

TEST(what_a_map_may_describe)
{
    char *memory = NULL;
    if (!has_tensor_maps())
        return;
    CHECK(cudaMalloc((void **)&memory, BYTES) == cudaSuccess);
    CHECK(encode(&usual, memory) == CUDA_SUCCESS);
    struct description d = usual;
    d.misaligned = 16;
    CHECK(encode(&d, memory) == CUDA_SUCCESS);
    d.misaligned = 8;
    CHECK(encode(&d, memory) == CUDA_ERROR_INVALID_VALUE);
    d = usual;
    d.extent[0] = 0;
    CHECK(encode(&d, memory) == CUDA_ERROR_INVALID_VALUE);
    d = usual;
    d.extent[1] = ((cuuint64_t)1 << 32) + 1;
    CHECK(encode(&d, memory) == CUDA_ERROR_INVALID_VALUE);
    d = usual;
    d.stride[0] = ROW * sizeof(unsigned) + 4;
    CHECK(encode(&d, memory) == CUDA_ERROR_INVALID_VALUE);
    d = usual;
    d.box[1] = 256;
    CHECK(encode(&d, memory) == CUDA_SUCCESS);
    d.box[1] = 257;
    CHECK(encode(&d, memory) == CUDA_ERROR_INVALID_VALUE);
    d.box[1] = 0;
    CHECK(encode(&d, memory) == CUDA_ERROR_INVALID_VALUE);
    d = usual;
    d.box[0] = 3;
    CHECK(encode(&d, memory) == CUDA_ERROR_INVALID_VALUE, "12 bytes are no multiple of 16");
    d = usual;
    d.step[1] = 0;
    CHECK(encode(&d, memory) == CUDA_ERROR_INVALID_VALUE);
}

/* The block's box is 4 rows of 256 where the array has 3: the fourth comes as zeros, and the kernel does not hang. */
TEST(a_box_that_hangs_over_the_last_row_arrives_whole)
{
    static unsigned numbers[3 * 256 + 5], sums[3 * 256 + 5];
    const size_t n = sizeof numbers / sizeof *numbers;
    unsigned *x = NULL, *y = NULL;
    if (!has_tensor_maps())
        return;
    for (size_t i = 0; i < n; i++)
        numbers[i] = (unsigned)(i * 2654435761u);
    CHECK(cudaMalloc((void **)&x, sizeof numbers) == cudaSuccess);
    CHECK(cudaMalloc((void **)&y, sizeof numbers) == cudaSuccess);
    CHECK(cudaMemcpy(x, numbers, sizeof numbers, cudaMemcpyHostToDevice) == cudaSuccess);
    const struct rung_call call = {.component = COMPONENT_I32, .a = x, .b = x, .c = y, .n = n, .block = 256};
    CHECK(rung_bulk_tensor_copy.launch(&call) == cudaSuccess);
    CHECK(cudaMemcpy(sums, y, sizeof sums, cudaMemcpyDeviceToHost) == cudaSuccess);
    long wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += sums[i] != 2 * numbers[i];
    CHECK(wrong == 0, "%ld", wrong);
}
