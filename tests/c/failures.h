/* Makes every CUDA call of a piece of work fail, one after the other, and checks that nothing is left over. */
#ifndef VECADD_FAILURES_H
#define VECADD_FAILURES_H

#include <limits.h>
#include <string.h>

#include "base/status.h"
#include "check.h"
#include "double.h"

struct live {
    size_t device_blocks, device_bytes, pinned_blocks, streams, events, graphs;
};

static inline struct live
live_now(void)
{
    struct live live;
    double_live(&live.device_blocks, &live.device_bytes, &live.pinned_blocks, &live.streams, &live.events,
                &live.graphs);
    return live;
}

static inline int
live_same(struct live x, struct live y)
{
    return x.device_blocks == y.device_blocks && x.device_bytes == y.device_bytes &&
           x.pinned_blocks == y.pinned_blocks && x.streams == y.streams && x.events == y.events && x.graphs == y.graphs;
}

/* Does something and CHECKs its result; 0, or -1 with *status set. */
typedef int failing_work(struct status *status);

/* One run of `work` in which the nth call of `call` fails with `error`, and in which every wait and release reports the
 * same where `throughout`. Either an error is told or the result is right, and no error is left for the next library to
 * find. Gives whether an error was told. */
static inline int
fail_call(const char *call, int nth, int error, bool throughout, failing_work *work)
{
    struct status status = {0};
    double_take_errors();
    double_reset((unsigned)nth);
    double_fail(call, nth, error, 0);
    if (throughout)
        double_report_earlier(error);
    const int told = work(&status) < 0;
    if (told)
        CHECK(status.code != STATUS_OK && status.text[0], "%s %d", call, nth);
    CHECK(double_take_errors() == 0, "%s %d leaves an error%s", call, nth, throughout ? " of a wait or release" : "");
    return told;
}

/* Runs `work` with the first, the second, ... call of `call` failing with `error`, up to `each`, then with one
 * sixteen times as far, and so on, until it makes no more of them. Each time nothing is leaked, and the next run
 * succeeds. Waits and releases fail beside the first three: what they leave does not depend on how far the work came.
 * Returns how many runs told of an error. */
static inline int
fail_calls(const char *call, int error, failing_work *work, int each)
{
    struct status status;
    CHECK(work(&status) == 0, "%s: %s", call, status.text);
    const struct live before = live_now();
    int told = 0, made = 1;
    for (int nth = 1; made; nth = nth < each ? nth + 1 : 16 * nth) {
        if (nth <= 3)
            fail_call(call, nth, error, true, work);
        told += fail_call(call, nth, error, false, work);
        made = double_calls(call) >= nth;
        double_reset((unsigned)nth + 1000);
        CHECK(live_same(before, live_now()), "%s %d leaks", call, nth);
        CHECK(work(&status) == 0, "after %s %d: %s", call, nth, status.text);
        CHECK(double_faults() == 0, "%s %d", call, nth);
    }
    return told;
}

static inline int
fail_each_call(const char *call, int error, failing_work *work)
{
    return fail_calls(call, error, work, INT_MAX / 2);
}

/* The same for work that makes hundreds of them in loops: the first, the second, the 32nd, ... */
static inline int
fail_some_calls(const char *call, int error, failing_work *work)
{
    return fail_calls(call, error, work, 2);
}

#endif
