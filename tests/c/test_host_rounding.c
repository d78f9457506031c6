/* The host adders under every rounding mode of the caller, at every level: float16 and bfloat16 are rounded to nearest
 * even in each of them, float32 and float64 as the scalar instruction rounds. Values and flags.
 *
 * The reference adds and rounds 16-bit floats in integers, which have no rounding mode. */
#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "host/add.h"
#include "host_reference.h"
#include "tests.h"

static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
enum { MODES = sizeof modes / sizeof *modes };

/* ---- the reference ---- */

/* `cancels`: a zero that is the sum of unlike numbers, and -0 where the caller rounds downwards. */
struct expected {
    uint16_t bits;
    unsigned flags;
    bool cancels;
};

struct short_float {
    enum component component;
    const struct format *format;
};
static const struct short_float short_floats[] = {{COMPONENT_F16, &formats[F16]}, {COMPONENT_BF16, &formats[BF16]}};

static struct expected
expected_of(const struct format *format, uint16_t a, uint16_t b)
{
    struct expected expected;
    expected.flags = reference_short(format, a, b, &expected.bits);
    expected.cancels = (expected.bits & 0x7fff) == 0 && ((a ^ b) & 0x8000);
    return expected;
}

/* ---- 16-bit floats ---- */

/* Both zeros, the least and the greatest subnormals, the least normal, 1 and what is beside it, half a last place of 1
 * and beside it, half a last place of the greatest and beside it, the greatest, infinity, NaNs: both signs. */
static size_t
partners_of(const struct format *format, uint16_t partners[])
{
    const uint32_t one_place = 1u << format->fraction, infinity = format->greatest + 1;
    const uint32_t one = (infinity >> format->fraction) / 2 << format->fraction;
    const uint32_t half_of_one = one - (((uint32_t)format->fraction + 1) << format->fraction);
    const uint32_t half_of_greatest = infinity - (((uint32_t)format->fraction + 2) << format->fraction);
    const uint32_t positive[] = {0,
                                 1,
                                 2,
                                 3,
                                 one_place - 1,
                                 one_place,
                                 one_place + 1,
                                 half_of_one - 1,
                                 half_of_one,
                                 half_of_one + 1,
                                 one - 1,
                                 one,
                                 one + 1,
                                 one + one_place * 5 + 3,
                                 half_of_greatest - 1,
                                 half_of_greatest,
                                 half_of_greatest + 1,
                                 infinity - 1,
                                 infinity,
                                 infinity + 1,
                                 infinity | one_place / 2};
    const size_t count = sizeof positive / sizeof *positive;
    for (size_t i = 0; i < count; i++) {
        partners[i] = (uint16_t)positive[i];
        partners[count + i] = (uint16_t)(positive[i] | 0x8000);
    }
    return 2 * count;
}

enum { EVERY = 1 << 16, BLOCK = 32 }; /* a block is the longest vector: its flags are those of its own elements */

static void
check_blocks(const struct host_simd *simd, const struct short_float *type, int mode, uint16_t partner,
             const struct expected expected[EVERY])
{
    const struct host_schedule schedule = {.simd = simd, .threads = 1};
    size_t wrong = 0, wrong_flags = 0, kept = 0;
    for (unsigned block = 0; block < EVERY; block += BLOCK) {
        uint16_t a[BLOCK], b[BLOCK], c[BLOCK];
        unsigned flags = 0;
        for (unsigned i = 0; i < BLOCK; i++) {
            a[i] = (uint16_t)(block + i);
            b[i] = partner;
            flags |= expected[block + i].flags;
        }
        wrong_flags += host_add(&schedule, type->component, a, b, c, BLOCK) != flags;
        kept += fegetround() == mode;
        for (unsigned i = 0; i < BLOCK; i++) {
            const struct expected *one = &expected[block + i];
            const uint16_t due = one->bits | (one->cancels && mode == FE_DOWNWARD ? 0x8000 : 0);
            wrong += !same(type->component, &c[i], &due);
        }
    }
    CHECK(wrong == 0, "%s component %d mode %#x partner %#x: %zu sums", simd->name, type->component, (unsigned)mode,
          partner, wrong);
    CHECK(wrong_flags == 0, "%s component %d mode %#x partner %#x: flags of %zu blocks", simd->name, type->component,
          (unsigned)mode, partner, wrong_flags);
    CHECK(kept == EVERY / BLOCK);
}

TEST(sixteen_bit_floats_are_rounded_to_nearest_even_in_every_mode)
{
    static struct expected expected[EVERY];
    for (int which = 0; which < 2; which++) {
        uint16_t partners[64];
        const struct short_float *type = &short_floats[which];
        const size_t count = partners_of(type->format, partners);
        for (size_t partner = 0; partner < count; partner++) {
            for (unsigned i = 0; i < EVERY; i++)
                expected[i] = expected_of(type->format, (uint16_t)i, partners[partner]);
            for (size_t level = 0; host_simd_levels[level]; level++)
                for (int mode = 0; mode < MODES && host_simd_levels[level]->supported(); mode++) {
                    fesetround(modes[mode]);
                    check_blocks(host_simd_levels[level], type, modes[mode], partners[partner], expected);
                    fesetround(FE_TONEAREST);
                }
        }
    }
}

/* ---- float32 and float64 ---- */

static const uint32_t values_f32[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000,
                                      0x80800000, 0x33800000, 0x33800001, 0xb3800000, 0x3f800000, 0xbf800000,
                                      0x3f800001, 0x72ffffff, 0x73000000, 0xf3000000, 0x7f7fffff, 0xff7fffff,
                                      0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001};
static const uint64_t values_f64[] = {
    0,
    0x8000000000000000,
    1,
    0x8000000000000001,
    0x000fffffffffffff,
    0x0010000000000000,
    0x8010000000000000,
    0x3ca0000000000000,
    0x3ca0000000000001,
    0xbca0000000000000,
    0x3ff0000000000000,
    0xbff0000000000000,
    0x3ff0000000000001,
    0x7c8fffffffffffff,
    0x7c90000000000000,
    0xfc90000000000000,
    0x7fefffffffffffff,
    0xffefffffffffffff,
    0x7ff0000000000000,
    0xfff0000000000000,
    0x7ff8000000000000,
    0x7ff0000000000001,
};

/* Every pair of the values alone in an array, so that its flags are its own. */
static void
check_pairs(const struct host_simd *simd, enum component component, const void *values, size_t count)
{
    const struct host_schedule schedule = {.simd = simd, .threads = 1};
    const size_t size = component_size[component];
    for (int mode = 0; mode < MODES; mode++)
        for (size_t pair = 0; pair < count * count; pair++) {
            const char *a = (const char *)values + pair % count * size, *b = (const char *)values + pair / count * size;
            uint64_t c = 0, expected = 0;
            fesetround(modes[mode]);
            const unsigned flags = reference(component, a, b, &expected, 1);
            const unsigned raised = host_add(&schedule, component, a, b, &c, 1);
            fesetround(FE_TONEAREST);
            CHECK(same(component, &c, &expected) && raised == flags, "%s component %d mode %#x: values %zu and %zu",
                  simd->name, component, (unsigned)modes[mode], pair % count, pair / count);
        }
}

TEST(wider_floats_are_rounded_as_the_caller_rounds)
{
    for (size_t level = 0; host_simd_levels[level]; level++) {
        const struct host_simd *simd = host_simd_levels[level];
        if (!simd->supported())
            continue;
        check_pairs(simd, COMPONENT_F32, values_f32, sizeof values_f32 / sizeof *values_f32);
        check_pairs(simd, COMPONENT_F64, values_f64, sizeof values_f64 / sizeof *values_f64);
    }
}
