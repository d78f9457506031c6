#include "py/operands/dlpack.h"

static uint8_t
type_code(const struct dtype_row *row)
{
    switch (row->typestr[1]) {
    case 'b':
        return DL_BOOL;
    case 'i':
        return DL_INT;
    case 'u':
        return DL_UINT;
    case 'f':
        return DL_FLOAT;
    case 'c':
        return DL_COMPLEX;
    default:
        return DL_BFLOAT;
    }
}

struct dl_data_type
dl_type_of_dtype(enum dtype dtype)
{
    const struct dtype_row *row = &dtype_table[dtype];
    return (struct dl_data_type){type_code(row), (uint8_t)(8 * row->itemsize), 1};
}

bool
dtype_of_dl_type(struct dl_data_type type, enum dtype *dtype)
{
    for (int candidate = 0; candidate < DTYPE_COUNT; candidate++) {
        const struct dtype_row *row = &dtype_table[candidate];
        if (type.bits != 8 * row->itemsize || type.components != 1 || type.code != type_code(row))
            continue;
        *dtype = (enum dtype)candidate;
        return true;
    }
    return false;
}
