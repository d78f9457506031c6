// The host's clock as the objects under test read it: what they decide by time can be decided by a test. The linker
// sends them here (--wrap).
#include "double.h"

#include <atomic>
#include <ctime>

static std::atomic<long long> step{0}, now{0}; // nanoseconds

void
double_clock(long long nanoseconds)
{
    step = nanoseconds;
}

extern "C" {
int __real_clock_gettime(clockid_t clock, struct timespec *time);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    const long long forward = step;
    if (forward == 0)
        return __real_clock_gettime(clock, time);
    const long long read = now += forward;
    *time = {static_cast<time_t>(read / 1000000000), static_cast<long>(read % 1000000000)};
    return 0;
}
}
