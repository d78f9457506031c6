// The C library's allocators as the objects under test call them: one call may be told to find no memory. The linker
// sends them here (--wrap); what the C++ library, Python and NumPy allocate goes past. No lock, because forked children
// allocate too.
#include "double.h"

#include <atomic>
#include <cstddef>

static std::atomic<long> made{0}, until_failure{0};

void
double_fail_allocation(int nth)
{
    made = 0;
    until_failure = nth;
}

long
double_allocations(void)
{
    return made;
}

static bool
fails()
{
    ++made;
    return until_failure > 0 && --until_failure == 0;
}

extern "C" {
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);

void *
__wrap_malloc(size_t bytes)
{
    return fails() ? nullptr : __real_malloc(bytes);
}

void *
__wrap_calloc(size_t count, size_t size)
{
    return fails() ? nullptr : __real_calloc(count, size);
}

void *
__wrap_realloc(void *block, size_t bytes)
{
    return fails() ? nullptr : __real_realloc(block, bytes);
}

void *
__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? nullptr : __real_aligned_alloc(alignment, bytes);
}
}
