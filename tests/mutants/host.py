"""Lines of the host adders, their threads and what they stand on (csrc/host, csrc/base)."""

from tests.mutants.mutant import Mutant

HOST = (
    Mutant(
        "one complex number where a vector begins within it",
        "csrc/host/simd.h",
        "one ? b + i % LONGEST_ELEMENT : b",
        "b",
        "test_host",
    ),
    Mutant(
        "fork handler",
        "csrc/base/runtime.c",
        "pthread_atfork(NULL, NULL, in_forked_child);",
        "(void)in_forked_child;",
        "test_threads",
    ),
    Mutant(
        "floating-point control of the workers",
        "csrc/host/threads.c",
        "        fpenv_set(pool->control);\n",
        "",
        "test_threads",
    ),
    Mutant(
        "float16 to nearest by AVX2",
        "csrc/host/add_avx2.c",
        "_MM_FROUND_TO_NEAREST_INT",
        "_MM_FROUND_CUR_DIRECTION",
        "test_host_rounding",
    ),
    Mutant(
        "float16 to nearest by AVX-512",
        "csrc/host/add_avx512.c",
        "_MM_FROUND_TO_NEAREST_INT",
        "_MM_FROUND_CUR_DIRECTION",
        "test_host_rounding",
    ),
    Mutant(
        "a caller that a signal wakes",
        "csrc/host/threads.c",
        "    while (atomic_load(&worker->inside) == (number | AWAITED))",
        "    if (atomic_load(&worker->inside) == (number | AWAITED))",
        "test_wakes",
    ),
    Mutant(
        "a worker that sleeps",
        "csrc/host/threads.c",
        "    atomic_fetch_sub(&worker->pool->awake, 1);\n",
        "",
        "test_wakes",
    ),
    Mutant(
        "one call that was disturbed",
        "csrc/host/ways.c",
        "smaller((sample - now) / PART, now / (samples < SETTLED ? PART : MOST))",
        "((sample - now) / PART)",
        "test_host_ways",
    ),
    Mutant(
        "a way that is not possible",
        "csrc/host/ways.c",
        "if (ns[way] > 0 && ns[way] <= CLOSE * ns[best]",
        "if (ns[way] <= CLOSE * ns[best]",
        "test_host_ways",
    ),
    Mutant(
        "zeros in a block that was used",
        "csrc/host/output_pool.c",
        "    *zeros = false;\n",
        "    *zeros = true;\n",
        "test_host_output_pool",
    ),
    Mutant(
        "kept memory that no sum uses",
        "csrc/host/output_pool.c",
        " || (pool.oldest && pool.oldest->since < since)",
        "",
        "test_output_pool_age",
    ),
    Mutant(
        "pages of a block that leaves others in its region",
        "csrc/host/output_pool.c",
        "    if (alone)\n",
        "    if (false)\n",
        "test_output_regions",
    ),
    Mutant(
        "a region that goes while the pool still cuts from it",
        "csrc/host/output_pool.c",
        "        pool.region = NULL;\n}",
        "        (void)0;\n}",
        "test_output_regions",
    ),
    Mutant(
        "the pool's lock in a forked child",
        "csrc/host/output_pool.c",
        "    pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;\n    if (whole)",
        "    if (whole)",
        "test_host_output_pool",
    ),
)
