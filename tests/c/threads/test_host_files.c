/* Files that are added in threads, against a sum that is made here. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/run.h"
#include "host/add.h"
#include "tests.h"

enum { HEAD = 128, WINDOW = 8192, THREADS = 3 };

/* Three files of n float32 after a header: a[i] = i, b[i] = i / 2, and room for the sum. */
struct files {
    size_t n;
    struct files_run run;
    size_t told;
    atomic_int checked; /* calls of check */
    bool ends;          /* check ends the run */
    int ends_at;        /* of the calls of tell; 0: none */
};

static int
tell(void *context, size_t done)
{
    struct files *files = context;
    const size_t stretch = files->run.together * (size_t)files->run.tiles.extent[0], left = files->n - files->told;
    CHECK(done == files->told + (left < stretch ? left : stretch), "%zu after %zu of %zu", done, files->told, files->n);
    files->told = done;
    return files->ends_at && --files->ends_at == 0 ? -1 : 0;
}

static int
check(void *context)
{
    struct files *files = context;
    atomic_fetch_add(&files->checked, 1);
    return files->ends ? -1 : 0;
}

/* An addition that lasts until the caller has looked for signals, twice where that does not end the run. */
static int
add_while_checked(void *context, int worker, const struct tiles *tiles, const struct tile *tile,
                  char *const at[LAYOUT_OPERANDS])
{
    struct files *files = context;
    (void)worker, (void)tiles, (void)tile, (void)at;
    while (atomic_load(&files->checked) < (files->ends ? 1 : 2))
        usleep(1000);
    return 0;
}

static int
no_other_add(void *context, int worker, const struct tiles *tiles, const struct tile *tile,
             char *const at[LAYOUT_OPERANDS])
{
    (void)context, (void)worker, (void)tiles, (void)tile, (void)at;
    return -1;
}

static int
file_without_a_name(void)
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char name[256];
    snprintf(name, sizeof name, "%s/vecadd-files-XXXXXX", folder);
    const int descriptor = mkstemp(name);
    CHECK(descriptor >= 0, "%s", name);
    unlink(name);
    return descriptor;
}

static void
open_files(struct files *files, size_t n)
{
    const ssize_t shape[] = {(ssize_t)n};
    const struct layout_view view = {.ndim = 1, .shape = shape, .itemsize = sizeof(float)};
    const struct layout_view views[] = {view, view, view};
    struct status status;
    *files = (struct files){.n = n};
    float *x = malloc(n * sizeof *x);
    for (int k = 0; k < LAYOUT_OPERANDS; k++) {
        const int descriptor = file_without_a_name();
        for (size_t i = 0; i < n; i++)
            x[i] = (float)i / (float)(k + 1);
        if (k < LAYOUT_SUM)
            CHECK(pwrite(descriptor, x, n * sizeof *x, HEAD) == (ssize_t)(n * sizeof *x));
        else
            CHECK(ftruncate(descriptor, (off_t)(HEAD + n * sizeof *x)) == 0);
        files->run.descriptor[k] = descriptor;
        files->run.offset[k] = HEAD;
        files->run.tiles.itemsize[k] = sizeof(float);
        files->run.adder.dtype[k] = DTYPE_FLOAT32;
    }
    free(x);
    layout_make(&files->run.tiles.layout, 1, shape, views);
    CHECK(tile_adder_schedule(&files->run.adder, &files->run.tiles, &status) == 0);
    files->run.window = WINDOW;
    files->run.threads = THREADS;
    files->run.check = check;
    files->run.add = no_other_add;
    files->run.context = files;
}

static struct files_outcome
add(struct files *files)
{
    files_prepare(&files->run);
    char *memory = malloc(files->run.memory);
    const struct files_outcome outcome = files_run(&files->run, memory);
    free(memory);
    return outcome;
}

static void
close_files(const struct files *files)
{
    for (int k = 0; k < LAYOUT_OPERANDS; k++)
        close(files->run.descriptor[k]);
}

static void
check_sum(const struct files *files)
{
    float *c = malloc(files->n * sizeof *c);
    size_t wrong = 0;
    CHECK(pread(files->run.descriptor[LAYOUT_SUM], c, files->n * sizeof *c, HEAD) == (ssize_t)(files->n * sizeof *c));
    for (size_t i = 0; i < files->n; i++)
        wrong += c[i] != (float)i + (float)i / 2;
    CHECK(wrong == 0, "%zu elements: %zu wrong", files->n, wrong);
    free(c);
}

/* The caller is told of each stretch once, in their order; tell itself looks. */
TEST(every_size_makes_the_sum)
{
    static const size_t sizes[] = {1, 2047, 2048, 16383, 16384, 16385, 300001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int told = 0; told < 2; told++) {
            struct files files;
            open_files(&files, sizes[i]);
            files.run.tell = told ? tell : NULL;
            const struct files_outcome outcome = add(&files);
            CHECK(outcome.error == 0 && outcome.flags == 0, "%d", outcome.error);
            CHECK(files.told == (told ? sizes[i] : 0), "%zu of %zu", files.told, sizes[i]);
            check_sum(&files);
            close_files(&files);
        }
}

TEST(what_is_only_moved_is_the_first_file)
{
    struct files files;
    char bytes[2][4096];
    open_files(&files, 100003);
    files.run.moves = true;
    CHECK(add(&files).error == 0);
    for (off_t at = HEAD; at < (off_t)(HEAD + 100003 * sizeof(float)); at += sizeof bytes[0]) {
        const ssize_t got = pread(files.run.descriptor[0], bytes[0], sizeof bytes[0], at);
        CHECK(got > 0 && pread(files.run.descriptor[LAYOUT_SUM], bytes[1], sizeof bytes[0], at) == got);
        CHECK(memcmp(bytes[0], bytes[1], (size_t)got) == 0, "at %jd", (intmax_t)at);
    }
    close_files(&files);
}

/* The threads take no signals. Their caller takes those again that it took before. */
TEST(the_callers_signals_are_as_they_were)
{
    struct files files;
    sigset_t before, after;
    open_files(&files, 20000);
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    CHECK(add(&files).error == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &after) == 0);
    for (int number = 1; number < 32; number++)
        CHECK(sigismember(&after, number) == (number == SIGUSR2), "%d", number);
    close_files(&files);
}

/* The second input is in Fortran order: element (i, j) is its element j * rows + i. */
TEST(two_orders_make_the_sum)
{
    enum { ROWS = 301, COLUMNS = 703 };
    static const ssize_t shape[] = {ROWS, COLUMNS}, turned[] = {sizeof(float), ROWS * sizeof(float)};
    const struct layout_view view = {.ndim = 2, .shape = shape, .itemsize = sizeof(float)};
    struct layout_view views[] = {view, view, view};
    views[1].strides = turned;
    struct files files;
    open_files(&files, ROWS * COLUMNS);
    layout_make(&files.run.tiles.layout, 2, shape, views);
    CHECK(add(&files).error == 0);
    float *c = malloc(files.n * sizeof *c);
    size_t wrong = 0;
    CHECK(pread(files.run.descriptor[LAYOUT_SUM], c, files.n * sizeof *c, HEAD) == (ssize_t)(files.n * sizeof *c));
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < COLUMNS; j++)
            wrong += c[i * COLUMNS + j] != (float)(i * COLUMNS + j) + (float)(j * ROWS + i) / 2;
    CHECK(wrong == 0, "%zu wrong", wrong);
    free(c);
    close_files(&files);
}

TEST(the_caller_ends_a_run_wherever_it_is_told)
{
    for (int at = 1; at < 24; at++) {
        struct files files;
        open_files(&files, 400000); /* more stretches than those that threads may have taken by then */
        files.run.tell = tell;
        files.ends_at = at;
        CHECK(add(&files).error == FILES_ENDED, "%d", at);
        close_files(&files);
    }
}

TEST(a_caller_looks_for_signals_at_once_and_again_and_may_end_a_run_by_what_it_finds)
{
    for (int ends = 0; ends < 2; ends++)
        for (int told = 0; told < 2; told++) {
            struct files files;
            open_files(&files, 200000);
            files.run.adder.schedule.simd = NULL; /* no loop of ours: each tile is added by the caller's function */
            files.run.add = add_while_checked;
            files.run.tell = told ? tell : NULL;
            files.ends = ends != 0;
            const struct files_outcome outcome = add(&files);
            CHECK(outcome.error == (ends ? FILES_ENDED : 0) && outcome.operand == (ends ? -1 : 0), "%d", outcome.error);
            CHECK(files.checked >= (ends ? 1 : 2), "%d", files.checked);
            close_files(&files);
        }
}

TEST(an_input_that_is_cut_short_is_named)
{
    for (int cut = 0; cut < LAYOUT_SUM; cut++) {
        struct files files;
        open_files(&files, 200000);
        CHECK(ftruncate(files.run.descriptor[cut], 300000) == 0);
        const struct files_outcome outcome = add(&files);
        CHECK(outcome.error == FILES_CUT_SHORT && outcome.operand == cut, "%d of %d", outcome.error, outcome.operand);
        close_files(&files);
    }
}
