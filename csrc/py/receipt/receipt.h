/* The receipt of `vecadd run --why`. */
#ifndef VECADD_PY_RECEIPT_RECEIPT_H
#define VECADD_PY_RECEIPT_RECEIPT_H

#include "py/base/python.h"

/* Finds add and add_many among the module's functions, once, at import. A receipt replaces both, so that they cost
 * nothing more while there is no receipt. */
void receipt_find_methods(PyMethodDef *methods);

#endif
