/* The macros of all C tests, those of kernels among them. A test is a function that CHECKs; main RUNs each in
 * a process of its own, so that each begins with nothing started, and returns check_report(). A test that runs longer
 * than VECADD_CHECK_SECONDS fails and is ended; without that variable, for example in a debugger, a test may run for
 * ever. Processes that a test leaves running end with it. */
#ifndef VECADD_CHECK_H
#define VECADD_CHECK_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Shared with the tests' processes. Counted by the compiler's own atomics: C and C++ differ in theirs. */
struct check_counts {
    long passed, failed;
};

static inline struct check_counts *
check_counts(void)
{
    static struct check_counts *counts;
    if (!counts) {
        void *shared = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
            abort();
        counts = (struct check_counts *)shared;
    }
    return counts;
}

/* Counts the condition, and prints it with a printf-style note if it is false. */
#define CHECK(condition, ...) check_that((condition), __FILE__, __LINE__, #condition, " " __VA_ARGS__)
#define RUN(test)             check_run(test, #test)

static inline void __attribute__((format(printf, 5, 6)))
check_that(bool is_true, const char *file, int line, const char *condition, const char *note, ...)
{
    if (is_true) {
        __atomic_fetch_add(&check_counts()->passed, 1, __ATOMIC_RELAXED);
        return;
    }
    va_list arguments;
    va_start(arguments, note);
    fprintf(stderr, "%s:%d: %s ", file, line, condition);
    vfprintf(stderr, note, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    __atomic_fetch_add(&check_counts()->failed, 1, __ATOMIC_RELAXED);
}

static inline void
check_run(void (*test)(void), const char *name)
{
    struct check_counts *counts = check_counts();
    const char *limit = getenv("VECADD_CHECK_SECONDS");
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        if (limit)
            alarm((unsigned)atoi(limit));
        test();
        exit(0);
    }
    int how = -1;
    if (child < 0 || waitpid(child, &how, 0) != child || how != 0) {
        if (limit && WIFSIGNALED(how) && WTERMSIG(how) == SIGALRM)
            fprintf(stderr, "%s was still running after %s s\n", name, limit);
        else
            fprintf(stderr, "%s ended with %#x\n", name, (unsigned)how);
        __atomic_fetch_add(&counts->failed, 1, __ATOMIC_RELAXED);
    }
    if (child > 0)
        kill(-child, SIGKILL);
}

/* main's return value. No check at all is a failure too. */
static inline int
check_report(void)
{
    const struct check_counts *counts = check_counts();
    const long passed = __atomic_load_n(&counts->passed, __ATOMIC_RELAXED),
               failed = __atomic_load_n(&counts->failed, __ATOMIC_RELAXED);
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0 || passed == 0;
}

#endif
