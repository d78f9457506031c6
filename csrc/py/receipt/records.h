/* What is noted of the additions that a program makes, by the line and the kind of operands. Guarded by the GIL. */
#ifndef VECADD_PY_RECEIPT_RECORDS_H
#define VECADD_PY_RECEIPT_RECORDS_H

#include "py/receipt/place.h"

enum via { VIA_NUMPY, VIA_ADD, VIA_ADD_MANY };

enum {
    OPERANDS = 3, /* a, b and the sum */
    USES = 8,     /* arrays of an operand that are remembered */
    STARTS = 4,   /* where an array may begin in a cache line, by 16 bytes, as malloc aligns */
};

/* Additions with equal keys are noted together. Compared byte by byte, so it is whole words. */
struct record_key {
    struct place place;
    size_t call; /* the entry, which operands share memory, and which keywords there are */
    struct key_operand {
        const PyTypeObject *type;
        size_t facts; /* an array's dtype, dimensions, flags, and its size to three bits behind the leading one */
    } operand[OPERANDS];
};

/* The last arrays that were an operand of a record's additions, what had been added in the process before, and where in
 * a cache line all of them began. */
struct uses {
    struct use {
        const void *data;
        long long before; /* bytes */
    } last[USES];
    unsigned next;
    long long again, between; /* arrays that came again, and the bytes that were added from one use on to the next */
    long long starts[STARTS];
};

struct record {
    struct record_key key;
    enum via via;
    PyObject *example; /* what the first of these additions was given; owned; NULL in a free place */
    /* An addition that stands for others counts as many times here. */
    long long calls, bytes, ns;
    long long noted; /* additions that were noted */
    /* Of the first, and of those behind it whose page faults were counted: the faults, and in how many of them most
     * pages of the sum were new. */
    long long first_ns, first_faults, first_faulted;
    long long looked, faults, faulted;
    long long counted, loops, elements, added; /* those whose loops were counted, and struct loops_seen of them */
    struct uses uses[OPERANDS];                /* of a, b and the sum */
};

/* Makes room. Returns 0, or -1 with an exception set. */
int records_start(void);
/* Forgets all records. */
void records_stop(void);

struct record *records_find(const struct record_key *key); /* NULL where there is none */
/* Takes `example`. NULL where the table is full. */
struct record *records_add(const struct record_key *key, enum via via, PyObject *example);
/* Tells a record that an array is an operand of the addition that begins behind so many bytes of others. */
void records_use(struct uses *uses, const void *data, long long before);
/* Counts additions that no record has, and their time together. */
void records_miss(long long calls, long long ns);

/* {"additions": a list of dicts, "missed": calls, "missed_seconds"}, or NULL with an exception set. */
PyObject *records_described(void);

#endif
