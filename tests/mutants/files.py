"""Lines of the additions of files (csrc/files, csrc/py/files)."""

from tests.mutants.mutant import Mutant

FAILURES, THREADS = "tests/add/test_files_failures.py", "tests/add/test_files_threads.py"

FILES = (
    Mutant(
        "an input whose neighbours are not the sum's",
        "csrc/files/tiles.c",
        "            if (axes[i] < axes[i - 1])\n",
        "            if (false)\n",
        "tests/add/test_files.py",
        "read_and_written_in_runs",
    ),
    Mutant(
        "an input that ends meanwhile",
        "csrc/files/run.c",
        "            return FILES_CUT_SHORT;\n",
        "            return 0;\n",
        FAILURES,
        "shrinks_meanwhile",
    ),
    Mutant(
        "the rest of a short write",
        "csrc/files/run.c",
        "            moving->memory += put;\n            at += put;\n            bytes -= (size_t)put;\n",
        "            bytes = 0;\n",
        FAILURES,
        "gone_on_from",
    ),
    Mutant(
        "floating-point flags of tiles",
        "csrc/files/run.c",
        "        atomic_fetch_or_explicit(&job->flags, flags, memory_order_relaxed);\n",
        "        (void)job;\n",
        THREADS,
        "is_raised",
    ),
    Mutant(
        "an interpreter that is gone",
        "csrc/py/files/add_files.c",
        "    if (!Py_IsInitialized())\n        return -1;\n",
        "",
        THREADS,
        "interpreter_that_is_gone",
    ),
    Mutant(
        "the last rows of a block",
        "csrc/files/add_tile.c",
        "smaller(ROWS, height - row)",
        "ROWS",
        "tests/add/test_files.py",
        "added_in_blocks",
    ),
    Mutant(
        "a look at the caller's wishes",
        "csrc/files/run.c",
        "    if (atomic_load_explicit(run->stop, memory_order_relaxed))\n",
        "    if (false)\n",
        "tests/add/test_files_interrupts.py",
        "tells_of_no_progress",
    ),
)
