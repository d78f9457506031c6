/* The host adders: every level, component, length, placement and kind of store against a scalar reference, flags
 * included.
 */
#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/fpenv.h"
#include "host/add.h"
#include "host_reference.h"
#include "tests.h"

/* A few pages between two guard pages. */
enum { ROOM = 16 << 10 };

static char *
guarded_room(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, ROOM + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + page, ROOM, PROT_READ | PROT_WRITE) != 0)
        abort();
    return memory + page;
}

/* Where an array is in its room: that many components from the beginning, or from the end. */
struct placement {
    bool at_end;
    size_t components;
};

static char *
place(char *room, struct placement placement, size_t n, size_t size)
{
    return placement.at_end ? room + ROOM - (n + placement.components) * size : room + placement.components * size;
}

enum alias { APART, C_IS_A, C_IS_B, ALL_ONE, ALIASES };

struct rooms {
    char *a, *b, *c;
};

static void
check_one(const struct rooms *rooms, const struct host_simd *simd, bool streaming, enum component component, size_t n,
          const struct placement *placements, enum alias alias)
{
    static char a_before[ROOM], b_before[ROOM], expected[ROOM];
    const size_t size = component_size[component];
    char *a = place(rooms->a, placements[0], n, size);
    char *b = alias == ALL_ONE ? a : place(rooms->b, placements[1], n, size);
    char *c = alias == C_IS_B ? b : alias == APART ? place(rooms->c, placements[2], n, size) : a;

    memset(rooms->a, 0xa5, ROOM);
    memset(rooms->b, 0xa5, ROOM);
    memset(rooms->c, 0xa5, ROOM);
    fill(component, a, n);
    fill(component, b, n);
    memcpy(a_before, rooms->a, ROOM);
    memcpy(b_before, rooms->b, ROOM);
    const unsigned flags = reference(component, a, b, expected, n);

    const struct host_schedule schedule = {.simd = simd, .threads = 1, .streaming = streaming};
    const unsigned raised = host_add(&schedule, component, a, b, c, n);

    const size_t wrong = first_difference(component, c, expected, n);
    CHECK(wrong == n, "%s component %d n %zu stream %d alias %d: element %zu", simd->name, component, n, streaming,
          alias, wrong);
    CHECK(raised == flags, "%s component %d n %zu stream %d: %u, not %u", simd->name, component, n, streaming, raised,
          flags);

    char *c_room = alias == APART ? rooms->c : alias == C_IS_B ? rooms->b : rooms->a;
    memset(c, 0xa5, n * size);
    if (c_room == rooms->a)
        memset(a_before + (c - rooms->a), 0xa5, n * size);
    if (c_room == rooms->b)
        memset(b_before + (c - rooms->b), 0xa5, n * size);
    bool untouched = memcmp(rooms->a, a_before, ROOM) == 0 && memcmp(rooms->b, b_before, ROOM) == 0;
    for (size_t i = 0; i < ROOM && c_room == rooms->c; i++)
        untouched = untouched && (unsigned char)rooms->c[i] == 0xa5;
    CHECK(untouched, "%s component %d n %zu stream %d alias %d: bytes beside c", simd->name, component, n, streaming,
          alias);
}

static const struct placement placements[][3] = {
    {{false, 0}, {false, 0}, {false, 0}}, {{true, 0}, {true, 0}, {true, 0}},  {{false, 0}, {true, 0}, {false, 1}},
    {{false, 1}, {false, 0}, {true, 0}},  {{true, 3}, {false, 5}, {true, 7}},
};

/* Bytes of a component's array: all around one and two vectors of any level, and around the unrolled loop's ends. */
static bool
is_interesting(size_t bytes)
{
    const size_t beside = (bytes + 2) % 32;
    return bytes <= 80 || beside <= 4;
}

TEST(every_level_adds_every_component_as_the_reference)
{
    const struct rooms rooms = {guarded_room(), guarded_room(), guarded_room()};
    for (size_t level = 0; host_simd_levels[level]; level++) {
        const struct host_simd *simd = host_simd_levels[level];
        if (!simd->supported())
            continue;
        for (enum component component = 0; component < COMPONENT_COUNT; component++)
            for (size_t n = 0; n * component_size[component] <= 640; n++)
                for (size_t p = 0; p < sizeof placements / sizeof *placements; p++)
                    if (is_interesting(n * component_size[component]))
                        for (int which = 0; which < 2 * ALIASES; which++)
                            check_one(&rooms, simd, which & 1, component, n, placements[p], which / 2);
    }
}

/* Adds the element at the beginning of b, of `components` components, to n components of a; c begins `beside`
 * components after the beginning of its room. The repeated element ends where its room ends. */
static void
check_repeated(const struct rooms *rooms, const struct host_simd *simd, bool streaming, enum component component,
               size_t components, size_t n, size_t beside)
{
    static char expected[ROOM], filled[ROOM];
    const size_t size = component_size[component], element = components * size;
    char *a = place(rooms->a, (struct placement){true, 0}, n, size), *c = rooms->c + beside * size;
    char *repeated = rooms->b + ROOM - REPEATED_BYTES;
    fill(component, a, n);
    fill(component, repeated, components);
    for (size_t i = element; i < REPEATED_BYTES; i++)
        repeated[i] = repeated[i - element];
    for (size_t i = 0; i < n * size; i++)
        filled[i] = repeated[i % element];
    memset(rooms->c, 0xa5, ROOM);
    const unsigned flags = reference(component, a, filled, expected, n);

    const fpenv_word environment = fpenv_begin();
    (streaming ? simd->stream_one : simd->add_one)[component](a, repeated, c, n);
    const unsigned raised = fpenv_end(environment);

    const size_t wrong = first_difference(component, c, expected, n);
    CHECK(wrong == n, "%s component %d n %zu stream %d: element %zu", simd->name, component, n, streaming, wrong);
    CHECK(component_is_float(component) ? raised == flags : true, "%s component %d n %zu stream %d: %u, not %u",
          simd->name, component, n, streaming, raised, flags);
    bool untouched = true;
    for (char *i = rooms->c; i < rooms->c + ROOM; i++)
        untouched = untouched && (i - c >= 0 && i - c < (ssize_t)(n * size) ? true : (unsigned char)*i == 0xa5);
    CHECK(untouched, "%s component %d n %zu stream %d: bytes beside c", simd->name, component, n, streaming);
}

TEST(every_level_adds_one_element_to_an_array_of_any_length_at_any_address)
{
    const struct rooms rooms = {guarded_room(), guarded_room(), guarded_room()};
    for (size_t level = 0; host_simd_levels[level]; level++)
        for (enum component component = 0; component < COMPONENT_COUNT && host_simd_levels[level]->supported();
             component++)
            for (size_t components = 1; components <= (component_is_float(component) ? 2 : 1); components++)
                for (size_t n = components; n * component_size[component] <= 640; n += components)
                    for (size_t beside = 0; beside * component_size[component] < 64; beside += 1 + beside % 4)
                        if (is_interesting(n * component_size[component]))
                            for (int streaming = 0; streaming < 2; streaming++)
                                check_repeated(&rooms, host_simd_levels[level], streaming, component, components, n,
                                               beside);
}

TEST(the_callers_flags_stay_and_are_not_reported)
{
    const float a[3] = {1, 2, 3}, big[3] = {3e38f, 3e38f, 3e38f};
    float c[3];
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_INVALID);
    for (size_t level = 0; host_simd_levels[level]; level++) {
        const struct host_simd *simd = host_simd_levels[level];
        if (!simd->supported())
            continue;
        const struct host_schedule schedule = {.simd = simd, .threads = 1};
        CHECK(host_add(&schedule, COMPONENT_F32, a, a, c, 3) == 0, "%s", simd->name);
        CHECK(host_add(&schedule, COMPONENT_F32, big, big, c, 3) == FP_OVERFLOW, "%s", simd->name);
        CHECK(fpenv_flags(fpenv_get()) == FP_INVALID, "%s", simd->name);
    }
}

TEST(threads_and_streams_add_blocks_at_any_address)
{
    enum { N = 300007 };
    static uint32_t a[N + 64], b[N + 64], c[N + 64], expected[N + 64];
    fill(COMPONENT_F32, a, N + 64);
    fill(COMPONENT_F32, b, N + 64);
    for (size_t level = 0; host_simd_levels[level]; level++)
        for (int which = 0; host_simd_levels[level]->supported() && which < 32; which++) {
            const size_t offset = (size_t)which * 5, n = N - (size_t)which;
            const struct host_schedule schedule = {.simd = host_simd_levels[level],
                                                   .threads = 1 + which % 4,
                                                   .starts = 4,
                                                   .wakes = which & 8,
                                                   .streaming = which & 4,
                                                   .narrow = which & 16,
                                                   .block = 4096};
            const unsigned flags = reference(COMPONENT_F32, a + which, b, expected, n);
            memset(c, 0xa5, sizeof c);
            const unsigned raised = host_add(&schedule, COMPONENT_F32, a + which, b, c + offset % 48, n);
            const size_t wrong = first_difference(COMPONENT_F32, c + offset % 48, expected, n);
            CHECK(wrong == n, "%s %d: element %zu", host_simd_levels[level]->name, which, wrong);
            CHECK(raised == flags);
            CHECK(c[offset % 48 + n] == 0xa5a5a5a5);
        }
}

TEST(shorter_vectors_are_the_next_levels_but_for_what_is_converted)
{
    for (size_t level = 0; host_simd_levels[level]; level++)
        for (enum component component = 0; component < COMPONENT_COUNT; component++) {
            const struct host_simd *simd = host_simd_levels[level], *less = simd->narrower;
            const struct host_schedule narrow = {.simd = simd, .narrow = true}, wide = {.simd = simd};
            const bool stays = less == NULL || component_is_short_float(component);
            CHECK(less == NULL || less == host_simd_levels[level + 1]);
            CHECK(host_loop(&narrow, component, false) == (stays ? simd : less)->add[component]);
            CHECK(host_loop(&narrow, component, true) == (stays ? simd : less)->stream[component]);
            CHECK(host_loop(&wide, component, true) == simd->stream[component]);
        }
}

TEST(one_flag_in_a_large_array_is_found)
{
    enum { N = 1 << 20 };
    static float a[N], b[N], c[N];
    struct host_schedule schedule = {.threads = 3, .starts = 2, .wakes = true, .streaming = true, .block = 4096};
    for (size_t level = 0; host_simd_levels[level]; level++) {
        const struct host_simd *simd = host_simd_levels[level];
        schedule.simd = simd;
        for (size_t where = 0; simd->supported() && where < N; where += N / 7) {
            memset(a, 0, sizeof a);
            a[where] = b[where] = 3e38f;
            CHECK(host_add(&schedule, COMPONENT_F32, a, b, c, N) == FP_OVERFLOW, "%s at %zu", simd->name, where);
            b[where] = 0;
            CHECK(host_add(&schedule, COMPONENT_F32, a, b, c, N) == 0, "%s at %zu", simd->name, where);
        }
    }
}

TEST(nothing_is_read_for_no_elements)
{
    const struct host_schedule schedule = {.simd = &host_simd_c, .threads = 4, .wakes = true, .block = 1};
    CHECK(host_add(&schedule, COMPONENT_F64, NULL, NULL, NULL, 0) == 0);
}
