"""Zarr arrays that are added by vecadd, a loop with NumPy, dask.array and cubed: time, peak memory of a worker, tasks.

    python -m benchmarks.stores                            # two arrays of 1 GiB, a few minutes on an idle machine
    python -m benchmarks.stores --json benchmarks/results/MACHINE/stores.json
    python -m benchmarks.stores --mib 256 --chunk 512 --compressor zstd --workers 4 --rounds 5 --folder /data

METHOD and CLOCK say how. A contestant that is not installed (cubed) is left out, and the result says so.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import zarr

import vecadd
from benchmarks.tables.sweeps import DISK, REFERENCE, stores_table
from vecadd._command import target
from vecadd.bench import machine
from vecadd.figures import Figure, write_run
from vecadd.info import info
from vecadd.tables import Screen

SWEEP = "stores"
METHOD = (
    "medians of rounds in random order, each contestant in a process of its own, on the same arrays, which are dropped "
    "from memory before; every sum compared with NumPy's, outside of the clock"
)
CLOCK = (
    "timed by the host around the addition, without imports and the start of a cluster, until the sum is on the disk; "
    "peak memory is what the process, or the worker that took most, had above what it had before; the disk's time is "
    "that of two threads that read the operands' files and write those of one of them again"
)

LIBRARIES = ("zarr", "dask", "distributed", "cubed")  # whose versions the result has
ROWS = 1 << 12  # elements along the first axis
ROUNDS = 6  # the fewest of which `vecadd compare` takes p10 and p90

Run = Callable[[Path, Path, Path], int]  # operands and target; the number of tasks


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes; a wrong sum ends it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description="additions of Zarr arrays")
    parser.add_argument("--mib", type=int, default=1024, help="of each array (default 1024)")
    parser.add_argument("--chunk", type=int, default=1024, help="elements of a chunk along both axes (default 1024)")
    parser.add_argument("--compressor", choices=("none", "zstd"), default="none")
    parser.add_argument("--workers", type=int, default=2, help="of the clusters")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=target, metavar="FILE")
    parser.add_argument("--child", metavar="NAME", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        print(json.dumps(measured(given.child, given.folder, given.workers)))
        return 0
    conditions = machine.conditions_now()
    missing = [name for name in CONTESTANTS if "cubed" in name and importlib.util.find_spec("cubed") is None]
    chosen = [name for name in CONTESTANTS if name not in missing]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        make(Path(folder), given)
        order = [name for _ in range(given.rounds) for name in random.sample(chosen, len(chosen))]
        runs = [{"contestant": name, **in_child(name, Path(folder), given.workers)} for name in order]
    asked = {name: getattr(given, name) for name in ("mib", "chunk", "compressor", "workers")}
    rows = [row_of(name, runs, asked) for name in chosen]
    Screen(sys.stderr).show([stores_table(rows, missing)])
    if given.json is not None:
        found = machine.conditions_since(conditions)
        meta = machine.meta(info(), found, method=METHOD, clocks={SWEEP: CLOCK}, missing=missing, rounds=given.rounds)
        meta["versions"] |= {name: version(name) for name in LIBRARIES if importlib.util.find_spec(name)}
        write_run(given.json, meta, rows)
    return 0


def make(folder: Path, given: argparse.Namespace) -> None:
    """a.zarr and b.zarr of random float64 in that folder, written by slices."""
    columns_of_it = given.mib * (1 << 20) // 8 // ROWS
    compressors: Any = None if given.compressor == "none" else "auto"
    rng = np.random.default_rng(1)
    for name in "ab":
        array = zarr.create_array(
            folder / f"{name}.zarr",
            shape=(ROWS, columns_of_it),
            chunks=(given.chunk, given.chunk),
            dtype="float64",
            compressors=compressors,
        )
        for begin in range(0, ROWS, given.chunk):
            shape = (min(given.chunk, ROWS - begin), columns_of_it)
            array[begin : begin + given.chunk] = np.floor(rng.random(shape) * 1000)  # what zstd can shorten


def in_child(name: str, folder: Path, workers: int) -> dict[str, Any]:
    """What a process of its own says of one run; its sum is checked, and removed."""
    out = folder / "c.zarr"
    shutil.rmtree(out, ignore_errors=True)
    forget(folder)
    words = ["--child", name, "--folder", str(folder), "--workers", str(workers)]
    command = [sys.executable, "-m", "benchmarks.stores", *words]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    if name != DISK:
        a, b, c = (zarr.open_array(folder / f"{which}.zarr", mode="r") for which in "abc")
        for begin in range(0, ROWS, a.chunks[0]):
            part = slice(begin, begin + a.chunks[0])
            np.testing.assert_array_equal(c[part], np.add(a[part], b[part]), strict=True)
    return found


def measured(name: str, folder: Path, workers: int) -> dict[str, Any]:
    """Seconds, peak bytes of a worker and tasks of one run in this process."""
    run, place = CONTESTANTS[name]
    a, b, out = (folder / f"{which}.zarr" for which in "abc")
    with place(workers) as on_workers:
        before = on_workers(reset_peak)
        begun = time.perf_counter()
        tasks = run(a, b, out)
        sync(out)
        seconds = time.perf_counter() - begun
        peaks = on_workers(peak)
    return {"seconds": seconds, "peak": max(peaks[worker] - before.get(worker, 0) for worker in peaks), "tasks": tasks}


def reset_peak() -> int:
    """Bytes that this process has; the peak is counted anew from here on."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def peak() -> int:
    """The most bytes that this process has had since."""
    return _memory("VmHWM")


def _memory(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) << 10


def files(folder: Path) -> list[Path]:
    """All files there."""
    return [path for path in folder.rglob("*") if path.is_file()]


def forget(folder: Path) -> None:
    """Drops the files' pages from memory, so that they are read from the disk."""
    for path in files(folder):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def sync(folder: Path) -> None:
    """Waits until the files are on the disk."""
    for path in files(folder):
        with path.open("rb") as file:
            os.fsync(file.fileno())


# --- The places, each of which gives a function that calls another one on each worker.

OnWorkers = Callable[[Callable[[], int]], Mapping[str, int]]


@contextlib.contextmanager
def here(workers: int) -> Iterator[OnWorkers]:
    """This process."""
    yield lambda function: {"here": function()}


@contextlib.contextmanager
def on_cluster(workers: int) -> Iterator[OnWorkers]:
    """A cluster of that many processes with a thread each, whose client is the active one."""
    from distributed import LocalCluster

    cluster: Any = LocalCluster  # has no types
    with cluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as made, made.get_client() as client:
        client.wait_for_workers(workers)
        yield client.run


# --- The contestants.


def by_vecadd(a: Path, b: Path, out: Path) -> int:
    """On threads of this process."""
    callbacks: Any = importlib.import_module("dask.callbacks")
    done: list[Any] = []
    with callbacks.Callback(posttask=lambda key, *rest: done.append(key)):
        vecadd.add_zarr(a, b, out)
    return len(done)


def by_vecadd_on_cluster(a: Path, b: Path, out: Path) -> int:
    """On the active client's workers."""
    from distributed import default_client

    active: Any = default_client
    vecadd.add_zarr(a, b, out)
    return len({entry[0] for entry in active().run_on_scheduler(_transitions) if entry[0].startswith("vecadd-add")})


def _transitions(dask_scheduler: Any) -> list[tuple[str]]:
    return [(str(entry[0]),) for entry in dask_scheduler.transition_log]


def by_numpy(a: Path, b: Path, out: Path) -> int:
    """Chunk by chunk, as one writes it by hand."""
    x, y = (zarr.open_array(path, mode="r") for path in (a, b))
    total = _like(x, out)
    (rows, row), (columns_of_it, column) = zip(x.shape, x.chunks, strict=True)
    boxes = [
        (slice(i, i + row), slice(j, j + column)) for i in range(0, rows, row) for j in range(0, columns_of_it, column)
    ]
    for box in boxes:
        total[box] = np.add(x[box], y[box])
    return 1


def by_dask(a: Path, b: Path, out: Path) -> int:
    """dask.array on the active client, or on threads of this process."""
    dask: Any = importlib.import_module("dask")
    array: Any = importlib.import_module("dask.array")
    x, y = array.from_zarr(str(a)), array.from_zarr(str(b))
    stored = array.store(x + y, _like(zarr.open_array(a, mode="r"), out), lock=False, compute=False)
    (best,) = dask.optimize(stored)
    tasks = len(dict(best.__dask_graph__()))
    dask.compute(stored)
    return tasks


def by_cubed(a: Path, b: Path, out: Path) -> int:
    """cubed on threads of this process, with 512 MB."""
    cubed: Any = importlib.import_module("cubed")
    plain = {} if zarr.open_array(a, mode="r").compressors else {"zarr_compressor": None}
    spec = cubed.Spec(tempfile.gettempdir(), allowed_mem="512MB", executor_name="threads", **plain)
    x, y = (cubed.from_zarr(str(path), spec=spec) for path in (a, b))
    total = cubed.add(x, y)
    cubed.to_zarr(total, str(out))
    return int(total.plan().num_tasks)


def by_disk(a: Path, b: Path, out: Path) -> int:
    """Reads the operands' files, and writes a's once more."""

    def move(path: Path) -> None:
        data = path.read_bytes()
        if path.is_relative_to(a):
            to = out / path.relative_to(a)
            to.parent.mkdir(parents=True, exist_ok=True)
            with to.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(move, sorted([*files(a), *files(b)], key=lambda path: path.parts[-2:])))
    return 1


def _like(x: Any, out: Path) -> Any:
    return zarr.create_array(out, shape=x.shape, chunks=x.chunks, dtype=x.dtype, compressors=x.compressors)


CONTESTANTS: Mapping[str, tuple[Run, Callable[[int], contextlib.AbstractContextManager[OnWorkers]]]] = {
    REFERENCE: (by_vecadd, here),
    "vecadd, cluster": (by_vecadd_on_cluster, on_cluster),
    "NumPy, a loop over chunks": (by_numpy, here),
    "dask.array, threads": (by_dask, here),
    "dask.array, cluster": (by_dask, on_cluster),
    "cubed, threads": (by_cubed, here),
    DISK: (by_disk, here),
}


def row_of(name: str, runs: Sequence[Mapping[str, Any]], asked: Mapping[str, Any]) -> Figure:
    """A contestant's median, and that of its share of the disk's own speed. The spread is left out where there are too
    few rounds for it; the samples are all there."""
    mine = [run for run in runs if run["contestant"] == name]
    seconds, moving = ([run["seconds"] for run in runs if run["contestant"] == who] for who in (name, DISK))
    low, high = np.percentile(seconds, (10, 90))
    nbytes = 3 * asked["mib"] << 20
    return Figure(
        sweep=SWEEP,
        name=name,
        dtype="float64",
        n=nbytes // 24,
        params={
            **asked,
            "peak": max(run["peak"] for run in mine),
            "tasks": max(run["tasks"] for run in mine),
            "samples": seconds,
        },
        value=median(seconds),
        spread=(low, high) if len(seconds) >= ROUNDS else None,
        bytes=nbytes,
        limit=nbytes / median(moving) / 1e9,
        checked=name != DISK,
    )


if __name__ == "__main__":
    sys.exit(main())
