#include "base/overlap.h"

bool
overlaps_in_part(const void *p, const void *q, size_t bytes)
{
    const uintptr_t x = (uintptr_t)p, y = (uintptr_t)q;
    return x != y && (x < y ? y - x : x - y) < bytes;
}

enum { DIGIT_BITS = 8, VALUES = 1 << DIGIT_BITS };

static size_t
digit_of(uintptr_t number, unsigned shift)
{
    return number >> shift & (VALUES - 1);
}

/* Sorts by one digit of the addresses; keeps the order of those that share it. */
static void
sort_by_digit(const struct interval *from, struct interval *to, size_t count, unsigned shift)
{
    size_t next[VALUES] = {0}, at = 0;
    for (size_t i = 0; i < count; i++)
        next[digit_of(from[i].begin, shift)]++;
    for (int value = 0; value < VALUES; value++) {
        const size_t here = next[value];
        next[value] = at;
        at += here;
    }
    for (size_t i = 0; i < count; i++)
        to[next[digit_of(from[i].begin, shift)]++] = from[i];
}

/* Sorts by the bits in which addresses differ, a digit at a time and the last digit first. Returns the buffer with
 * the result. A merge sort takes five times as long for arrays in no order: 62 us for 2000, a fifth of a whole
 * call. */
static struct interval *
sort_by_begin(struct interval *from, struct interval *to, size_t count)
{
    uintptr_t differ = 0;
    for (size_t i = 1; i < count; i++)
        differ |= from[i].begin ^ from[0].begin;
    for (unsigned shift = 0; shift < 8 * sizeof differ && differ >> shift != 0; shift += DIGIT_BITS) {
        shift += (unsigned)__builtin_ctzll(differ >> shift);
        sort_by_digit(from, to, count, shift);
        struct interval *const sorted = to;
        to = from;
        from = sorted;
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
