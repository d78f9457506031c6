#include "host/stores.h"

#include <string.h>

#include "host/known_time.h"

enum {
    LEAST = 1 << 20, /* bytes that a job writes */
    OCTAVES = 12, /* from LEAST on, each of QUARTERS classes of sizes: a cache that holds three arrays of 6 MiB may not
                     hold three of 10 */
    QUARTERS = 4,
    CLASSES = OCTAVES * QUARTERS,
    IN_TURNS = 4, /* calls with streaming stores, as many with ordinary ones, and both again, */
    FIRST = 4 * IN_TURNS,
    FIRST_MOVED = 64, /* calls with streaming stores where the sum moves: a cache seldom holds all places of it, and to
                       * learn late that it does costs a few ms */
    RETRIED = 256,    /* the slower stores are tried again after 16, 32, 64 and 128 choices, then after each so many */
    TRIES = 3,        /* in a row */
};

static const double CLOSE = 2.5; /* times as long: may yet be quicker */

static struct size_class {
    struct known_time time[2]; /* [streaming], for a MiB */
    atomic_uint choices;
    atomic_uint last;  /* the stores of the last job that was noted */
} classes[2][CLASSES]; /* [moves] */

static struct size_class *
class_of(size_t bytes, bool moves)
{
    int octave = 0;
    while (octave < OCTAVES - 1 && bytes >= (size_t)LEAST << (octave + 1))
        octave++;
    const size_t quarter = smaller(bytes / (((size_t)LEAST << octave) / QUARTERS), 2 * QUARTERS - 1) % QUARTERS;
    return &classes[moves][octave * QUARTERS + (int)quarter];
}

/* Whether the choice of that number is of the slower stores. */
static bool
is_retry(unsigned choice)
{
    unsigned every = FIRST;
    while (every < RETRIED && choice >= 2 * every)
        every *= 2;
    return choice % every < TRIES;
}

static bool
streaming_is_quicker(const struct size_class *class)
{
    return !known_time_is_any(&class->time[false]) ||
           known_time_ns(&class->time[true]) <= known_time_ns(&class->time[false]);
}

bool
stores_prefer_streaming(size_t bytes, bool moves)
{
    const struct size_class *class = class_of(bytes, moves);
    return relaxed_get(&class->choices) < FIRST || streaming_is_quicker(class);
}

bool
stores_choose_streaming(size_t bytes, bool moves)
{
    struct size_class *class = class_of(bytes, moves);
    const unsigned choice = relaxed_get(&class->choices);
    relaxed_set(&class->choices, choice + 1);
    if (moves && choice < FIRST_MOVED)
        return true;
    if (choice < FIRST)
        return choice / IN_TURNS % 2 == 0;
    const bool streaming = streaming_is_quicker(class);
    const double quicker = known_time_ns(&class->time[streaming]), slower = known_time_ns(&class->time[!streaming]);
    return is_retry(choice) && slower <= CLOSE * quicker ? !streaming : streaming;
}

/* The first job with other stores than the last one counts for nothing: it finds the sum where those have left it, in a
 * cache or out of it. */
void
stores_note(size_t bytes, bool moves, bool streaming, long long ns)
{
    struct size_class *class = class_of(bytes, moves);
    if (relaxed_get(&class->last) == streaming)
        known_time_note(&class->time[streaming], (double)ns * LEAST / (double)bytes);
    relaxed_set(&class->last, streaming);
}

void
stores_forget(void)
{
    memset(classes, 0, sizeof classes);
}
