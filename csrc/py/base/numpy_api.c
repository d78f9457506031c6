/* NumPy's function tables, which every other file of py/ uses. */
#define VECADD_IMPORTS_NUMPY
#include "py/base/python.h"

int
numpy_api_import(void)
{
    return PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0 ? -1 : 0;
}
