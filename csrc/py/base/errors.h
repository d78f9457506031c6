/* Python exceptions: of a struct status, and those that may be cleared. */
#ifndef VECADD_PY_BASE_ERRORS_H
#define VECADD_PY_BASE_ERRORS_H

#include "base/status.h"
#include "py/base/python.h"

/* Clears an exception by which Python code or a library says that it cannot do what it was asked for: AttributeError,
 * BufferError, OverflowError, RuntimeError, TypeError or ValueError. Any other one stays set, as KeyboardInterrupt,
 * SystemExit, MemoryError and what a signal's handler raises. Returns 0 if no exception is set now, else -1. */
int clear_refusal(void);

/* Sets the exception of status->code, with its text. Always returns NULL. */
void *status_raise(const struct module_state *state, const struct status *status);

#endif
