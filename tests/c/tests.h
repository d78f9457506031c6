/* A program of tests: each is TEST(name) { ... }, which CHECKs. main runs them in the file's order, each in a process
 * of its own. */
#ifndef VECADD_TESTS_H
#define VECADD_TESTS_H

#include "check.h"

static struct {
    void (*run)(void);
    const char *name;
} check_tests[64];
static size_t check_test_count;

/* Begins a test, which is then known before main begins: the constructors of a file are called in its order. */
#define TEST(name)                                                                                                     \
    static void test_##name(void);                                                                                     \
    static void __attribute__((constructor)) add_test_##name(void)                                                     \
    {                                                                                                                  \
        check_add_test(test_##name, #name);                                                                            \
    }                                                                                                                  \
    static void test_##name(void)

static inline void
check_add_test(void (*run)(void), const char *name)
{
    if (check_test_count == sizeof check_tests / sizeof *check_tests)
        abort();
    check_tests[check_test_count].run = run;
    check_tests[check_test_count++].name = name;
}

int
main(void)
{
    for (size_t i = 0; i < check_test_count; i++)
        check_run(check_tests[i].run, check_tests[i].name);
    return check_report();
}

#endif
