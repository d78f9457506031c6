"""Lines of the additions of Zarr arrays (vecadd/_zarr.py) and of Dask's collections."""

from tests.mutants.mutant import Mutant

CODE = "vecadd/_zarr.py"
SUMS, FAILURES = "tests/stores/test_stores.py", "tests/stores/test_stores_failures.py"
REFUSALS, CLUSTER = "tests/stores/test_stores_refusals.py", "tests/stores/test_stores_cluster.py"

STORES = (
    Mutant(
        "an array that is replaced at one moment",
        CODE,
        "            exchange(working, path)\n",
        "            shutil.rmtree(path)\n            working.rename(path)\n",
        "tests/stores/test_stores_sequences.py",
    ),
    Mutant(
        "chunks on the disk before the sum has its name",
        CODE,
        "            _sync_chunks(store.root, total, box)\n",
        "            pass\n",
        FAILURES,
        "all_is_on_the_disk",
    ),
    Mutant(
        "an addition that has ended",
        CODE,
        "        if not _is_under_way(watched, work.addition):\n",
        "        if False:\n",
        CLUSTER,
        "writes_no_more",
    ),
    Mutant(
        "fill values that equal others in value alone",
        CODE,
        '{"write_empty_chunks": True}',
        '{"write_empty_chunks": False}',
        SUMS,
        "payloads",
    ),
    Mutant(
        "codecs within shards",
        CODE,
        "            yield from _names_of(codec.codecs)\n",
        "            pass\n",
        REFUSALS,
        "may_lose_bits",
    ),
    Mutant(
        "a store object, of which a worker has a copy",
        CODE,
        'scheduler="threads" if here else None',
        "scheduler=None",
        CLUSTER,
        "store_object",
    ),
    Mutant(
        "processors for each task",
        "vecadd/dask.py",
        "    return max(1, int(CPU_COUNT) // tasks)\n",
        "    return int(CPU_COUNT)\n",
        "tests/interop/test_dask.py",
        "counts_the_tasks",
    ),
)
