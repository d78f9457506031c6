/* What all instruction sets share. A level's file (add_avx512.c, ...) defines
 *
 *     vec                       a register full of components of any type
 *     vec_load, vec_store       from and to any address
 *     vec_stream, vec_fence     a non-temporal store to a multiple of sizeof(vec), and the fence that orders it
 *     vec_add_bool ... _f64     an addition for each component but e4m3fn (float8.h), with NumPy's values and flags
 *
 * then includes this file and defines its struct host_simd with HOST_SIMD_FUNCTIONS. With HALF_VECTORS it defines half,
 * half_load, half_store and half_stream too, a register of half the length, and adds halves where it likes: the type of
 * vec_add_f16 tells. */
#ifndef VECADD_HOST_SIMD_H
#define VECADD_HOST_SIMD_H

#include <stdint.h>
#include <string.h>

#include "host/float8.h"
#include "host/simd_level.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Keeps the compiler from reordering stores across it. gcc 12 stores the four 32-byte vectors of an iteration as 1, 3,
 * 0, 2, back and forth between two cache lines: 9.2 us at 2^16 float32, in L2; 0, 1, 2, 3 takes 6.9. */
ALWAYS_INLINE void
in_this_order(void)
{
    __asm__ __volatile__("" ::: "memory");
}

#define VECTOR        vec
#define OF_VECTOR(of) vec_##of
#include "host/simd_loops.h"

#ifdef HALF_VECTORS
#define VECTOR        half
#define OF_VECTOR(of) half_##of
#include "host/simd_loops.h"
#define OF_SAME(add, of) _Generic(add, vec_adder : vec_##of, half_adder : half_##of)
#else
#define OF_SAME(add, of) vec_##of
#endif

/* Adds arrays by the vectors that `add` takes, `store` being one of `store` and `stream`. */
#define ADD_ARRAY(add, store, one, a, b, c, bytes)                                                                     \
    (OF_SAME(add, add_array)(add, OF_SAME(add, store), one, a, b, c, bytes))

#define DEFINE_COMPONENT(COMPONENT, component, bytes, largest)                                                         \
    static void add_##component(const void *a, const void *b, void *c, size_t n)                                       \
    {                                                                                                                  \
        ADD_ARRAY(vec_add_##component, store, false, a, b, c, (bytes)*n);                                              \
    }                                                                                                                  \
    static void add_one_##component(const void *a, const void *b, void *c, size_t n)                                   \
    {                                                                                                                  \
        ADD_ARRAY(vec_add_##component, store, true, a, b, c, (bytes)*n);                                               \
    }                                                                                                                  \
    static void stream_##component(const void *a, const void *b, void *c, size_t n)                                    \
    {                                                                                                                  \
        ADD_ARRAY(vec_add_##component, stream, false, a, b, c, (bytes)*n);                                             \
        vec_fence();                                                                                                   \
    }                                                                                                                  \
    static void stream_one_##component(const void *a, const void *b, void *c, size_t n)                                \
    {                                                                                                                  \
        ADD_ARRAY(vec_add_##component, stream, true, a, b, c, (bytes)*n);                                              \
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
