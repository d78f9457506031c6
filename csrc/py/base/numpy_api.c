/* NumPy's tables of functions, which every other file of py/ refers to. */
#define VECADD_IMPORTS_NUMPY
#include "py/base/python.h"

int
numpy_api_import(void)
{
    return PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0 ? -1 : 0;
}
