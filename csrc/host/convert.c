#include "host/convert.h"

#include <stdint.h>

/* The C types of the dtypes. */
typedef uint8_t BOOL;
typedef int8_t INT8;
typedef int16_t INT16;
typedef int32_t INT32;
typedef int64_t INT64;
typedef uint8_t UINT8;
typedef uint16_t UINT16;
typedef uint32_t UINT32;
typedef uint64_t UINT64;
typedef float FLOAT32;
typedef double FLOAT64;

#define CONVERT_AS(From, To, value)                                                                                    \
    static void From##_to_##To(const void *from, void *to, size_t n)                                                   \
    {                                                                                                                  \
        const From *p = from;                                                                                          \
        To *q = to;                                                                                                    \
        for (size_t i = 0; i < n; i++)                                                                                 \
            q[i] = (To)(value);                                                                                        \
    }

/* `Real` is the type of a complex number's parts. */
#define CONVERT_TO_COMPLEX_AS(From, To, Real, value)                                                                   \
    static void From##_to_##To(const void *from, void *to, size_t n)                                                   \
    {                                                                                                                  \
        const From *p = from;                                                                                          \
        Real *q = to;                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            q[2 * i] = (Real)(value);                                                                                  \
            q[2 * i + 1] = 0;                                                                                          \
        }                                                                                                              \
    }

/* A bool's byte may hold other values than 0 and 1, in views of other memory: as in NumPy's casts, any value but 0
 * becomes 1. */
#define CONVERT(From, To)                        CONVERT_AS(From, To, p[i])
#define CONVERT_TRUTH(From, To)                  CONVERT_AS(From, To, p[i] != 0)
#define CONVERT_TO_COMPLEX(From, To, Real)       CONVERT_TO_COMPLEX_AS(From, To, Real, p[i])
#define CONVERT_TRUTH_TO_COMPLEX(From, To, Real) CONVERT_TO_COMPLEX_AS(From, To, Real, p[i] != 0)

/* These lists define the functions and their table: every conversion that NumPy's promotion of two of these dtypes
 * needs. */
#define TRUTHS(X)                                                                                                      \
    X(BOOL, INT8)                                                                                                      \
    X(BOOL, INT16)                                                                                                     \
    X(BOOL, INT32)                                                                                                     \
    X(BOOL, INT64)                                                                                                     \
    X(BOOL, UINT8)                                                                                                     \
    X(BOOL, UINT16)                                                                                                    \
    X(BOOL, UINT32)                                                                                                    \
    X(BOOL, UINT64)                                                                                                    \
    X(BOOL, FLOAT32)                                                                                                   \
    X(BOOL, FLOAT64)
#define CONVERSIONS(X)                                                                                                 \
    X(INT8, INT16)                                                                                                     \
    X(INT8, INT32)                                                                                                     \
    X(INT8, INT64)                                                                                                     \
    X(INT8, FLOAT32)                                                                                                   \
    X(INT8, FLOAT64)                                                                                                   \
    X(INT16, INT32)                                                                                                    \
    X(INT16, INT64)                                                                                                    \
    X(INT16, FLOAT32)                                                                                                  \
    X(INT16, FLOAT64)                                                                                                  \
    X(INT32, INT64)                                                                                                    \
    X(INT32, FLOAT64)                                                                                                  \
    X(INT64, FLOAT64)                                                                                                  \
    X(UINT8, INT16)                                                                                                    \
    X(UINT8, INT32)                                                                                                    \
    X(UINT8, INT64)                                                                                                    \
    X(UINT8, UINT16)                                                                                                   \
    X(UINT8, UINT32)                                                                                                   \
    X(UINT8, UINT64)                                                                                                   \
    X(UINT8, FLOAT32)                                                                                                  \
    X(UINT8, FLOAT64)                                                                                                  \
    X(UINT16, INT32)                                                                                                   \
    X(UINT16, INT64)                                                                                                   \
    X(UINT16, UINT32)                                                                                                  \
    X(UINT16, UINT64)                                                                                                  \
    X(UINT16, FLOAT32)                                                                                                 \
    X(UINT16, FLOAT64)                                                                                                 \
    X(UINT32, INT64)                                                                                                   \
    X(UINT32, UINT64)                                                                                                  \
    X(UINT32, FLOAT64)                                                                                                 \
    X(UINT64, FLOAT64)                                                                                                 \
    X(FLOAT32, FLOAT64)
#define TRUTHS_TO_COMPLEX(X)                                                                                           \
    X(BOOL, COMPLEX64, float)                                                                                          \
    X(BOOL, COMPLEX128, double)
#define CONVERSIONS_TO_COMPLEX(X)                                                                                      \
    X(INT8, COMPLEX64, float)                                                                                          \
    X(INT16, COMPLEX64, float)                                                                                         \
    X(UINT8, COMPLEX64, float)                                                                                         \
    X(UINT16, COMPLEX64, float)                                                                                        \
    X(FLOAT32, COMPLEX64, float)                                                                                       \
    X(INT8, COMPLEX128, double)                                                                                        \
    X(INT16, COMPLEX128, double)                                                                                       \
    X(INT32, COMPLEX128, double)                                                                                       \
    X(INT64, COMPLEX128, double)                                                                                       \
    X(UINT8, COMPLEX128, double)                                                                                       \
    X(UINT16, COMPLEX128, double)                                                                                      \
    X(UINT32, COMPLEX128, double)                                                                                      \
    X(UINT64, COMPLEX128, double)                                                                                      \
    X(FLOAT32, COMPLEX128, double)                                                                                     \
    X(FLOAT64, COMPLEX128, double)

TRUTHS(CONVERT_TRUTH)
CONVERSIONS(CONVERT)
TRUTHS_TO_COMPLEX(CONVERT_TRUTH_TO_COMPLEX)
CONVERSIONS_TO_COMPLEX(CONVERT_TO_COMPLEX)

static void
COMPLEX64_to_COMPLEX128(const void *from, void *to, size_t n)
{
    FLOAT32_to_FLOAT64(from, to, 2 * n);
}

#define ENTRY(From, To)                  [DTYPE_##From][DTYPE_##To] = From##_to_##To,
#define ENTRY_TO_COMPLEX(From, To, Real) ENTRY(From, To)

static convert_function *const conversions[DTYPE_COUNT][DTYPE_COUNT] = {TRUTHS(ENTRY) CONVERSIONS(
    ENTRY) TRUTHS_TO_COMPLEX(ENTRY_TO_COMPLEX) CONVERSIONS_TO_COMPLEX(ENTRY_TO_COMPLEX) ENTRY(COMPLEX64, COMPLEX128)};

convert_function *
convert_for(enum dtype from, enum dtype to)
{
    return conversions[from][to];
}
