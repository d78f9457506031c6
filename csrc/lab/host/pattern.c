/* The patterns of a memory test, in the host's memory. */
#include "lab/base/pattern.h"

#include "host/threads.h"

enum { BLOCK = 1 << 16 }; /* words that a thread takes at a time */

struct job {
    const uint64_t *memory;
    struct pattern pattern;
    struct pattern_found *found;
};

struct write_job {
    uint64_t *memory;
    struct pattern pattern;
};

static void
write_block(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct write_job *job = context;
    for (size_t i = begin; i < end; i++)
        job->memory[i] = pattern_word(job->pattern, i);
}

static void
check_block(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct job *job = context;
    struct pattern_found *found = job->found;
    for (size_t i = begin; i < end; i++) {
        const uint64_t word = job->memory[i];
        if (word == pattern_word(job->pattern, i))
            continue;
        const unsigned long long slot = __atomic_fetch_add(&found->count, 1, __ATOMIC_RELAXED);
        if (slot < PATTERN_KEPT)
            found->wrong[slot] = (struct pattern_wrong){i, word};
    }
}

void
pattern_host_write(uint64_t *memory, size_t words, struct pattern pattern, int threads)
{
    struct write_job job = {memory, pattern};
    threads_run_all(threads, words, BLOCK, write_block, &job);
}

void
pattern_host_check(const uint64_t *memory, size_t words, struct pattern pattern, int threads,
                   struct pattern_found *found)
{
    struct job job = {memory, pattern, found};
    found->count = 0;
    threads_run_all(threads, words, BLOCK, check_block, &job);
}
