/* Turns a struct status into a Python exception. */
#ifndef VECADD_PY_BASE_ERRORS_H
#define VECADD_PY_BASE_ERRORS_H

#include "base/status.h"
#include "py/base/python.h"

/* Sets the exception of status->code, with its text. Always returns NULL. */
void *status_raise(const struct module_state *state, const struct status *status);

#endif
