/* The loops that all instruction sets share. A level's file (add_avx512.c, ...) defines
 *
 *     vec                       a register full of components of any type
 *     vec_load, vec_store       from and to any address
 *     vec_stream, vec_fence     a non-temporal store to a multiple of sizeof(vec), and the fence that orders it
 *     vec_add_bool ... _f64     an addition for each component but e4m3fn (float8.h), with NumPy's values and flags
 *
 * then includes this file and defines its struct host_simd with HOST_SIMD_FUNCTIONS. */
#ifndef VECADD_HOST_SIMD_H
#define VECADD_HOST_SIMD_H

#include <stdint.h>
#include <string.h>

#include "host/float8.h"
#include "host/simd_level.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef vec vec_add_function(vec a, vec b);
typedef void vec_store_function(void *target, vec value);

/* Adds less than one vector: the components beyond the end are zeros, whose sums raise no flag. */
static inline void
add_short(vec_add_function *add, const char *a, const char *b, char *c, size_t bytes)
{
    vec x = {0}, y = {0};
    memcpy(&x, a, bytes);
    memcpy(&y, b, bytes);
    x = add(x, y);
    memcpy(c, &x, bytes);
}

/* Keeps the compiler from reordering stores across it. gcc 12 stores the four 32-byte vectors of an iteration as 1, 3,
 * 0, 2, back and forth between two cache lines: 9.2 us at 2^16 float32, in L2; 0, 1, 2, 3 takes 6.9. */
ALWAYS_INLINE void
in_this_order(void)
{
    __asm__ __volatile__("" ::: "memory");
}

/* Adds one vector or more. The loop's stores are aligned; the array's first and last vector overlap them. These two
 * sums are computed before the loop and stored after it, so that c may be a or b. Four vectors an iteration keep enough
 * loads in flight; eight gained nothing. `one`, a constant: b is one element, repeated; the aligned vectors begin
 * within it where it has two components. */
ALWAYS_INLINE void
add_vectors(vec_add_function *add, vec_store_function *store, bool one, const char *a, const char *b, char *c,
            size_t bytes)
{
    const size_t step = sizeof(vec), last = bytes - step;
    const vec head = add(vec_load(a), vec_load(b));
    const vec tail = add(vec_load(a + last), vec_load(one ? b : b + last));
    size_t i = step - (uintptr_t)c % step;
    const vec repeated = vec_load(one ? b + i % LONGEST_ELEMENT : b);
#define OF_B(at) (one ? repeated : vec_load(b + (at)))

    for (; i + 3 * step <= last; i += 4 * step) {
        const vec v0 = add(vec_load(a + i), OF_B(i));
        const vec v1 = add(vec_load(a + i + step), OF_B(i + step));
        const vec v2 = add(vec_load(a + i + 2 * step), OF_B(i + 2 * step));
        const vec v3 = add(vec_load(a + i + 3 * step), OF_B(i + 3 * step));
        store(c + i, v0);
        in_this_order();
        store(c + i + step, v1);
        in_this_order();
        store(c + i + 2 * step, v2);
        in_this_order();
        store(c + i + 3 * step, v3);
    }
    for (; i < last; i += step)
        store(c + i, add(vec_load(a + i), OF_B(i)));
#undef OF_B
    vec_store(c, head);
    vec_store(c + last, tail);
}

ALWAYS_INLINE void
add_array(vec_add_function *add, vec_store_function *store, bool one, const void *a, const void *b, void *c,
          size_t bytes)
{
    if (bytes < sizeof(vec))
        add_short(add, a, b, c, bytes);
    else
        add_vectors(add, store, one, a, b, c, bytes);
}

#define DEFINE_COMPONENT(COMPONENT, component, bytes, largest)                                                         \
    static void add_##component(const void *a, const void *b, void *c, size_t n)                                       \
    {                                                                                                                  \
        add_array(vec_add_##component, vec_store, false, a, b, c, (bytes)*n);                                          \
    }                                                                                                                  \
    static void add_one_##component(const void *a, const void *b, void *c, size_t n)                                   \
    {                                                                                                                  \
        add_array(vec_add_##component, vec_store, true, a, b, c, (bytes)*n);                                           \
    }                                                                                                                  \
    static void stream_##component(const void *a, const void *b, void *c, size_t n)                                    \
    {                                                                                                                  \
        add_array(vec_add_##component, vec_stream, false, a, b, c, (bytes)*n);                                         \
        vec_fence();                                                                                                   \
    }                                                                                                                  \
    static void stream_one_##component(const void *a, const void *b, void *c, size_t n)                                \
    {                                                                                                                  \
        add_array(vec_add_##component, vec_stream, true, a, b, c, (bytes)*n);                                          \
        vec_fence();                                                                                                   \
    }

EACH_COMPONENT(DEFINE_COMPONENT)

#define ADD_ROW(ID, name, ...)        [COMPONENT_##ID] = add_##name,
#define STREAM_ROW(ID, name, ...)     [COMPONENT_##ID] = stream_##name,
#define ADD_ONE_ROW(ID, name, ...)    [COMPONENT_##ID] = add_one_##name,
#define STREAM_ONE_ROW(ID, name, ...) [COMPONENT_##ID] = stream_one_##name,
#define HOST_SIMD_FUNCTIONS                                                                                            \
    .add = {EACH_COMPONENT(ADD_ROW)}, .stream = {EACH_COMPONENT(STREAM_ROW)},                                          \
    .add_one = {EACH_COMPONENT(ADD_ONE_ROW)}, .stream_one = {EACH_COMPONENT(STREAM_ONE_ROW)}

#endif
