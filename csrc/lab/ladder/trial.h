/* One call of somebody else's addition, judged: prepared, timed and compared in C, so that nothing of the caller's runs
 * but the call. All of it is queued on the legacy default stream, which the addition is expected to work on. */
#ifndef VECADD_LAB_LADDER_TRIAL_H
#define VECADD_LAB_LADDER_TRIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* A memory of trials has a, b and out with poison before, between and after them: seven regions. */
enum { TRIAL_ARRAYS = 3, TRIAL_REGIONS = 2 * TRIAL_ARRAYS + 1 };

/* Counted in elements of at most 8 bytes; `first` is the first wrong one, in its region. */
struct trial_count {
    unsigned long long wrong, first, unwritten, before, last;
};

struct trial_result {
    double seconds; /* between events on both sides of the call */
    /* As work finds it that is queued right after the call. Of out the wrong elements are told apart: those that were
     * not written, the sums of what a and b were before they were ready, and those of the call before. */
    struct trial_count regions[TRIAL_REGIONS];
    /* Where the sum was wrong: out again when the device had come to rest, and a while later. */
    struct trial_count at_rest, later;
    size_t persisting; /* bytes of the L2 that are set aside for memory that persists there */
    bool unordered;    /* work queued after the call was over, and out not the sum, while no kernel could have run */
};

struct trial {
    int device;
    size_t itemsize, bytes; /* of an element, of one array */
    unsigned char *memory;
    size_t memory_bytes, start[TRIAL_ARRAYS]; /* a, b and out begin at these bytes of the memory, in this order */

    /* Arrays a, b and their sum, one after the other: what the call is given; what a and b are until the GPU comes to
     * the call; the sum of the call before. `before` and `last` may be NULL. */
    unsigned char *now;
    const unsigned char *before, *last;
    /* Elements of `donor`, arrays like `now`, replace those of `now` at these indices first: a sum that was kept for
     * these operands is wrong there. */
    const unsigned char *donor;
    const size_t *pokes;
    size_t poke_count;

    void *flush; /* NULL, or memory that an addition's traffic goes through right before the call: it fills the L2 */
    size_t flush_bytes;
    unsigned delay;           /* cycles of the GPU's clock that it waits for the host to queue the call */
    unsigned blockade_cycles; /* no kernel may run for that long from the call on; 0 in a bare call */
    bool bare;                /* nothing is prepared or compared: the arrays are as the calls before have left them */

    /* The trial's own; NULL before trial_begin. */
    void *begin, *end, *counts;
    struct blockade *blockade;
};

/* Queues all that comes before the call. Waits: the caller has no lock. Returns 0, or -1 with *status set and nothing
 * to release. Then the caller queues the addition, and calls trial_end, or trial_close where it could not. */
int trial_begin(struct trial *trial, struct status *status);

/* Waits for the addition and gives the result. Returns 0, or -1 with *status set; either way nothing is left to
 * release. */
int trial_end(struct trial *trial, struct trial_result *result, struct status *status);

/* Waits for the device and releases what the trial has. */
void trial_close(struct trial *trial);

#endif
