"""Adds two .npy files into a third, in memory (tmpfs) and on a disk, beside NumPy's ways to do it."""

import atexit
import fcntl
import filecmp
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.peers.clocks import Timer
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import Buffers, MemoryKind, WrongSumError
from vecadd.bench.options import Options
from vecadd.bench.probes import Limit
from vecadd.bench.run import Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.files import add_files, move_files

MEMORY, DISK = "in memory", "on disk"
FOLDERS = {MEMORY: "/dev/shm", DISK: tempfile.gettempdir()}
SIZES = {MEMORY: (1 << 26,), DISK: (1 << 25,)}  # numpy.save takes 0.3 s for 2^26 float32 in memory
REFERENCE = "vecadd.add_files"
MOVING = "moving as much, not adding"

Add = Callable[[Path, Path, Path], object]


class File:
    """An array's file, which is deleted with the object."""

    def __init__(self, path: Path) -> None:
        self.path = path
        weakref.finalize(self, path.unlink, missing_ok=True)

    def forget(self) -> None:
        """Drops the file's pages from memory, so that the next reader reads the disk, which has them already."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """Cells by where the files are; a machine whose temporary files are in memory has none on a disk."""
    for where, parent in FOLDERS.items():
        if not Path(parent).is_dir() or _is_in_memory(parent) != (where == MEMORY):
            machine.missing.append(f"files {where}: {parent} is not {where}")
            continue
        place = _place(where, parent)
        how = {"memory": where}
        peers = [
            Contestant(name, place, _timer(add, where), how, limited=add is add_files)
            for name, add in {REFERENCE: add_files, "numpy.memmap": _mapped, "numpy.load and save": _loaded}.items()
        ]
        for dtype, n in grid(options, SIZES[where]):
            moving = Moving(where)
            mover = Contestant(MOVING, place, moving.time, how, limited=False, check=moving.check)
            yield Cell(dtype, n, [*peers, mover], moving, sets=1, reference=REFERENCE)


def _mapped(a: Path, b: Path, out: Path) -> None:
    x, y = (np.load(path, mmap_mode="r") for path in (a, b))
    total = np.lib.format.open_memmap(out, "w+", x.dtype, x.shape)
    np.add(x, y, out=total)
    total.flush()


def _loaded(a: Path, b: Path, out: Path) -> None:
    with out.open("wb") as file:
        np.save(file, np.add(np.load(a), np.load(b)))
        file.flush()
        os.fsync(file.fileno())  # as the other two ways do: the sum is on the disk when the call returns


def _timer(add: Add, where: str) -> Timer:
    """Removes the target before each call, so that no call's time includes freeing an old file."""

    def time(sets: Sequence[Buffers]) -> float:
        seconds = 0.0
        for a, b, out, _ in sets:
            out.path.unlink(missing_ok=True)
            if where == DISK:
                a.forget(), b.forget()
            begin = perf_counter()
            add(a.path, b.path, out.path)
            seconds += perf_counter() - begin
        return seconds / len(sets)

    return time


class Moving(Limit):
    """Reading both files and writing one as `add_files` does, adding nothing: a contestant, and by its best round the
    cell's limit. It bounds only additions that read and write in this way."""

    def __init__(self, where: str) -> None:
        self._time = _timer(move_files, where)
        self._best = float("inf")
        self._nbytes = 0

    def time(self, sets: Sequence[Buffers]) -> float:
        """Seconds of moving one set."""
        seconds = self._time(sets)
        self._best = min(self._best, seconds)
        self._nbytes = sum(file.path.stat().st_size for file in sets[0][:3])
        return seconds

    @staticmethod
    def check(used: Buffers) -> None:
        """Compares what was written with what was read."""
        if not filecmp.cmp(used.a.path, used.out.path, shallow=False):
            raise WrongSumError("the file that was written is not the first one that was read")

    def open(self, buffers: Mapping[str, Sequence[Buffers]]) -> None:
        """Forgets the warm-up's shorter files."""
        self._best = float("inf")

    @property
    def gbps(self) -> float | None:
        """The rate of its best round; it is timed with the other contestants."""
        return self._nbytes / self._best / 1e9


def _place(where: str, parent: str) -> MemoryKind:
    folder = tempfile.mkdtemp(prefix="vecadd-peers-", dir=parent)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    numbers = count()

    def put(x: np.ndarray[Any, Any]) -> File:
        path = Path(folder) / f"{next(numbers)}.npy"
        with path.open("wb") as file:
            np.save(file, x)
            file.flush()
            os.fsync(file.fileno())
        return File(path)

    return MemoryKind(
        where,
        put=put,
        get=lambda file: np.load(file.path),
        poison=lambda file: file.path.write_bytes(b"\xa5"),
    )


def _is_in_memory(folder: str) -> bool:
    """Whether the folder is on tmpfs: no other file system's files have seals."""
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            fcntl.fcntl(file, fcntl.F_GET_SEALS)
        except OSError:
            return False
    return True


STAGE = Sweep(
    "peer-files",
    cells,
    "timed by the host around the whole call, no target there before; on disk the inputs are out of the page cache and "
    "the sum is synced; the limit is the best round of moving as much, in C, by as many threads",
    needs_gpu=False,
)
