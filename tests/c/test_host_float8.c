/* Every pair of float8_e4m3fn at every level, alone and in vectors, under every rounding mode of the caller. */
#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fpenv.h"
#include "float8.h"
#include "host/add.h"
#include "tests.h"

enum { PAIRS = 1 << 16 };

static uint8_t a[PAIRS], b[PAIRS], c[PAIRS], expected[PAIRS];

static void
fill(void)
{
    for (int i = 0; i < PAIRS; i++) {
        a[i] = (uint8_t)(i >> 8);
        b[i] = (uint8_t)i;
        expected[i] = reference_e4m3fn(a[i], b[i]);
    }
}

static int
first_wrong(void)
{
    int i = 0;
    while (i < PAIRS && c[i] == expected[i])
        i++;
    return i;
}

TEST(every_pair_is_rounded_once_at_every_level)
{
    fill();
    for (size_t level = 0; host_simd_levels[level]; level++) {
        const struct host_simd *simd = host_simd_levels[level];
        if (!simd->supported())
            continue;
        for (int streaming = 0; streaming < 2; streaming++) {
            memset(c, 0, sizeof c);
            (streaming ? simd->stream : simd->add)[COMPONENT_E4M3FN](a, b, c, PAIRS);
            const int wrong = first_wrong();
            CHECK(wrong == PAIRS, "%s: %#x + %#x = %#x, not %#x", simd->name, a[wrong % PAIRS], b[wrong % PAIRS],
                  c[wrong % PAIRS], expected[wrong % PAIRS]);
        }
    }
}

TEST(an_element_by_itself_is_added_as_in_a_vector)
{
    fill();
    for (size_t level = 0; host_simd_levels[level]; level++)
        for (int i = 0; host_simd_levels[level]->supported() && i < PAIRS; i++) {
            uint8_t sum = 0;
            host_simd_levels[level]->add[COMPONENT_E4M3FN](&a[i], &b[i], &sum, 1);
            CHECK(sum == expected[i], "%s: %#x + %#x", host_simd_levels[level]->name, a[i], b[i]);
        }
}

/* Sums are exact in float32, so that a mode decides but the sign of a zero that is the sum of unlike numbers. */
TEST(the_callers_rounding_changes_no_value_and_no_flag_is_raised)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    fill();
    for (size_t level = 0; host_simd_levels[level]; level++)
        for (size_t i = 0; host_simd_levels[level]->supported() && i < sizeof modes / sizeof *modes; i++) {
            const struct host_schedule schedule = {.simd = host_simd_levels[level], .threads = 1};
            fesetround(modes[i]);
            const unsigned flags = host_add(&schedule, COMPONENT_E4M3FN, a, b, c, PAIRS);
            fesetround(FE_TONEAREST);
            CHECK(flags == 0, "%s, mode %zu: flags %u", host_simd_levels[level]->name, i, flags);
            for (int k = 0; k < PAIRS; k++)
                if (modes[i] == FE_DOWNWARD && (expected[k] & 0x7f) == 0 && a[k] != b[k] && (a[k] ^ b[k]) & 0x80)
                    c[k] &= 0x7f;
            CHECK(first_wrong() == PAIRS, "%s, mode %zu", host_simd_levels[level]->name, i);
        }
}
