#include "base/overlap.h"

#include <string.h>

bool
overlaps_in_part(const void *p, const void *q, size_t bytes)
{
    const uintptr_t x = (uintptr_t)p, y = (uintptr_t)q;
    return x != y && (x < y ? y - x : x - y) < bytes;
}

static size_t
run_end(const struct interval *intervals, size_t begin, size_t count)
{
    size_t end = begin + 1;
    while (end < count && intervals[end - 1].begin <= intervals[end].begin)
        end++;
    return end;
}

static void
merge(const struct interval *from, size_t begin, size_t middle, size_t end, struct interval *to)
{
    size_t left = begin, right = middle;
    for (size_t i = begin; i < end; i++)
        to[i] = right == end || (left < middle && from[left].begin <= from[right].begin) ? from[left++] : from[right++];
}

/* A natural merge sort: each pass merges every two neighbouring runs. Returns the buffer that holds the result. */
static struct interval *
sort_by_begin(struct interval *from, struct interval *to, size_t count)
{
    while (run_end(from, 0, count) < count) {
        for (size_t begin = 0, end; begin < count; begin = end) {
            const size_t middle = run_end(from, begin, count);
            end = middle < count ? run_end(from, middle, count) : count;
            merge(from, begin, middle, end, to);
        }
        struct interval *const merged = to;
        to = from;
        from = merged;
    }
    return from;
}

/* Among the intervals visited: the furthest end, and the furthest end of any other group. */
struct furthest {
    uintptr_t end[2];
    size_t group[2];
};

static void
go_past(struct furthest *furthest, const struct interval *interval)
{
    int place = 1;
    if (interval->end > furthest->end[0]) {
        if (interval->group != furthest->group[0]) {
            furthest->end[1] = furthest->end[0];
            furthest->group[1] = furthest->group[0];
        }
        place = 0;
    } else if (interval->group == furthest->group[0] || interval->end <= furthest->end[1])
        return;
    furthest->end[place] = interval->end;
    furthest->group[place] = interval->group;
}

/* The other group whose visited interval ends after this interval begins; SIZE_MAX if there is none. */
static size_t
met(const struct furthest *furthest, const struct interval *interval)
{
    for (int i = 0; i < 2; i++)
        if (furthest->end[i] > interval->begin && furthest->group[i] != interval->group)
            return furthest->group[i];
    return SIZE_MAX;
}

bool
overlap_find(struct interval *intervals, struct interval *scratch, size_t count, size_t found[2])
{
    if (count == 0)
        return false;
    const struct interval *sorted = sort_by_begin(intervals, scratch, count);
    struct furthest any = {{0, 0}, {SIZE_MAX, SIZE_MAX}}, written = any;
    for (size_t i = 0; i < count; i++) {
        const struct interval *interval = &sorted[i];
        const size_t other = met(interval->written ? &any : &written, interval);
        if (other != SIZE_MAX) {
            found[0] = interval->written ? interval->group : other;
            found[1] = interval->written ? other : interval->group;
            return true;
        }
        go_past(&any, interval);
        if (interval->written)
            go_past(&written, interval);
    }
    return false;
}
