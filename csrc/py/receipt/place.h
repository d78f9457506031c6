/* The line of the program that a call stands in. All functions need the GIL. */
#ifndef VECADD_PY_RECEIPT_PLACE_H
#define VECADD_PY_RECEIPT_PLACE_H

#include <stdbool.h>

#include "py/base/python.h"

struct place {
    PyObject *code;    /* borrowed until place_stop() */
    long at;           /* of the instruction, in bytes from the first one */
    PyObject *through; /* the code of a library that made the call for that line; NULL where the line made it */
    long through_at;
};

/* `ours` and `libraries` are tuples of the beginnings of file names: those of NumPy and vecadd, and those of all
 * libraries. Returns 0, or -1 with an exception set. */
int place_start(PyObject *ours, PyObject *libraries);
void place_stop(void);

/* The innermost frame of the program; where only libraries are on the stack, the innermost outside NumPy and vecadd.
 * False where there is none, or no more room to note code objects; MemoryError may be set. */
bool place_find(struct place *place);

#endif
