/* The element types, one row each: add a dtype by adding a row to dtype.c and to the enum here.
 *
 * A dtype is what the caller names; a component is what the adders see. Signed and unsigned integers of one width share
 * a component, because two's complement addition is the same bits, and a complex number is two floating-point
 * components. */
#ifndef VECADD_BASE_DTYPE_H
#define VECADD_BASE_DTYPE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum component {
    COMPONENT_BOOL,
    COMPONENT_I8,
    COMPONENT_I16,
    COMPONENT_I32,
    COMPONENT_I64,
    COMPONENT_F16,
    COMPONENT_BF16,
    COMPONENT_F32,
    COMPONENT_F64,
    COMPONENT_COUNT
};

enum dtype {
    DTYPE_BOOL,
    DTYPE_INT8,
    DTYPE_INT16,
    DTYPE_INT32,
    DTYPE_INT64,
    DTYPE_UINT8,
    DTYPE_UINT16,
    DTYPE_UINT32,
    DTYPE_UINT64,
    DTYPE_FLOAT16,
    DTYPE_BFLOAT16,
    DTYPE_FLOAT32,
    DTYPE_FLOAT64,
    DTYPE_COMPLEX64,
    DTYPE_COMPLEX128,
    DTYPE_COUNT
};

struct dtype_row {
    const char *name;    /* NumPy's name, "float32"; ml_dtypes' name for bfloat16 */
    const char *typestr; /* the array interface's, native byte order: "<f4"; "<V2" for bfloat16 */
    size_t itemsize;     /* bytes an element */
    enum component component;
    size_t components; /* components an element: 2 for complex, else 1 */
};

extern const struct dtype_row dtype_table[DTYPE_COUNT];

/* Bytes of one component. */
extern const size_t component_size[COMPONENT_COUNT];

#ifdef __cplusplus
}
#endif
#endif
