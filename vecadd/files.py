"""Adds two .npy files of any size into a third, in bounded memory, so that no failure damages an existing file.

The sum is written to a file beside the target that takes its name only when it is complete and on the disk. Files are
read and written through windows, not mapped: an input that shrinks under a mapping is a SIGBUS, here it is an error.
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
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.lib import format as npy

from vecadd._core import add, add_alone, host_facts
from vecadd._uninterrupted import Check, Progress, run_uninterrupted

__all__ = ["Progress", "add_files"]

# Bytes of each input that a thread holds: two fit in 1 MiB of L2, and the sum overwrites the first.
WINDOW = 512 << 10
STRETCH = 8  # windows that a thread adds in a row: handing one over costs 30 us, a tenth of its time
FEWEST_THREADS, MOST_THREADS = 4, 16  # at least 4 where threads wait for a disk

# Writes to a file run one at a time, but threads can touch its mapped pages all at once. On tmpfs 16 threads take 190
# ms to write 512 MB of sums and 100 ms to add into mapped pages; for 256 MB on two processors it is 148 and 160.
MAPPED_FROM = 4  # processors

# Version 3 differs from 2 only in how names of structured fields are encoded, and structured dtypes are refused.
_READ_HEADER = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
    (3, 0): npy.read_array_header_2_0,
}

# The errors of file systems without unnamed files, or without a way to reserve space.
_NO_TMPFILE = {errno.EOPNOTSUPP, errno.EISDIR}
_NO_FALLOCATE = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}

Name = str | os.PathLike[str]
_Buffers = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


@dataclass(frozen=True)
class _Input:
    path: Path
    descriptor: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    offset: int  # bytes of header

    @property
    def order(self) -> str:
        return "Fortran" if self.fortran_order else "C"


def add_files(a: Name, b: Name, out: Name, *, window: int = WINDOW, progress: Progress | None = None) -> None:
    """Writes the sum of the arrays in the .npy files ``a`` and ``b`` to the .npy file ``out``.

    The shapes must be equal and the memory order the same. The dtypes may differ: the sum has the dtype that
    ``numpy.add`` gives it. ``out`` may be one of the inputs; if it exists it is replaced only once the sum is complete
    and synced, and keeps its permissions.

    Args:
        window: bytes of each file that one thread holds in memory; there are as many threads as additions use, at most
            16, and at least 4 where one of the files is not in memory.
        progress: called in this thread with (elements done, elements in all) after every eight windows, in their order.

    Raises:
        ValueError: a file is not an .npy file, is too short or too long, or the two cannot be added; nothing was
            written.
        TypeError: ``numpy.add`` has no loop for the two dtypes; nothing was written.
        OSError: a file cannot be opened, read or written; ``out`` is as it was.
    """

    def work(check: Check, tell: Progress | None) -> None:
        with ExitStack() as stack:
            x = stack.enter_context(_open_input(Path(a)))
            y = stack.enter_context(_open_input(Path(b)))
            dtype = _sum_dtype(x, y)
            header = _header(dtype, x)
            size = math.prod(x.shape)
            target = stack.enter_context(_replacing(Path(out), len(header) + size * dtype.itemsize, check))
            _write(target, header, 0)
            _add_windows(x, y, target, len(header), dtype, size, window, check, tell)

    run_uninterrupted(work, progress)


def _open_at_once(path: str, flags: int) -> int:
    """Opens without waiting for the writer of a pipe, which is refused later; regular files open as usual."""
    return os.open(path, flags | os.O_NONBLOCK)


@contextmanager
def _open_input(path: Path) -> Iterator[_Input]:
    with open(path, "rb", buffering=0, opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path} is not a regular file; it cannot be read through windows")
        try:
            version = npy.read_magic(file)
            if version not in _READ_HEADER:
                raise ValueError(f"format version {version[0]}.{version[1]} is unknown, 1.0 to 3.0 are read")
            shape, fortran_order, dtype = _READ_HEADER[version](file)
            if any(extent < 0 for extent in shape):
                raise ValueError(f"shape {shape} has a negative extent")
        except OSError:
            raise
        except Exception as error:  # for garbage NumPy passes on the exceptions of tokenize, ast and numpy.dtype
            raise ValueError(f"{path} is not a .npy file that can be read: {error}") from error
        if dtype.hasobject:
            raise ValueError(f"{path} holds Python objects ({dtype}); files are never unpickled")
        if dtype.kind == "V":
            raise ValueError(f"{path} holds {dtype}, which is structured or raw bytes; numpy.add has no sum for those")
        offset = file.tell()
        expected = offset + math.prod(shape) * dtype.itemsize
        if status.st_size != expected:
            wrong = "cut short" if status.st_size < expected else "too long"
            raise ValueError(
                f"{path} is {wrong}: {status.st_size} bytes, where {dtype} of shape {shape} makes {expected}"
            )
        # A vector is in both orders; numpy.save calls it C.
        yield _Input(path, file.fileno(), dtype, shape, fortran_order and len(shape) > 1, offset)


def _sum_dtype(x: _Input, y: _Input) -> np.dtype[Any]:
    if x.shape != y.shape:
        raise ValueError(f"shapes must be equal: {x.path} has {x.shape}, {y.path} has {y.shape}")
    if x.fortran_order != y.fortran_order:
        raise ValueError(
            f"memory orders must be the same: {x.path} is in {x.order} order, {y.path} in {y.order} order; "
            "save one of them again after numpy.ascontiguousarray or numpy.asfortranarray"
        )
    dtype = np.add.resolve_dtypes((x.dtype, y.dtype, None))[2]
    assert isinstance(dtype, np.dtype)
    return dtype


def _header(dtype: np.dtype[Any], like: _Input) -> bytes:
    file = io.BytesIO()
    npy.write_array_header_1_0(
        file, {"descr": npy.dtype_to_descr(dtype), "fortran_order": like.fortran_order, "shape": like.shape}
    )
    return file.getvalue()


def _add_windows(
    x: _Input,
    y: _Input,
    target: int,
    offset: int,
    dtype: np.dtype[Any],
    size: int,
    window: int,
    check: Check,
    progress: Progress | None,
) -> None:
    """Keeps one stretch of windows a thread in flight: while one is read, another is added and a third written."""
    widest = max(x.dtype.itemsize, y.dtype.itemsize, dtype.itemsize, 1)
    step = max(1, min(size, window // widest))
    processors = min(MOST_THREADS, host_facts()["threads"])
    waits = not all(map(_in_memory, (x.descriptor, y.descriptor, target)))
    threads = min(-(-size // (STRETCH * step)), max(FEWEST_THREADS, processors) if waits else processors)
    in_place = x.dtype == dtype
    # No process can truncate a file without a name: no access to its pages fails.
    mapped = processors >= MAPPED_FROM and _in_memory(target) and os.fstat(target).st_nlink == 0
    free: SimpleQueue[_Buffers] = SimpleQueue()
    for _ in range(threads):
        first = np.empty(step, x.dtype)
        free.put((first, np.empty(step, y.dtype), first if in_place else np.empty(0 if mapped else step, dtype)))

    def where(element: int) -> int:
        return offset + element * dtype.itemsize

    def add_stretch(begin: int) -> int:
        end = min(begin + STRETCH * step, size)
        buffers = free.get()
        try:
            with _pages(target, where(begin), where(end)) if mapped else nullcontext() as pages:
                for start in range(begin, end, step):
                    check()
                    a, b, c = (buffer[: end - start] for buffer in buffers)
                    _read(x, a, start)
                    _read(y, b, start)
                    if pages is None:
                        add(a, b, out=c)
                        _write(target, _bytes(c), where(start))
                    else:
                        lead = where(begin) % mmap.ALLOCATIONGRANULARITY
                        add(a, b, out=np.frombuffer(pages, dtype, a.size, lead + where(start) - where(begin)))
        finally:
            free.put(buffers)  # or other threads would wait for ever after a failure
        return end

    for done in _in_turn(add_stretch, range(0, size, STRETCH * step), threads):
        if progress is not None:
            progress(done, size)


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


def _read(source: _Input, x: np.ndarray[Any, Any], start: int) -> None:
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
def _replacing(path: Path, size: int, check: Check) -> Iterator[int]:
    """A descriptor to write ``size`` bytes to; they become the file ``path`` if the block ends without an exception,
    and ``check``, called when they are on the disk, raises none."""
    path = path.resolve()  # a link stays a link: what it points to is replaced
    mode = _mode_of(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor, named = _create(temporary)
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            _reserve(descriptor, size)
            yield descriptor
            os.fsync(descriptor)
            check()
            if not named:
                # Only with a dst_dir_fd does Python ask for the link in /proc to be followed.
                os.link(f"/proc/self/fd/{descriptor}", temporary.name, dst_dir_fd=folder, follow_symlinks=True)
                named = True
            temporary.rename(path)
            named = False
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


def _reserve(descriptor: int, size: int) -> None:
    """Reserves the disk space, so that a full disk is found before the work and not after it.

    Without a block device behind the file, in memory or on another machine, it only checks the free space: on tmpfs one
    thread would allocate every page, a sixth of the time of the whole addition, and where nothing can be reserved glibc
    would write a byte of each block.
    """
    room = os.fstatvfs(descriptor)
    if room.f_blocks > 0 and room.f_bavail * room.f_frsize < size:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: the sum takes {size} bytes")
    os.ftruncate(descriptor, size)
    if os.major(os.fstat(descriptor).st_dev) == 0:
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in _NO_FALLOCATE:
            raise
