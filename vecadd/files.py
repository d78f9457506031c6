"""Adds two .npy files of any size into a third, in bounded memory, so that no failure damages an existing file.

The sum is written to a file beside the target that takes its name only when it is complete and, unless the caller asks
for less, on the disk. Inputs are read through windows, not mapped: one that shrinks under a mapping is a SIGBUS, and
here an error.
"""

import errno
import fcntl
import io
import math
import mmap
import os
import secrets
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import copy_context
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.lib import format as npy

from vecadd._core import add, add_alone, host_facts
from vecadd._npy_input import Input, open_input
from vecadd._tiles import Shape, Tiles, Walk, fortran_order_of_sum, runs, strides
from vecadd._uninterrupted import Check, Progress, run_uninterrupted

__all__ = ["Progress", "add_files"]

# Bytes of each input that a thread holds: two fit in 1 MiB of L2, and the sum overwrites the first.
WINDOW = 512 << 10
STRETCH = 8  # windows that a thread adds in a row: handing one over costs 30 us, a tenth of its time
FEWEST_THREADS, MOST_THREADS = 4, 16  # at least 4 where threads wait for a disk

# Writes to a file run one at a time, but threads can touch its mapped pages all at once. On tmpfs 16 threads take 190
# ms to write 512 MB of sums and 100 ms to add into mapped pages; for 256 MB on two processors it is 148 and 160.
MAPPED_FROM = 4  # processors

# The errors of file systems without unnamed files, or without a way to reserve space.
_NO_TMPFILE = {errno.EOPNOTSUPP, errno.EISDIR}
_NO_FALLOCATE = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}

Name = str | os.PathLike[str]
_Buffers = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


def add_files(
    a: Name, b: Name, out: Name, *, window: int = WINDOW, sync: bool = True, progress: Progress | None = None
) -> None:
    """Writes the sum of the arrays in the .npy files ``a`` and ``b`` to the .npy file ``out``.

    The file is the one that ``numpy.save(out, numpy.add(a, b))`` would write: shapes broadcast, dtypes may differ, and
    each file may be in C or in Fortran order. ``out`` may be one of the inputs. It takes its name only when the sum is
    complete; a file that it replaces stays as it was until then, and its permissions are kept.

    window
        Bytes of each file that one thread holds in memory, eight times as many where the files' memory orders differ;
        there are as many threads as additions use, at most 16, and at least 4 where one of the files is not in memory.
    sync
        Whether to wait until the sum is on the disk (fsync) before it takes its name; without, a crash of the machine
        may leave ``out`` damaged.
    progress
        Called in this thread with (elements done, elements in all) after every eight windows, in their order.

    Raises ValueError where a file is not an .npy file, is too short or too long, or the two shapes do not broadcast,
    and TypeError where ``numpy.add`` has no loop for the two dtypes: nothing was written then. Raises OSError where a
    file cannot be opened, read or written: ``out`` is as it was.

    >>> np.save("a.npy", np.ones((1000, 3)))
    >>> np.save("b.npy", np.arange(3))
    >>> vecadd.add_files("a.npy", "b.npy", "c.npy")
    >>> np.load("c.npy")[0]
    array([1., 2., 3.])
    """

    def work(check: Check, tell: Progress | None) -> None:
        with ExitStack() as stack:
            x = stack.enter_context(open_input(Path(a)))
            y = stack.enter_context(open_input(Path(b)))
            shape, dtype = _sum_of(x, y)
            layouts = (x.shape, x.fortran_order), (y.shape, y.fortran_order)
            fortran_order = fortran_order_of_sum(*layouts)
            header = _header(dtype, shape, fortran_order)
            size = math.prod(shape)
            target = stack.enter_context(_replacing(Path(out), len(header) + size * dtype.itemsize, sync, check))
            _write(target, header, 0)
            if size:
                walk = Walk.through(shape, fortran_order, *layouts)
                _add_tiles(x, y, target, len(header), dtype, walk, window, check, tell)

    run_uninterrupted(work, progress)


def _sum_of(x: Input, y: Input) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the dtype that numpy.add gives the sum."""
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise ValueError(
            f"shapes that do not broadcast: {x.path} has {x.shape}, {y.path} has {y.shape}; along each axis, counted "
            "from the last, they have to be equal or one of them 1"
        ) from None
    dtype = np.add.resolve_dtypes((x.dtype, y.dtype, None))[2]
    assert isinstance(dtype, np.dtype)
    return shape, dtype


def _header(dtype: np.dtype[Any], shape: tuple[int, ...], fortran_order: bool) -> bytes:
    file = io.BytesIO()
    npy.write_array_header_1_0(
        file, {"descr": npy.dtype_to_descr(dtype), "fortran_order": fortran_order, "shape": shape}
    )
    return file.getvalue()


def _add_tiles(
    x: Input,
    y: Input,
    target: int,
    offset: int,
    dtype: np.dtype[Any],
    walk: Walk,
    window: int,
    check: Check,
    progress: Progress | None,
) -> None:
    """Keeps one stretch of tiles a thread in flight: while one is read, another is added and a third written."""
    widest = max(x.dtype.itemsize, y.dtype.itemsize, dtype.itemsize, 1)
    size = math.prod(walk.extents)
    together = 1 if walk.turns() else STRETCH
    tiles = Tiles(walk, walk.tile(max(1, min(size, STRETCH // together * window // widest))))
    step = math.prod(tiles.extents)
    processors = min(MOST_THREADS, host_facts()["threads"])
    waits = not all(map(_in_memory, (x.descriptor, y.descriptor, target)))
    threads = min(-(-len(tiles) // together), max(FEWEST_THREADS, processors) if waits else processors)
    in_place = x.dtype == dtype and walk.steps[1] == walk.steps[0]
    # No process can truncate a file without a name: no access to its pages fails. A stretch along a single axis is one
    # run of the file.
    mapped = (
        processors >= MAPPED_FROM and _in_memory(target) and os.fstat(target).st_nlink == 0 and len(walk.extents) == 1
    )
    free: SimpleQueue[_Buffers] = SimpleQueue()
    for _ in range(threads):
        first = np.empty(step, x.dtype)
        free.put((first, np.empty(step, y.dtype), first if in_place else np.empty(0 if mapped else step, dtype)))

    def where(element: int) -> int:
        return offset + element * dtype.itemsize

    def add_stretch(begin: int) -> int:
        """Adds the tiles from this one on, and gives how many elements they have."""
        stretch = [tiles[number] for number in range(begin, min(begin + together, len(tiles)))]
        first, done = stretch[0][0][0], sum(math.prod(extents) for _, extents in stretch)
        buffers = free.get()
        try:
            with _pages(target, where(first), where(first + done)) if mapped else nullcontext() as pages:
                for start, extents in stretch:
                    check()
                    a, b = (
                        _read_tile(source, buffer, walk, number, start, extents)
                        for number, (source, buffer) in enumerate(zip((x, y), buffers, strict=False), 1)
                    )
                    if pages is None:
                        c = buffers[2][: math.prod(extents)]
                        add(a, b, out=c.reshape(extents))
                        _write_tile(target, c, walk, start, extents, where)
                    else:
                        lead = where(first) % mmap.ALLOCATIONGRANULARITY
                        add(a, b, out=np.frombuffer(pages, dtype, extents[0], lead + where(start[0]) - where(first)))
        finally:
            free.put(buffers)  # or other threads would wait for ever after a failure
        return done

    told = 0
    for done in _in_turn(add_stretch, range(0, len(tiles), together), threads):
        told += done
        if progress is not None:
            progress(told, size)


def _read_tile(
    source: Input, buffer: np.ndarray[Any, Any], walk: Walk, number: int, start: Shape, extents: Shape
) -> np.ndarray[Any, Any]:
    """Reads a tile of that array of the walk into the buffer, and gives it with the walk's axes."""
    begin, itemsize = 0, source.dtype.itemsize
    for place, count in runs(walk, number, start, extents):
        _read(source, buffer[begin : begin + count], place)
        begin += count
    shape, steps = strides(walk, number, extents)
    return np.ndarray(shape, source.dtype, buffer, strides=[step * itemsize for step in steps])


def _write_tile(
    target: int, c: np.ndarray[Any, Any], walk: Walk, start: Shape, extents: Shape, where: Callable[[int], int]
) -> None:
    left = c
    for place, count in runs(walk, 0, start, extents):
        _write(target, _bytes(left[:count]), where(place))
        left = left[count:]


def _pages(descriptor: int, first: int, end: int) -> mmap.mmap:
    """Maps the pages of a file's bytes [first, end). Their space is reserved first, so that no access to them fails."""
    os.posix_fallocate(descriptor, first, end - first)
    begin = first - first % mmap.ALLOCATIONGRANULARITY
    return mmap.mmap(descriptor, end - begin, offset=begin)


def _in_memory(descriptor: int) -> bool:
    """Whether the file is on tmpfs, in memory alone: files on other file systems have no seals."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
    except OSError:
        return False
    return True


def _in_turn(work: Callable[[int], int], starts: Sequence[int], threads: int) -> Iterator[int]:
    """The results of ``work`` in the order of ``starts``; no work is running when it ends, even by an exception."""
    if threads <= 1:
        yield from map(work, starts)
        return
    pending: deque[Future[int]] = deque()
    with ThreadPoolExecutor(threads, "vecadd-files", add_alone, (True,)) as pool:
        try:
            for start in starts:
                if len(pending) == 2 * threads:
                    yield pending.popleft().result()
                # numpy.errstate belongs to the context: the caller's settings hold in these threads too.
                pending.append(pool.submit(copy_context().run, work, start))
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def _bytes(x: np.ndarray[Any, Any]) -> memoryview:
    return x.view(np.uint8).data if x.nbytes else memoryview(b"")


def _read(source: Input, x: np.ndarray[Any, Any], start: int) -> None:
    left, offset = _bytes(x), source.offset + start * source.dtype.itemsize
    while left:
        got = os.preadv(source.descriptor, [left], offset)
        if got == 0:
            raise OSError(f"{source.path} was cut short while it was read")
        left, offset = left[got:], offset + got


def _write(descriptor: int, data: bytes | memoryview, offset: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written


@contextmanager
def _replacing(path: Path, size: int, sync: bool, check: Check) -> Iterator[int]:
    """A descriptor to write ``size`` bytes to; they become the file ``path`` if the block ends without an exception,
    and ``check``, called when they are written (with ``sync``: on the disk), raises none."""
    path = path.resolve()  # a link stays a link: what it points to is replaced
    mode = _mode_of(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor, named = _create(temporary)
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            _reserve(descriptor, size, path)
            yield descriptor
            if sync:
                os.fsync(descriptor)
            check()
            if not named:
                # Only with a dst_dir_fd does Python ask for the link in /proc to be followed.
                os.link(f"/proc/self/fd/{descriptor}", temporary.name, dst_dir_fd=folder, follow_symlinks=True)
                named = True
            temporary.rename(path)
            named = False
            if sync:
                os.fsync(folder)
        finally:
            os.close(descriptor)
            if named:
                temporary.unlink()
    finally:
        os.close(folder)


def _mode_of(path: Path) -> int | None:
    """The permissions of the file to replace; None where there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} exists and is not a regular file; it is not replaced")
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "exists and is write-protected", str(path))
    return stat.S_IMODE(status.st_mode)


def _create(temporary: Path) -> tuple[int, bool]:
    """A new file and whether it has its name yet: a file without a name vanishes when its process is killed."""
    flags = os.O_RDWR | os.O_CLOEXEC
    if Path("/proc/self/fd").is_dir():  # the name is given through it
        try:
            return os.open(temporary.parent, flags | os.O_TMPFILE, 0o666), False
        except OSError as error:
            if error.errno not in _NO_TMPFILE:
                raise
    return os.open(temporary, flags | os.O_CREAT | os.O_EXCL, 0o666), True


def _reserve(descriptor: int, size: int, path: Path) -> None:
    """Reserves the disk space, so that a full disk is found before the work and not after it.

    Without a block device behind the file, in memory or on another machine, it only checks the free space: on tmpfs one
    thread would allocate every page, a sixth of the time of the whole addition, and where nothing can be reserved glibc
    would write a byte of each block.
    """
    room = os.fstatvfs(descriptor)
    if room.f_blocks > 0 and room.f_bavail * room.f_frsize < size:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: the sum takes {size} bytes", str(path))
    os.ftruncate(descriptor, size)
    if os.major(os.fstat(descriptor).st_dev) == 0:
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in _NO_FALLOCATE:
            raise
