#include "host/second_thread.h"

#include <string.h>

#include "base/relaxed.h"
#include "host/known_time.h"

enum {
    LEAST = 128 << 10, /* bytes that a job writes: untuned, smaller ones have one thread */
    CLASSES = 4,       /* of sizes, each twice the one before, from LEAST on */
    IN_TURNS = 4,      /* jobs of two threads, as many of one, and both again */
    FIRST = 4 * IN_TURNS,
    RETRIED = 1024, /* choices until the slower is tried again: on two cores one thread takes up to twice as long */
    TRIES = 3,      /* in a row */
    TIMED = 8,      /* of so many jobs two are timed: to read the clock twice takes a hundredth of the shortest */
    WAKES = 8,      /* bursts of which one wakes the worker though one thread is quicker */
};

static const double CLEARLY = 0.9; /* of the time of two threads: one is not taken for less */

static struct size_class {
    struct known_time time[2]; /* [together], of LEAST bytes */
    atomic_uint choices, bursts;
    atomic_uint tries; /* of two threads that are still to be made */
    atomic_uint last;  /* whether the last job that was noted had two */
} classes[2][CLASSES]; /* [moves] */

static struct size_class *
class_of(size_t bytes, bool moves)
{
    int number = 0;
    while (number < CLASSES - 1 && bytes >= (size_t)LEAST << (number + 1))
        number++;
    return &classes[moves][number];
}

static bool
one_is_quicker(const struct size_class *class)
{
    return relaxed_get(&class->choices) >= FIRST && known_time_is_any(&class->time[false]) &&
           known_time_ns(&class->time[false]) < CLEARLY * known_time_ns(&class->time[true]);
}

bool
second_thread_choose(size_t bytes, bool moves, bool *timed)
{
    struct size_class *class = class_of(bytes, moves);
    const unsigned choice = relaxed_get(&class->choices), tries = relaxed_get(&class->tries);
    relaxed_set(&class->choices, choice + 1);
    *timed = choice < FIRST || tries > 0 || choice % TIMED < 2 || choice % RETRIED < TRIES;
    if (choice < FIRST)
        return choice / IN_TURNS % 2 == 0;
    if (tries > 0)
        relaxed_set(&class->tries, tries - 1);
    const bool retries = choice % RETRIED < TRIES;
    return tries > 0 || one_is_quicker(class) == retries;
}

/* The first job after one of the other kind counts for nothing: it finds its data in other caches. */
void
second_thread_note(size_t bytes, bool moves, bool together, long long ns)
{
    struct size_class *class = class_of(bytes, moves);
    if (relaxed_get(&class->last) == together)
        known_time_note(&class->time[together], (double)ns * LEAST / (double)bytes);
    relaxed_set(&class->last, together);
}

bool
second_thread_is_woken(size_t bytes, bool moves)
{
    struct size_class *class = class_of(bytes, moves);
    if (!one_is_quicker(class))
        return true;
    const unsigned bursts = relaxed_get(&class->bursts) + 1;
    relaxed_set(&class->bursts, bursts);
    if (bursts % WAKES != 0)
        return false;
    relaxed_set(&class->tries, TRIES);
    return true;
}

void
second_thread_forget(void)
{
    memset(classes, 0, sizeof classes);
}
