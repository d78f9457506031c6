/* The entries of the additions that a receipt is made of. */
#ifndef VECADD_PY_RECEIPT_OBSERVE_H
#define VECADD_PY_RECEIPT_OBSERVE_H

#include "py/base/python.h"

/* The module's functions, once, at import: a receipt puts entries of its own in the place of add and add_many, which
 * then cost nothing while no receipt is made. */
void observe_methods(PyMethodDef *methods);

#endif
