/* Waiting for a word of memory to change: by spinning for a while, or by sleeping until another thread calls
 * futex_wake. */
#ifndef VECADD_HOST_FUTEX_H
#define VECADD_HOST_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/now.h"

enum {
    SPIN_NS = 50000, /* sleeping and waking costs 10 to 50 us: spinning longer costs more than it can save */
    PAUSES_A_LOOK_AT_THE_CLOCK = 16,
};

/* Sleeps until a wake. Returns at once if the word is not `expected`, and sometimes without a wake. */
static inline void
futex_wait(atomic_uint *word, unsigned expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

/* futex_wait for so many seconds at most. Returns whether they have passed. */
static inline bool
futex_wait_seconds(atomic_uint *word, unsigned expected, int seconds)
{
    const struct timespec most = {.tv_sec = seconds};
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &most, NULL, 0) < 0 && errno == ETIMEDOUT;
}

static inline void
futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static inline void
pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Spins until the state is no longer `value`, for `ns` at most. */
static inline void
spin_while(atomic_uint *state, unsigned value, long long ns)
{
    const long long deadline = now_ns() + ns;
    do {
        for (int i = 0; i < PAUSES_A_LOOK_AT_THE_CLOCK; i++) {
            if (atomic_load_explicit(state, memory_order_relaxed) != value)
                return;
            pause_briefly();
        }
    } while (now_ns() < deadline);
}

#endif
