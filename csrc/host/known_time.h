/* What something takes on this machine, known from the times that it took: a running estimate that leans to the lesser
 * ones, because what disturbs a call makes it longer. Any thread may note a time; an update that is lost does no harm.
 */
#ifndef VECADD_HOST_KNOWN_TIME_H
#define VECADD_HOST_KNOWN_TIME_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/min_max.h"
#include "base/relaxed.h"

struct known_time {
    atomic_uint ns, samples;
};

static inline bool
known_time_is_any(const struct known_time *known)
{
    return relaxed_get(&known->samples) > 0;
}

/* Whether there are samples enough to compare it with another. */
static inline bool
known_time_is_settled(const struct known_time *known)
{
    enum { FIRST = 4 };
    return relaxed_get(&known->samples) >= FIRST;
}

static inline double
known_time_ns(const struct known_time *known)
{
    return relaxed_get(&known->ns);
}

static inline void
known_time_note(struct known_time *known, double ns)
{
    enum {
        LEAST_OF = 2, /* of the first two samples the lesser counts; */
        PART = 4,     /* each later one moves the estimate by this part of the difference, */
        MOST = 16,    /* upwards by this part of the estimate at most, */
        SETTLED = 16, /* and by PART of it until there are so many */
    };
    const unsigned sample = ns < 1 ? 1 : ns < 1e9 ? (unsigned)ns : 1000000000;
    const unsigned samples = relaxed_get(&known->samples);
    unsigned now = relaxed_get(&known->ns);
    if (samples == 0 || sample < now)
        now = samples < LEAST_OF ? sample : now - (now - sample) / PART;
    else if (samples >= LEAST_OF)
        now += (unsigned)smaller((sample - now) / PART, now / (samples < SETTLED ? PART : MOST));
    relaxed_set(&known->ns, now);
    if (samples < SETTLED)
        relaxed_set(&known->samples, samples + 1);
}

#endif
