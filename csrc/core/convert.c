#include "convert.h"

#include <stdint.h>

/* What the dtypes are to C. Here a bool is the number in its byte, as in NumPy's own casts. */
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

#define CONVERT(From, To)                                                                                              \
    static void From##_to_##To(const void *from, void *to, size_t n)                                                   \
    {                                                                                                                  \
        const From *p = from;                                                                                          \
        To *q = to;                                                                                                    \
        for (size_t i = 0; i < n; i++)                                                                                 \
            q[i] = (To)p[i];                                                                                           \
    }

/* `Real` is what the parts of the complex numbers are. */
#define CONVERT_TO_COMPLEX(From, To, Real)                                                                             \
    static void From##_to_##To(const void *from, void *to, size_t n)                                                   \
    {                                                                                                                  \
        const From *p = from;                                                                                          \
        Real *q = to;                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            q[2 * i] = (Real)p[i];                                                                                     \
            q[2 * i + 1] = 0;                                                                                          \
        }                                                                                                              \
    }

/* One list makes the functions and the table of them: every pair that NumPy's promotion of two of these dtypes asks
 * for. */
#define CONVERSIONS(X)                                                                                                 \
    X(BOOL, INT8)                                                                                                      \
    X(BOOL, INT16)                                                                                                     \
    X(BOOL, INT32)                                                                                                     \
    X(BOOL, INT64)                                                                                                     \
    X(BOOL, UINT8)                                                                                                     \
    X(BOOL, UINT16)                                                                                                    \
    X(BOOL, UINT32)                                                                                                    \
    X(BOOL, UINT64)                                                                                                    \
    X(BOOL, FLOAT32)                                                                                                   \
    X(BOOL, FLOAT64)                                                                                                   \
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
    X(UINT16, FLOAT64) X(UINT32, INT64) X(UINT32, UINT64) X(UINT32, FLOAT64) X(UINT64, FLOAT64) X(FLOAT32, FLOAT64)
#define CONVERSIONS_TO_COMPLEX(X)                                                                                      \
    X(BOOL, COMPLEX64, float)                                                                                          \
    X(INT8, COMPLEX64, float)                                                                                          \
    X(INT16, COMPLEX64, float)                                                                                         \
    X(UINT8, COMPLEX64, float)                                                                                         \
    X(UINT16, COMPLEX64, float)                                                                                        \
    X(FLOAT32, COMPLEX64, float)                                                                                       \
    X(BOOL, COMPLEX128, double)                                                                                        \
    X(INT8, COMPLEX128, double)                                                                                        \
    X(INT16, COMPLEX128, double)                                                                                       \
    X(INT32, COMPLEX128, double)                                                                                       \
    X(INT64, COMPLEX128, double)                                                                                       \
    X(UINT8, COMPLEX128, double)                                                                                       \
    X(UINT16, COMPLEX128, double)                                                                                      \
    X(UINT32, COMPLEX128, double)                                                                                      \
    X(UINT64, COMPLEX128, double) X(FLOAT32, COMPLEX128, double) X(FLOAT64, COMPLEX128, double)

CONVERSIONS(CONVERT)
CONVERSIONS_TO_COMPLEX(CONVERT_TO_COMPLEX)

static void
COMPLEX64_to_COMPLEX128(const void *from, void *to, size_t n)
{
    FLOAT32_to_FLOAT64(from, to, 2 * n);
}

#define ENTRY(From, To)                  [DTYPE_##From][DTYPE_##To] = From##_to_##To,
#define ENTRY_TO_COMPLEX(From, To, Real) ENTRY(From, To)

static convert_function *const conversions[DTYPE_COUNT][DTYPE_COUNT] = {
    CONVERSIONS(ENTRY) CONVERSIONS_TO_COMPLEX(ENTRY_TO_COMPLEX) ENTRY(COMPLEX64, COMPLEX128)};

convert_function *
convert_for(enum dtype from, enum dtype to)
{
    return conversions[from][to];
}
