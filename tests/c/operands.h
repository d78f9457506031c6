/* Operands for kernels, with room around them: what is written there is seen, what is read there too where
 * AddressSanitizer is. */
#ifndef VECADD_OPERANDS_H
#define VECADD_OPERANDS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes)   ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) ((void)0)
#endif

enum { CANARY = 0x5a, MARGIN = 64 };

/* Pinned memory, which kernels reach at the address that the host uses. */
struct memory {
    unsigned char *a, *b, *c, *expected;
    unsigned *flags;
};

static inline unsigned char *
pinned(size_t bytes)
{
    void *memory = NULL;
    CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped) == cudaSuccess);
    if (!memory)
        exit(1);
    return memory;
}

static inline struct memory
memory_open(size_t room)
{
    return (struct memory){pinned(room), pinned(room), pinned(room), calloc(1, room), (unsigned *)pinned(4)};
}

static inline void
memory_close(struct memory *m)
{
    cudaFreeHost(m->a);
    cudaFreeHost(m->b);
    cudaFreeHost(m->c);
    cudaFreeHost(m->flags);
    free(m->expected);
}

/* Under AddressSanitizer a load outside [start, start + bytes) within MARGIN of it stops the test. */
static inline void
fence(const unsigned char *start, size_t bytes)
{
    (void)start, (void)bytes; /* without AddressSanitizer */
    ASAN_POISON_MEMORY_REGION(start - MARGIN, MARGIN);
    ASAN_POISON_MEMORY_REGION(start + bytes, MARGIN);
}

static inline void
unfence(const unsigned char *start, size_t bytes)
{
    (void)start, (void)bytes; /* without AddressSanitizer */
    ASAN_UNPOISON_MEMORY_REGION(start - MARGIN, MARGIN + bytes + MARGIN);
}

static inline bool
all_canaries(const unsigned char *start, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (start[i] != CANARY)
            return false;
    return true;
}

#endif
