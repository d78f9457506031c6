/* What a call of an addition is given, as far as a record needs it. */
#ifndef VECADD_PY_RECEIPT_CALL_H
#define VECADD_PY_RECEIPT_CALL_H

#include "py/receipt/records.h"

struct call {
    enum via via;
    PyObject *a, *b, *out, *device; /* borrowed; out and device are NULL where they are not given, or None */
    bool others;                    /* there are keywords besides those two */
    size_t bytes;                   /* call_sum_bytes(), which the caller fills in */
};

/* Reads the arguments. False where there are too few; sets no exception. */
bool call_read(const struct module_state *state, struct call *call, enum via via, PyObject *const *values,
               Py_ssize_t count, PyObject *keywords);

/* Bytes of the sum, its elements as wide as the widest array's; 0 where it is no array, and with an exception that
 * clear_refusal() leaves. */
size_t call_sum_bytes(const struct call *call);

/* Fills in all of the key but its place. */
void call_key(const struct call *call, struct record_key *key);

/* The bytes of the operands and of the sum; leaves such an exception too. */
long long call_bytes(const struct call *call, PyObject *sum);

/* A dict that says what the operands and the sum are, and the route, which may be NULL; NULL with an exception set. */
PyObject *call_described(const struct call *call, PyObject *sum, PyObject *route);

#endif
