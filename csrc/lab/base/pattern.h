/* What a memory test writes into memory and looks for again: each 64-bit word follows from the pattern and from the
 * word's place. Kernels and host code share it. */
#ifndef VECADD_LAB_BASE_PATTERN_H
#define VECADD_LAB_BASE_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PATTERN_ON_BOTH __host__ __device__
#else
#define PATTERN_ON_BOTH
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum pattern_kind {
    PATTERN_ADDRESS, /* the word's place: two addresses that lead to one cell show */
    PATTERN_INVERSE, /* its complement: after both patterns each bit has been 0 and 1 */
    PATTERN_ONE,     /* one bit set, another one in the next word and with the next seed */
    PATTERN_ZERO,    /* one bit clear */
    PATTERN_RANDOM,  /* a hash of the word's place and the seed */
    PATTERN_KINDS
};

struct pattern {
    enum pattern_kind kind;
    uint64_t seed;
    uint64_t first; /* the place of the first word */
};

enum { PATTERN_KEPT = 64 };

/* How many words were wrong, and some of them: all up to PATTERN_KEPT, in no order. */
struct pattern_found {
    unsigned long long count;
    struct pattern_wrong {
        uint64_t index, found; /* of the word, counted from the first */
    } wrong[PATTERN_KEPT];
};

/* The word at `index` from the first. */
PATTERN_ON_BOTH static inline uint64_t
pattern_word(struct pattern pattern, uint64_t index)
{
    const uint64_t place = pattern.first + index, bit = UINT64_C(1) << (place + pattern.seed) % 64;
    uint64_t mixed = place + (pattern.seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    switch (pattern.kind) {
    case PATTERN_ADDRESS:
        return place;
    case PATTERN_INVERSE:
        return ~place;
    case PATTERN_ONE:
        return bit;
    case PATTERN_ZERO:
        return ~bit;
    case PATTERN_RANDOM:
    case PATTERN_KINDS:
        break;
    }
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9); /* splitmix64 */
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

/* Words of memory that a pattern is written into or looked for in. */
struct pattern_words {
    uint64_t *memory;
    size_t count;
    struct pattern pattern;
};

/* Writes host memory where `found` is NULL; else only looks it through. On up to `threads` threads. */
void pattern_host(const struct pattern_words *words, int threads, struct pattern_found *found);

#ifdef __cplusplus
}
#endif
#endif
