/* The element types, one row each. All code that depends on a dtype or a component reads its row, or switches over the
 * enum without a default: such a switch does not compile while a case is missing.
 *
 * The caller names a dtype; the loops and kernels add components. Signed and unsigned integers of one width share a
 * component, because two's complement addition gives both the same bits. A complex number is two floating-point
 * components.
 *
 * To add a dtype, write a row of EACH_NUMPY_DTYPE or EACH_ML_DTYPE. To add a component, write a row of it here, its
 * struct in cuda/components.cuh, and its vec_add_ for each instruction set (csrc/host/simd_body.h). */
#ifndef VECADD_BASE_DTYPE_H
#define VECADD_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name in capitals, name in function names, bytes, largest finite number or 0 for integers), in the order of enum
 * component. Short floats are added as float32 or float16 and then rounded. */
#define EACH_INTEGER_COMPONENT(X)                                                                                      \
    X(BOOL, bool, 1, 0)                                                                                                \
    X(I8, i8, 1, 0)                                                                                                    \
    X(I16, i16, 2, 0)                                                                                                  \
    X(I32, i32, 4, 0)                                                                                                  \
    X(I64, i64, 8, 0)
#define EACH_SHORT_FLOAT_COMPONENT(X)                                                                                  \
    X(E4M3FN, e4m3fn, 1, 448.0)                                                                                        \
    X(F16, f16, 2, 65504.0)                                                                                            \
    X(BF16, bf16, 2, 0x1.fep127)
#define EACH_LONG_FLOAT_COMPONENT(X)                                                                                   \
    X(F32, f32, 4, 0x1.fffffep127)                                                                                     \
    X(F64, f64, 8, 0x1.fffffffffffffp1023)
#define EACH_COMPONENT(X) EACH_INTEGER_COMPONENT(X) EACH_SHORT_FLOAT_COMPONENT(X) EACH_LONG_FLOAT_COMPONENT(X)

/* X(name in capitals, name, array interface's typestr in native byte order, kind of value, component, NumPy's number of
 * the type, DLPack's code). The names are NumPy's; ml_dtypes' are numbered when NumPy learns of them. */
#define EACH_NUMPY_DTYPE(X)                                                                                            \
    X(BOOL, "bool", "|b1", BOOL, BOOL, NPY_BOOL, DL_BOOL)                                                              \
    X(INT8, "int8", "|i1", SIGNED, I8, NPY_INT8, DL_INT)                                                               \
    X(INT16, "int16", "<i2", SIGNED, I16, NPY_INT16, DL_INT)                                                           \
    X(INT32, "int32", "<i4", SIGNED, I32, NPY_INT32, DL_INT)                                                           \
    X(INT64, "int64", "<i8", SIGNED, I64, NPY_INT64, DL_INT)                                                           \
    X(UINT8, "uint8", "|u1", UNSIGNED, I8, NPY_UINT8, DL_UINT)                                                         \
    X(UINT16, "uint16", "<u2", UNSIGNED, I16, NPY_UINT16, DL_UINT)                                                     \
    X(UINT32, "uint32", "<u4", UNSIGNED, I32, NPY_UINT32, DL_UINT)                                                     \
    X(UINT64, "uint64", "<u8", UNSIGNED, I64, NPY_UINT64, DL_UINT)                                                     \
    X(FLOAT16, "float16", "<f2", FLOAT, F16, NPY_FLOAT16, DL_FLOAT)                                                    \
    X(FLOAT32, "float32", "<f4", FLOAT, F32, NPY_FLOAT32, DL_FLOAT)                                                    \
    X(FLOAT64, "float64", "<f8", FLOAT, F64, NPY_FLOAT64, DL_FLOAT)                                                    \
    X(COMPLEX64, "complex64", "<c8", COMPLEX, F32, NPY_COMPLEX64, DL_COMPLEX)                                          \
    X(COMPLEX128, "complex128", "<c16", COMPLEX, F64, NPY_COMPLEX128, DL_COMPLEX)
#define EACH_ML_DTYPE(X)                                                                                               \
    X(BFLOAT16, "bfloat16", "<V2", FLOAT, BF16, NPY_USERDEF, DL_BFLOAT)                                                \
    X(FLOAT8_E4M3FN, "float8_e4m3fn", "<V1", FLOAT, E4M3FN, NPY_USERDEF, DL_FLOAT8_E4M3FN)
#define EACH_DTYPE(X) EACH_NUMPY_DTYPE(X) EACH_ML_DTYPE(X)

#define COUNT_ONE(ID, ...) +1
enum {
    INTEGER_COMPONENTS = 0 EACH_INTEGER_COMPONENT(COUNT_ONE),
    SHORT_FLOAT_COMPONENTS = 0 EACH_SHORT_FLOAT_COMPONENT(COUNT_ONE),
    NUMPY_DTYPES = 0 EACH_NUMPY_DTYPE(COUNT_ONE),
    ML_DTYPES = 0 EACH_ML_DTYPE(COUNT_ONE),
};
#undef COUNT_ONE

#define COMPONENT_OF_ROW(ID, ...) COMPONENT_##ID,
#define DTYPE_OF_ROW(ID, ...)     DTYPE_##ID,
enum component { EACH_COMPONENT(COMPONENT_OF_ROW) COMPONENT_COUNT };
enum dtype { EACH_DTYPE(DTYPE_OF_ROW) DTYPE_COUNT };
#undef COMPONENT_OF_ROW
#undef DTYPE_OF_ROW

/* ", bool, int8, ...", a string literal. */
#define DTYPE_NAME_OF_ROW(ID, name, ...) ", " name
#define DTYPE_NAMES                      EACH_DTYPE(DTYPE_NAME_OF_ROW)

/* The kind of number that an element is. */
enum value_kind { VALUE_BOOL, VALUE_SIGNED, VALUE_UNSIGNED, VALUE_FLOAT, VALUE_COMPLEX };

struct dtype_row {
    const char *name;
    const char *typestr;
    size_t itemsize; /* bytes an element */
    enum component component;
    enum value_kind value;
    size_t components; /* components an element: 2 for complex, else 1 */
};

extern const struct dtype_row dtype_table[DTYPE_COUNT];

/* Bytes of one component, and its largest finite number. */
extern const size_t component_size[COMPONENT_COUNT];
extern const double component_largest[COMPONENT_COUNT];

static inline bool
component_is_float(enum component component)
{
    return (int)component >= INTEGER_COMPONENTS;
}

static inline bool
component_is_short_float(enum component component)
{
    return component_is_float(component) && (int)component < INTEGER_COMPONENTS + SHORT_FLOAT_COMPONENTS;
}

static inline bool
value_is_integer(enum value_kind value)
{
    return value == VALUE_SIGNED || value == VALUE_UNSIGNED;
}

static inline bool
value_is_float(enum value_kind value)
{
    return value == VALUE_FLOAT || value == VALUE_COMPLEX;
}

/* Whether NumPy knows the dtype only once ml_dtypes is imported. */
static inline bool
dtype_is_ml(enum dtype dtype)
{
    return (int)dtype >= NUMPY_DTYPES;
}

/* The floating-point flags an addition can raise, as bits of a flag word that host threads and GPU kernels share. Only
 * a thread that flushes subnormal results to zero raises FP_UNDERFLOW: else such a sum is exact. */
enum { FP_OVERFLOW = 1, FP_INVALID = 2, FP_UNDERFLOW = 4 };

#ifdef __cplusplus
}
#endif
#endif
