/* The loops of numpy.add, counted for one addition of the calling thread. */
#ifndef VECADD_PY_INSTALL_INSTALL_H
#define VECADD_PY_INSTALL_INSTALL_H

#include <stdbool.h>
#include <stddef.h>

#include "py/base/python.h"

/* What NumPy's loops were called for. `calls` is 0 where the addition's loop is not one of those that we count; vecadd
 * has `added` this many of them itself. */
struct loops_seen {
    size_t calls, elements, added;
};

/* Counts from here to loops_count_end() how often NumPy calls a loop in this thread. Both need the GIL. In between,
 * each call of a loop takes about a nanosecond more, in other threads too. */
void loops_count_begin(PyUFuncObject *add);
struct loops_seen loops_count_end(PyUFuncObject *add);

/* Whether vecadd's loops are in numpy.add. */
bool loops_installed(void);

#endif
