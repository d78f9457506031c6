#include "base/dtype.h"

const size_t component_size[COMPONENT_COUNT] = {
    [COMPONENT_BOOL] = 1, [COMPONENT_I8] = 1,   [COMPONENT_I16] = 2, [COMPONENT_I32] = 4, [COMPONENT_I64] = 8,
    [COMPONENT_F16] = 2,  [COMPONENT_BF16] = 2, [COMPONENT_F32] = 4, [COMPONENT_F64] = 8,
};

const struct dtype_row dtype_table[DTYPE_COUNT] = {
    [DTYPE_BOOL] = {"bool", "|b1", 1, COMPONENT_BOOL, 1},
    [DTYPE_INT8] = {"int8", "|i1", 1, COMPONENT_I8, 1},
    [DTYPE_INT16] = {"int16", "<i2", 2, COMPONENT_I16, 1},
    [DTYPE_INT32] = {"int32", "<i4", 4, COMPONENT_I32, 1},
    [DTYPE_INT64] = {"int64", "<i8", 8, COMPONENT_I64, 1},
    [DTYPE_UINT8] = {"uint8", "|u1", 1, COMPONENT_I8, 1},
    [DTYPE_UINT16] = {"uint16", "<u2", 2, COMPONENT_I16, 1},
    [DTYPE_UINT32] = {"uint32", "<u4", 4, COMPONENT_I32, 1},
    [DTYPE_UINT64] = {"uint64", "<u8", 8, COMPONENT_I64, 1},
    [DTYPE_FLOAT16] = {"float16", "<f2", 2, COMPONENT_F16, 1},
    [DTYPE_BFLOAT16] = {"bfloat16", "<V2", 2, COMPONENT_BF16, 1},
    [DTYPE_FLOAT32] = {"float32", "<f4", 4, COMPONENT_F32, 1},
    [DTYPE_FLOAT64] = {"float64", "<f8", 8, COMPONENT_F64, 1},
    [DTYPE_COMPLEX64] = {"complex64", "<c8", 8, COMPONENT_F32, 2},
    [DTYPE_COMPLEX128] = {"complex128", "<c16", 16, COMPONENT_F64, 2},
};
