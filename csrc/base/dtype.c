#include "base/dtype.h"

#define SIZE_ROW(ID, name, bytes, largest)    [COMPONENT_##ID] = (bytes),
#define LARGEST_ROW(ID, name, bytes, largest) [COMPONENT_##ID] = (largest),
const size_t component_size[COMPONENT_COUNT] = {EACH_COMPONENT(SIZE_ROW)};
const double component_largest[COMPONENT_COUNT] = {EACH_COMPONENT(LARGEST_ROW)};

#define BYTES_ROW(ID, name, bytes, largest) BYTES_OF_##ID = (bytes),
enum { EACH_COMPONENT(BYTES_ROW) };

#define COMPONENTS(VALUE) (VALUE_##VALUE == VALUE_COMPLEX ? 2 : 1)
#define DTYPE_ROW(ID, name, typestr, VALUE, COMPONENT, NUMPY, DLPACK)                                                  \
    [DTYPE_##ID] = {name,          typestr,          COMPONENTS(VALUE) * BYTES_OF_##COMPONENT, COMPONENT_##COMPONENT,  \
                    VALUE_##VALUE, COMPONENTS(VALUE)},
const struct dtype_row dtype_table[DTYPE_COUNT] = {EACH_DTYPE(DTYPE_ROW)};
