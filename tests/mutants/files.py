"""Lines of the additions of files (csrc/files, csrc/py/files)."""

from tests.mutants.mutant import Mutant

FAILURES, WAYS = "tests/add/test_files_failures.py", "tests/add/test_files_ways.py"
THREADS = "tests/add/test_files_threads.py"

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
        "csrc/files/move.c",
        "            return FILE_CUT_SHORT;\n",
        "            return 0;\n",
        FAILURES,
        "shrinks_meanwhile",
    ),
    Mutant(
        "the rest of a short write",
        "csrc/files/move.c",
        "            from += put;\n            at += put;\n            bytes -= (size_t)put;\n",
        "            bytes = 0;\n",
        FAILURES,
        "gone_on_from",
    ),
    Mutant(
        "whole pages for runs that stand one behind the other",
        "csrc/files/run.c",
        "run->tiles.layout.ndim == 1 ? way : WAY_CACHE;",
        "way;",
        WAYS,
        "spoil_no_other",
    ),
    Mutant(
        "bytes that the page cache has",
        "csrc/files/move.c",
        " && is_missing(file, bytes, at)",
        "",
        WAYS,
        "page_cache_lacks",
    ),
    Mutant(
        "a way that was not the quicker one",
        "csrc/files/run.c",
        "quicker = quicker && other < GAIN * cache;",
        "quicker = quicker || other < GAIN * cache;",
        WAYS,
        "quicker_way",
    ),
    Mutant(
        "space before pages are mapped",
        "csrc/files/stretch.c",
        "int error = posix_fallocate(sum, place, bytes); /* so",
        "int error = 0; /* so",
        FAILURES,
        "memory_that_fills",
    ),
    Mutant(
        "floating-point flags of tiles",
        "csrc/files/stretch.c",
        "        atomic_fetch_or_explicit(&stretches->flags, flags, memory_order_relaxed);\n",
        "        (void)stretches;\n",
        THREADS,
        "is_raised",
    ),
    Mutant(
        "one warning a file",
        "csrc/py/files/add_files.c",
        "flags & ~call->given;",
        "flags;",
        THREADS,
        "warned_of_once",
    ),
    Mutant(
        "threads that wait for no one",
        "csrc/py/files/add_files.c",
        "run->in_turn = call.tell != NULL;",
        "run->in_turn = true;",
        THREADS,
        "keeps_the_gil",
    ),
    Mutant(
        "the last rows of a block",
        "csrc/files/add_turned.c",
        "smaller(ROWS, height - row)",
        "ROWS",
        "tests/add/test_files.py",
        "added_in_blocks",
    ),
    Mutant(
        "a look at the caller's wishes",
        "csrc/py/files/add_files.c",
        "PyObject *result = PyObject_CallNoArgs(call->check);",
        "PyObject *result = Py_NewRef(Py_None);",
        "tests/add/test_files_interrupts.py",
        "tells_of_no_progress",
    ),
)
