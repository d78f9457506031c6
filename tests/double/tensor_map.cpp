#include "tensor_map.h"

#include <cstring>

#include "machine.h"

enum { MAX_RANK = 5, MAX_BOX = 256, MAX_STEP = 8, MAP_ALIGNMENT = 64, BOX_ALIGNMENT = 128, MAGIC = 0x7e4502 };
constexpr cuuint64_t MAX_EXTENT = cuuint64_t(1) << 32, MAX_STRIDE = cuuint64_t(1) << 40;

/* What the double keeps in the map's 128 bytes, of the two dimensions that our kernels have. */
struct tensor_map {
    char *array;
    cuuint64_t extent[2], stride;
    cuuint32_t box[2], size, magic;
};
static_assert(sizeof(tensor_map) <= sizeof(CUtensorMap), "fits the opaque struct");

static size_t
size_of(CUtensorMapDataType type)
{
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
        return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
        return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
        return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
        return 8;
    default:
        return 0; /* unused here */
    }
}

static CUresult
encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *array, const cuuint64_t *extent,
       const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave interleave,
       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill)
{
    const size_t size = size_of(type);
    const auto aligned = [](const void *pointer, size_t to) { return reinterpret_cast<uintptr_t>(pointer) % to == 0; };
    if (!map || !aligned(map, MAP_ALIGNMENT) || !array || !aligned(array, 16) || rank == 0 || rank > MAX_RANK)
        return CUDA_ERROR_INVALID_VALUE;
    for (cuuint32_t i = 0; i < rank; ++i)
        if (extent[i] == 0 || extent[i] > MAX_EXTENT || box[i] == 0 || box[i] > MAX_BOX || step[i] == 0 ||
            step[i] > MAX_STEP)
            return CUDA_ERROR_INVALID_VALUE;
    for (cuuint32_t i = 0; i + 1 < rank; ++i)
        if (stride[i] % 16 || stride[i] >= MAX_STRIDE)
            return CUDA_ERROR_INVALID_VALUE;
    if (box[0] * size % 16)
        return CUDA_ERROR_INVALID_VALUE;
    if (rank != 2 || size == 0 || step[0] != 1 || step[1] != 1 || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
        swizzle != CU_TENSOR_MAP_SWIZZLE_NONE || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
        return CUDA_ERROR_NOT_SUPPORTED; /* by the double */
    const tensor_map made = {static_cast<char *>(array), {extent[0], extent[1]},        stride[0],
                             {box[0], box[1]},           static_cast<cuuint32_t>(size), MAGIC};
    std::memset(map, 0, sizeof *map);
    std::memcpy(map, &made, sizeof made);
    return CUDA_SUCCESS;
}

CUresult
cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *array,
                       const cuuint64_t *extent, const cuuint64_t *stride, const cuuint32_t *box,
                       const cuuint32_t *step, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                       CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    return static_cast<CUresult>(cuda_call(__func__, [&](machine &) {
        return static_cast<cudaError_t>(
            encode(map, type, rank, array, extent, stride, box, step, interleave, swizzle, promotion, fill));
    }));
}

void
double_copy_box(void *target, const CUtensorMap *map, int x, int y)
{
    tensor_map m;
    std::memcpy(&m, map, sizeof m);
    if (m.magic != MAGIC || reinterpret_cast<uintptr_t>(target) % BOX_ALIGNMENT) {
        fault("a box is copied to %p by a map that %s", target, m.magic == MAGIC ? "was made" : "was not made");
        return;
    }
    char *into = static_cast<char *>(target);
    for (cuuint32_t row = 0; row < m.box[1]; ++row)
        for (cuuint32_t column = 0; column < m.box[0]; ++column, into += m.size) {
            const int64_t at_x = int64_t(x) + column, at_y = int64_t(y) + row;
            const bool inside = at_x >= 0 && at_y >= 0 && static_cast<cuuint64_t>(at_x) < m.extent[0] &&
                                static_cast<cuuint64_t>(at_y) < m.extent[1];
            if (inside)
                std::memcpy(into, m.array + static_cast<cuuint64_t>(at_y) * m.stride + at_x * m.size, m.size);
            else
                std::memset(into, 0, m.size);
        }
}
