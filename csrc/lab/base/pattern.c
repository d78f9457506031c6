/* The patterns of a memory test, in the host's memory. */
#include "lab/base/pattern.h"

#include "host/threads.h"

enum { BLOCK = 1 << 16 }; /* words that a thread takes at a time */

struct job {
    struct pattern_words words;
    struct pattern_found *found;
};

static void
write_block(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct pattern_words *words = &((const struct job *)context)->words;
    for (size_t i = begin; i < end; i++)
        words->memory[i] = pattern_word(words->pattern, i);
}

static void
check_block(void *context, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct job *job = context;
    for (size_t i = begin; i < end; i++) {
        const uint64_t word = job->words.memory[i];
        if (word == pattern_word(job->words.pattern, i))
            continue;
        const unsigned long long slot = __atomic_fetch_add(&job->found->count, 1, __ATOMIC_RELAXED);
        if (slot < PATTERN_KEPT)
            job->found->wrong[slot] = (struct pattern_wrong){i, word};
    }
}

void
pattern_host(const struct pattern_words *words, int threads, struct pattern_found *found)
{
    struct job job = {*words, found};
    if (found)
        found->count = 0;
    threads_run_all(threads, words->count, BLOCK, found ? check_block : write_block, &job);
}
