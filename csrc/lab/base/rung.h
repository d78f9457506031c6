/* The ladder: each rung is one way to add, or to work on matrices, callable by name, described by one `struct rung`.
 *
 * Device and matrix rungs are in cuda/lab, a family a file, the others in csrc/lab. csrc/lab/rungs.c has the order of
 * their tables, which are cuda/lab/table.c and the ends of the other files. */
#ifndef VECADD_LAB_BASE_RUNG_H
#define VECADD_LAB_BASE_RUNG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/status.h"
#include "cuda/facts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row names what differs from the defaults: in C from 0; in C++, where the rungs with a kernel are, from the value in
 * OR(), which the rung's family may decide. */
#ifdef __cplusplus
#define OR(value) = value
#else
#define OR(value)
#endif

enum rung_kind { RUNG_HOST, RUNG_DEVICE, RUNG_TRANSFER, RUNG_LATENCY, RUNG_MATRIX };

/* Which lesson a device rung or a matrix rung belongs to. */
enum rung_family {
    FAMILY_NONE,
    FAMILY_KERNELS,   /* how one kernel reaches the memory's speed; float32 and others */
    FAMILY_PRECISION, /* precision.cu: what 16-bit elements bring */
    FAMILY_TRANSPOSE, /* transpose.cu: a matrix that is written across the direction it is read in; float32 */
    FAMILY_SGEMM      /* sgemm.cu: the product of two matrices, where each element is read many times; float32 */
};

enum { PRECISION_COMPONENTS = 1 << COMPONENT_F16 | 1 << COMPONENT_BF16 };

/* What a rung leaves in c. Some founding documents teach with loops that accumulate: for those rungs the caller sets
 * c. */
enum rung_sum {
    SUM_WRITTEN,              /* c = a + b */
    SUM_ADDED,                /* c += a + b */
    SUM_ADDED_BY_EACH_THREAD, /* c += a + b, by each thread of the block */
    SUM_RACED,                /* as each thread's, without atomics: undefined where threads run at once */
    LEFT_COPY,                /* matrix rungs: c = a */
    LEFT_TRANSPOSE,           /* c = a, with rows as columns */
    LEFT_PRODUCT              /* c = a b, the product of matrices */
};

/* The piece of a product of matrices that a block makes; 0 where a rung has none. */
struct rung_tile {
    unsigned rows, columns;
};

/* How the stages of a transfer, the uploads, the kernel and the download, follow each other. */
enum rung_stages {
    STAGES_SERIAL,      /* one after the other: they take their sum */
    STAGES_OVERLAPPING, /* several chunks at once: they take the time of the slowest */
    STAGES_SHARED       /* overlapping, and the processor adds a share of the elements, which crosses no link */
};

/* Which kind of host memory a transfer rung is about. */
enum rung_memory {
    RUNG_MEMORY_PAGEABLE, /* ordinary memory; any other is taken too */
    RUNG_MEMORY_PINNED,   /* page-locked memory; any other is refused */
    RUNG_MEMORY_EITHER    /* both; the rung treats each differently */
};

struct timeline;
struct latency_stages;
struct copies;
struct launches;

/* A whole number that a rung can be run with, beside its block. */
struct rung_param {
    const char *name; /* NULL: no parameter at this index */
    const char *what; /* in one line */
    int least, usual, most;
    const char *const *choices OR(nullptr); /* the names of its values 0 ... most, then NULL; NULL: it is a number */
};

enum { RUNG_PARAMS = 3, RUNG_BLOCK = 256 };

struct rung_call {
    enum component component;
    const void *a, *b;
    void *c;
    size_t n;                    /* components */
    size_t rows, columns, inner; /* matrix rungs, in place of n: a is rows x columns, in C order; where b is multiplied
                                  * by it, a is rows x inner and b inner x columns */
    unsigned block;              /* threads a block; 0: the rung's own */
    int params[RUNG_PARAMS];     /* in the order of the rung's own */
    void *stream;                /* rungs that launch: cudaStream_t on the current device */
    struct kernel_launch *describe; /* rungs that launch: not NULL: gets the launch's shape, and nothing is queued */
    int device;                     /* transfer and latency rungs */

    /* Set by rungs that time only a part of their run: the seconds of that part. NULL: not wanted. */
    double *seconds;
    struct timeline *timeline;     /* transfer rungs: records when each copy and kernel runs; NULL: not wanted */
    struct latency_stages *stages; /* latency rungs: gets the seconds of each stage; NULL: not wanted */
};

struct rung {
    const char *name;
    enum rung_family family OR(FAMILY_KERNELS); /* of device and matrix rungs */
    enum rung_kind kind OR(family >= FAMILY_TRANSPOSE ? RUNG_MATRIX : RUNG_DEVICE);
    const char *after OR(nullptr); /* the rung that it is compared with; NULL: none */
    const char *changes;           /* what this rung changes, in one line, for the table */
    /* Bit 1 << component set for each component that it takes; 0: it takes all. */
    int components OR(family == FAMILY_KERNELS     ? 0
                      : family == FAMILY_PRECISION ? PRECISION_COMPONENTS
                                                   : 1 << COMPONENT_F32);

    /* Device and matrix rungs. */
    bool headline OR(false); /* one of the few that a table of results shows */
    /* What it leaves in c with its usual parameters. */
    enum rung_sum sum OR(family == FAMILY_SGEMM       ? LEFT_PRODUCT
                         : family == FAMILY_TRANSPOSE ? LEFT_TRANSPOSE
                                                      : SUM_WRITTEN);
    /* Bytes that it moves for a float32 element: of a sum 12, or 16 where it reads c too; 0: it depends on the shape.
     */
    unsigned bytes_per_element OR(family == FAMILY_SGEMM ? 0 : family == FAMILY_TRANSPOSE ? 8 : 12);
    unsigned bytes_per_load OR(4); /* a thread's, of float32; of float16 in a precision rung */
    /* The load instruction of its float32 kernel (a precision rung's float16 kernel) on sm_90, as cuobjdump shows it,
     * or its bulk copy instruction; NULL: none of its own. */
    const char *load OR(bytes_per_load == 16  ? "LDG.E.128"
                        : bytes_per_load == 8 ? "LDG.E.64"
                        : bytes_per_load == 2 ? "LDG.E.U16"
                                              : "LDG.E");
    unsigned loads_in_flight OR(2);                          /* a thread's, before the first use */
    unsigned block OR(kind == RUNG_MATRIX ? 0 : RUNG_BLOCK); /* threads a block by default; 0 or 1: not to be chosen */
    unsigned blocks OR(0);                                   /* of its grid; 0: by the number of components */
    unsigned min_cc OR(0);                                   /* compute capability that it needs, 90 for 9.0; 0: any */
    size_t alignment OR(0); /* bytes that a, b and c must be aligned to; 0: the component's own */
    struct rung_param params[RUNG_PARAMS] OR({});
    bool by_name OR(false); /* a sweep of the ladder runs it only where it is named: nothing bounds its time, or it is
                             * no step of the ladder */

    /* Transfer rungs. */
    enum rung_stages stages OR(STAGES_SERIAL);
    enum rung_memory memory OR(RUNG_MEMORY_PAGEABLE);
    bool allocates OR(false); /* its timed part always has an allocation; else a parameter decides, or none does */
    const struct copies *copies OR(nullptr);

    const struct launches *launches OR(nullptr); /* latency rungs */
    struct rung_tile tile OR({});                /* of a product of matrices */

    /* Device and matrix rungs: queue the kernel; 0 or a cudaError_t. */
    int (*launch)(const struct rung_call *call) OR(nullptr);
    /* Host, transfer and latency rungs: add and return when it is done; 0, or -1 with *status set. */
    int (*run)(const struct rung *rung, const struct rung_call *call, struct status *status) OR(nullptr);
};

/* The i-th rung of this build in the ladder's order, NULL past the last. */
const struct rung *rung_at(size_t i);

/* The rung of that name, or NULL. */
const struct rung *rung_named(const char *name);

/* Runs the rung and gives its seconds: a device's or matrix rung's by CUDA events, those that the rung sets itself,
 * because only a part of its run counts, else the host's. Returns 0, or -1 with *status set. */
int rung_time(const struct rung *rung, struct rung_call *call, double *seconds, struct status *status);

bool rung_takes_component(const struct rung *rung, enum component component);

/* Bytes that one load of a device rung's thread takes, for this component. */
unsigned rung_bytes_per_load(const struct rung *rung, enum component component);

/* What the rung leaves in c with these parameters: its parameter `accumulate` decides where it has one, else its row.
 */
enum rung_sum rung_leaves(const struct rung *rung, const int params[RUNG_PARAMS]);

/* Sets the call's parameters to the rung's defaults. */
void rung_usual_params(const struct rung *rung, struct rung_call *call);

#ifdef __cplusplus
}
#endif
#endif
