"""Adds two .npy files into a third, in memory (tmpfs) and on a disk, beside NumPy's ways to do it."""

import atexit
import fcntl
import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.peers.clocks import Timer
from vecadd._core import host_facts
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import Buffers, Place
from vecadd.bench.contestants import Contestant
from vecadd.bench.sweeps import Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.files import FEWEST_THREADS, MOST_THREADS, add_files

MEMORY, DISK = "in memory", "on disk"
FOLDERS = {MEMORY: "/dev/shm", DISK: tempfile.gettempdir()}
SIZES = {MEMORY: (1 << 26,), DISK: (1 << 25,)}  # numpy.save takes 0.3 s for 2^26 float32 in memory
REFERENCE = "vecadd.add_files"

WINDOW = 256 << 10  # bytes of the limit's windows, two a thread: 1 MiB each was as fast on two processors
STRETCH = 4 << 20

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


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Cells by where the files lie; a machine whose temporary files lie in memory has none on a disk."""
    for where, parent in FOLDERS.items():
        if not Path(parent).is_dir() or _lies_in_memory(parent) != (where == MEMORY):
            machine.missing.append(f"files {where}: {parent} is not {where}")
            continue
        place = _place(where, parent)
        peers = [
            Contestant(name, place, _timer(add, where), {"memory": where}, limited=add is add_files)
            for name, add in {REFERENCE: add_files, "numpy.memmap": _mapped, "numpy.load and save": _loaded}.items()
        ]
        for dtype, n, _ in grid(axes, SIZES[where]):
            yield Cell("peer-files", dtype, n, peers, FilesLimit(where), sets=1, reference=REFERENCE)


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


class FilesLimit:
    """Reading two files and writing one, by as many threads as `add_files` has, and nothing added.

    The best round of the best way to write: from a thread's memory or, in memory, into the pages of the file. It bounds
    only additions that read and write in this way.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._best = float("inf")
        self._inputs: tuple[File, File] | None = None

    def open(self, buffers: Mapping[str, Sequence[Buffers]]) -> None:
        a, b, _, _ = next(iter(buffers.values()))[0]
        self._inputs = a, b

    def round(self) -> None:
        for mapped in (False, True) if self._where == MEMORY else (False,):
            self._best = min(self._best, self._move(mapped))

    def close(self) -> None:
        self._inputs = None

    @property
    def gbps(self) -> float | None:
        return self._nbytes / self._best / 1e9

    def _move(self, mapped: bool) -> float:
        assert self._inputs is not None
        if self._where == DISK:
            for file in self._inputs:
                file.forget()
        folder = self._inputs[0].path.parent
        descriptors = [os.open(file.path, os.O_RDONLY) for file in self._inputs]
        descriptors.append(os.open(folder, os.O_RDWR | os.O_TMPFILE))
        try:
            size = os.fstat(descriptors[0]).st_size
            self._nbytes = 3 * size
            begin = perf_counter()
            os.ftruncate(descriptors[2], size)
            processors = min(MOST_THREADS, host_facts()["threads"])
            threads = processors if self._where == MEMORY else max(FEWEST_THREADS, processors)
            firsts = count(0, STRETCH)
            movers = [Thread(target=_move_stretches, args=(*descriptors, size, firsts, mapped)) for _ in range(threads)]
            for thread in movers:
                thread.start()
            for thread in movers:
                thread.join()
            os.fsync(descriptors[2])
            return perf_counter() - begin
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def _move_stretches(a: int, b: int, out: int, size: int, firsts: Iterator[int], mapped: bool) -> None:
    buffers = [np.empty(WINDOW, np.uint8) for _ in range(2)]
    for first in firsts:
        if first >= size:
            return
        end = min(first + STRETCH, size)
        pages = None
        if mapped:
            os.posix_fallocate(out, first, end - first)
            pages = mmap.mmap(out, end - first, offset=first)
        for at in range(first, end, WINDOW):
            x, y = (buffer[: end - at] for buffer in buffers)
            os.preadv(a, [x.data], at)
            os.preadv(b, [y.data], at)
            if pages is None:
                os.pwrite(out, y.data, at)
            else:
                np.copyto(np.frombuffer(pages, np.uint8, y.size, at - first), y)
        if pages is not None:
            pages.close()


def _place(where: str, parent: str) -> Place:
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

    return Place(
        where,
        put=put,
        get=lambda file: np.load(file.path),
        poison=lambda file: file.path.write_bytes(b"\xa5"),
    )


def _lies_in_memory(folder: str) -> bool:
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
    "the sum is synced; the limit reads two files and writes one by as many threads",
    needs_gpu=False,
)
