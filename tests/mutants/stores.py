"""Lines of the additions of Zarr arrays (vecadd/stores)."""

from tests.mutants.mutant import Mutant

SUMS, FAILURES = "tests/stores/test_stores.py", "tests/stores/test_stores_failures.py"
CLUSTER = "tests/stores/test_stores_cluster.py"

STORES = (
    Mutant(
        "the last step of an addition in a folder",
        "vecadd/stores/work.py",
        "        if begun is not None and begun[1] == out and place.renames:\n",
        "        if False:\n",
        FAILURES,
        "killed_in_its_last_step",
    ),
    Mutant(
        "a lock on a folder under way",
        "vecadd/stores/place.py",
        "            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "            pass\n",
        FAILURES,
        "another_addition_writes",
    ),
    Mutant(
        "chunks on the disk before they are finished",
        "vecadd/stores/run.py",
        "                sync_chunks(Path(store.root), list(chunks_in(target, box)))\n",
        "                pass\n",
        FAILURES,
        "before_they_count",
    ),
    Mutant(
        "a record that is whole",
        "vecadd/stores/manifest.py",
        r'rb"(\d+) (\d+)\n"',
        r'rb"(\d+) (\d+)\n?"',
        FAILURES,
        "cut_short",
    ),
    Mutant(
        "fill values that equal others in value alone",
        "vecadd/stores/target.py",
        '{"write_empty_chunks": True}',
        '{"write_empty_chunks": False}',
        SUMS,
        "payloads",
    ),
    Mutant(
        "a run that was begun before",
        "vecadd/stores/run.py",
        "    at = record.reached(store, begin)  #",
        "    at = begin  #",
        CLUSTER,
        "gone_on_from_its_last_piece",
    ),
    Mutant(
        "an attempt that has ended",
        "vecadd/stores/run.py",
        "        if addition.is_over(store):\n",
        "        if False:\n",
        CLUSTER,
        "write_no_more",
    ),
    Mutant(
        "processors for each task",
        "vecadd/_dask_threads.py",
        "    return max(1, int(CPU_COUNT) // tasks)\n",
        "    return int(CPU_COUNT)\n",
        CLUSTER,
        "no_more_threads",
    ),
)
