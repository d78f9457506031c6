/* Files that are added: each way of their bytes, in threads, against a sum that is made here. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "files/move.h"
#include "files/run.h"
#include "host/add.h"

enum { HEAD = 128, WINDOW = 2 * FILE_PAGE, THREADS = 3 };

static const char *const ways[WAY_COUNT] = {"cache", "direct", "mapped"};

/* Three files of n float32 behind a head: a[i] = i, b[i] = i / 2, and room for the sum. */
struct files {
    size_t n;
    struct files_run run;
    size_t told;
    int ends_at; /* of the calls of tell; 0: none */
    bool exits;  /* the thread ends there, and not the run */
    char *memory;
};

static int
tell(void *context, size_t done, unsigned flags)
{
    struct files *files = context;
    CHECK(done >= files->told && done <= files->n && !flags, "%zu after %zu of %zu", done, files->told, files->n);
    files->told = done;
    if (!files->ends_at || --files->ends_at > 0)
        return 0;
    if (files->exits)
        pthread_exit(NULL);
    return -1;
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
        fsync(descriptor);
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
        files->run.descriptor[k] = descriptor;
        files->run.offset[k] = HEAD;
        files->run.tiles.itemsize[k] = sizeof(float);
        files->run.adder.dtype[k] = DTYPE_FLOAT32;
    }
    free(x);
    files->run.adder.simd = host_simd_chosen(&status);
    layout_make(&files->run.tiles.layout, 1, shape, views);
    files->run.window = WINDOW;
    files->run.threads = THREADS;
    files->run.synced = true;
    files->run.add = no_other_add;
    files->run.tell = tell;
    files->run.context = files;
}

static struct files_outcome
add(struct files *files)
{
    struct files_outcome outcome;
    files_prepare(&files->run);
    char *memory = malloc(files->run.memory);
    files_run(&files->run, memory, &outcome);
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
check_sum(const struct files *files, const char *how)
{
    float *c = malloc(files->n * sizeof *c);
    size_t wrong = 0;
    CHECK(pread(files->run.descriptor[LAYOUT_SUM], c, files->n * sizeof *c, HEAD) == (ssize_t)(files->n * sizeof *c));
    for (size_t i = 0; i < files->n; i++)
        wrong += c[i] != (float)i + (float)i / 2;
    CHECK(wrong == 0, "%zu elements by %s: %zu wrong", files->n, how, wrong);
    free(c);
}

static void
each_way_makes_the_sum(void)
{
    static const size_t sizes[] = {1, 2047, 2048, 16352, 16353, 300001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int way = 0; way < WAY_COUNT; way++)
            for (int in_turn = 0; in_turn < 2; in_turn++) {
                struct files files;
                open_files(&files, sizes[i]);
                files.run.way = (enum way)way;
                files.run.in_turn = in_turn;
                const struct files_outcome outcome = add(&files);
                CHECK(outcome.error == 0 && outcome.way == WAY_COUNT, "%s: %d", ways[way], outcome.error);
                CHECK(files.told == sizes[i]);
                check_sum(&files, ways[way]);
                close_files(&files);
            }
}

static void
ways_that_are_compared_make_the_sum_together(void)
{
    for (int other = WAY_DIRECT; other < WAY_COUNT; other++) {
        struct files files;
        open_files(&files, 1000003);
        files.run.other = (enum way)other;
        files.run.phase = 1;
        const struct files_outcome outcome = add(&files);
        CHECK(outcome.error == 0 && (outcome.way == WAY_CACHE || (int)outcome.way == other), "%d", (int)outcome.way);
        check_sum(&files, ways[other]);
        close_files(&files);
    }
}

/* The threads take no signals. Their caller takes those again that it took before. */
static void
the_callers_signals_are_as_they_were(void)
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

/* The second input lies in Fortran order: element (i, j) is its element j * rows + i. */
static void
two_orders_make_the_sum(void)
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

static void
the_caller_ends_a_run_wherever_it_is_told(void)
{
    for (int at = 1; at < 12; at++) {
        struct files files;
        open_files(&files, 200000);
        files.run.in_turn = true;
        files.run.other = WAY_DIRECT;
        files.run.phase = 1;
        files.ends_at = at;
        CHECK(add(&files).error == FILES_ENDED);
        close_files(&files);
    }
}

static void *
add_in_a_thread(void *argument)
{
    struct files *files = argument;
    struct files_outcome outcome;
    files_run(&files->run, files->memory, &outcome);
    return files;
}

/* The threads of this process that add files. */
static int
adders(void)
{
    int found = 0;
    char name[64];
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        snprintf(name, sizeof name, "/proc/self/task/%.20s/comm", task->d_name);
        FILE *file = fopen(name, "r");
        if (file && fgets(name, sizeof name, file))
            found += strcmp(name, "vecadd-files\n") == 0;
        if (file)
            fclose(file);
    }
    closedir(tasks);
    return found;
}

/* As Python ends one that asks for the GIL while the interpreter finalises. What the threads share lay on its stack. */
static void
a_callers_thread_that_ends_has_ended_the_others(void)
{
    for (int at = 1; at < 12; at++) {
        struct files files;
        pthread_t caller;
        void *returned = NULL;
        open_files(&files, 200000);
        files.run.in_turn = true;
        files.run.other = WAY_DIRECT;
        files.run.phase = 1;
        files.ends_at = at;
        files.exits = true;
        files_prepare(&files.run);
        files.memory = malloc(files.run.memory);
        CHECK(pthread_create(&caller, NULL, add_in_a_thread, &files) == 0);
        pthread_join(caller, &returned);
        CHECK(returned == NULL);
        for (int wait = 0; adders() > 0 && wait < 1000; wait++) /* the kernel lists a joined thread a moment longer */
            usleep(1000);
        CHECK(adders() == 0, "%d at %d", adders(), at);
        free(files.memory);
        close_files(&files);
    }
}

static void
an_input_that_is_cut_short_is_named(void)
{
    for (int cut = 0; cut < LAYOUT_SUM; cut++)
        for (int way = 0; way < WAY_COUNT; way++) {
            struct files files;
            open_files(&files, 200000);
            files.run.way = (enum way)way;
            CHECK(ftruncate(files.run.descriptor[cut], 300000) == 0);
            CHECK(add(&files).error == FILES_CUT_SHORT - cut, "%s", ways[way]);
            close_files(&files);
        }
}

static void
a_file_that_cannot_be_written_is_an_error(void)
{
    struct files files;
    open_files(&files, 200000);
    close(files.run.descriptor[LAYOUT_SUM]);
    files.run.descriptor[LAYOUT_SUM] = open("/dev/full", O_RDWR);
    CHECK(add(&files).error == ENOSPC);
    close_files(&files);
}

int
main(void)
{
    RUN(each_way_makes_the_sum);
    RUN(ways_that_are_compared_make_the_sum_together);
    RUN(the_callers_signals_are_as_they_were);
    RUN(two_orders_make_the_sum);
    RUN(the_caller_ends_a_run_wherever_it_is_told);
    RUN(a_callers_thread_that_ends_has_ended_the_others);
    RUN(an_input_that_is_cut_short_is_named);
    RUN(a_file_that_cannot_be_written_is_an_error);
    return check_report();
}
