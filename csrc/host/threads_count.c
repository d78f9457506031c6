#include "host/threads_count.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cpus.h"

static atomic_int usable, available; /* 0: not determined yet */
static atomic_int allowed;           /* cpus_allowed(), when `usable` was determined */
static atomic_int chosen;            /* by threads_choose; 0: not */

int
threads_usable_cpus(void)
{
    int count = atomic_load_explicit(&usable, memory_order_relaxed);
    if (count == 0) {
        atomic_store_explicit(&allowed, cpus_allowed(), memory_order_relaxed);
        count = cpus_usable();
        atomic_store_explicit(&usable, count, memory_order_relaxed);
    }
    return count;
}

/* The number in the environment's variable; 0 where there is none, -1 for a text that is no number of threads. */
static int
number_in_environment(void)
{
    const char *text = getenv(THREADS_VARIABLE);
    char *end;
    if (text == NULL || *text == '\0')
        return 0;
    const long number = strtol(text, &end, 10);
    return *end == '\0' && number >= 1 && number <= THREADS_MAX ? (int)number : -1;
}

const char *
threads_invalid_variable(void)
{
    return number_in_environment() < 0 ? getenv(THREADS_VARIABLE) : NULL;
}

int
threads_usual(void)
{
    const int number = number_in_environment();
    if (number > 0)
        return number;
    const int cpus = threads_usable_cpus();
    return cpus < THREADS_MAX ? cpus : THREADS_MAX;
}

/* Whether a process that had one processor may use others since: it has no workers, whose jobs would see that. */
static bool
has_got_more(void)
{
    return atomic_load_explicit(&usable, memory_order_relaxed) == 1 &&
           atomic_load_explicit(&allowed, memory_order_relaxed) != cpus_allowed();
}

int
threads_available(void)
{
    int count = atomic_load_explicit(&available, memory_order_relaxed);
    if (count == 1 && has_got_more()) {
        threads_count_forget();
        count = 0;
    }
    if (count == 0) {
        count = atomic_load_explicit(&chosen, memory_order_relaxed);
        if (count == 0)
            count = threads_usual();
        int undetermined = 0; /* a choice of another thread's stays */
        if (!atomic_compare_exchange_strong(&available, &undetermined, count))
            count = undetermined;
    }
    return count;
}

int
threads_choose(int count)
{
    threads_available(); /* so that there is a number to give back */
    atomic_store(&chosen, count);
    return atomic_exchange(&available, count);
}

void
threads_count_forget(void)
{
    atomic_store(&usable, 0);
    atomic_store(&available, 0);
}
