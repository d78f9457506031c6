/* From a core status to a Python exception. */
#ifndef VECADD_ERRORS_H
#define VECADD_ERRORS_H

#include "module.h"
#include "status.h"

/* Sets the exception that belongs to status->code, with its text. Always returns NULL. */
void *status_raise(const struct module_state *state, const struct status *status);

#endif
