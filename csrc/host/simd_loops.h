/* The loops over arrays, for one type of vector: simd_body.h includes this file for each, with VECTOR, the type, and
 * OF_VECTOR(of), which makes the names of its functions. */
typedef VECTOR OF_VECTOR(unaligned) __attribute__((aligned(1), may_alias));
typedef VECTOR (*OF_VECTOR(adder))(VECTOR a, VECTOR b);
typedef void (*OF_VECTOR(storer))(void *target, VECTOR value);

static inline VECTOR
OF_VECTOR(load)(const void *source)
{
    return *(const OF_VECTOR(unaligned) *)source;
}

static inline void
OF_VECTOR(store)(void *target, VECTOR value)
{
    *(OF_VECTOR(unaligned) *)target = value;
}

/* Adds less than one vector: the components beyond the end are zeros, whose sums raise no flag. */
static inline void
OF_VECTOR(add_short)(OF_VECTOR(adder) add, const char *a, const char *b, char *c, size_t bytes)
{
    VECTOR x = {0}, y = {0};
    memcpy(&x, a, bytes);
    memcpy(&y, b, bytes);
    x = add(x, y);
    memcpy(c, &x, bytes);
}

/* Adds one vector or more. The loop's stores are aligned; the array's first and last vector overlap them. These two
 * sums are computed before the loop and stored after it, so that c may be a or b. Four vectors an iteration keep enough
 * loads in flight; eight gained nothing. `one`, a constant: b is one element, repeated; the aligned vectors begin
 * within it where it has two components. */
ALWAYS_INLINE void
OF_VECTOR(add_vectors)(OF_VECTOR(adder) add, OF_VECTOR(storer) store, bool one, const char *a, const char *b, char *c,
                       size_t bytes)
{
    const size_t step = sizeof(VECTOR), last = bytes - step;
    const VECTOR head = add(OF_VECTOR(load)(a), OF_VECTOR(load)(b));
    const VECTOR tail = add(OF_VECTOR(load)(a + last), OF_VECTOR(load)(one ? b : b + last));
    size_t i = step - (uintptr_t)c % step;
    const VECTOR repeated = OF_VECTOR(load)(one ? b + i % LONGEST_ELEMENT : b);
#define OF_B(at) (one ? repeated : OF_VECTOR(load)(b + (at)))

    for (; i + 3 * step <= last; i += 4 * step) {
        const VECTOR v0 = add(OF_VECTOR(load)(a + i), OF_B(i));
        const VECTOR v1 = add(OF_VECTOR(load)(a + i + step), OF_B(i + step));
        const VECTOR v2 = add(OF_VECTOR(load)(a + i + 2 * step), OF_B(i + 2 * step));
        const VECTOR v3 = add(OF_VECTOR(load)(a + i + 3 * step), OF_B(i + 3 * step));
        store(c + i, v0);
        in_this_order();
        store(c + i + step, v1);
        in_this_order();
        store(c + i + 2 * step, v2);
        in_this_order();
        store(c + i + 3 * step, v3);
    }
    for (; i < last; i += step)
        store(c + i, add(OF_VECTOR(load)(a + i), OF_B(i)));
#undef OF_B
    OF_VECTOR(store)(c, head);
    OF_VECTOR(store)(c + last, tail);
}

ALWAYS_INLINE void
OF_VECTOR(add_array)(OF_VECTOR(adder) add, OF_VECTOR(storer) store, bool one, const void *a, const void *b, void *c,
                     size_t bytes)
{
    if (bytes < sizeof(VECTOR))
        OF_VECTOR(add_short)(add, a, b, c, bytes);
    else
        OF_VECTOR(add_vectors)(add, store, one, a, b, c, bytes);
}

#undef VECTOR
#undef OF_VECTOR
