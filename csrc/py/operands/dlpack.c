#include "py/operands/dlpack.h"

#define CODE_ROW(ID, name, typestr, VALUE, COMPONENT, NUMPY, DLPACK) [DTYPE_##ID] = (DLPACK),
static const uint8_t type_code[DTYPE_COUNT] = {EACH_DTYPE(CODE_ROW)};

struct dl_data_type
dl_type_of_dtype(enum dtype dtype)
{
    const struct dtype_row *row = &dtype_table[dtype];
    return (struct dl_data_type){type_code[dtype], (uint8_t)(8 * row->itemsize), 1};
}

bool
dtype_of_dl_type(struct dl_data_type type, enum dtype *dtype)
{
    for (int candidate = 0; candidate < DTYPE_COUNT; candidate++) {
        const struct dtype_row *row = &dtype_table[candidate];
        if (type.bits != 8 * row->itemsize || type.components != 1 || type.code != type_code[candidate])
            continue;
        *dtype = (enum dtype)candidate;
        return true;
    }
    return false;
}
