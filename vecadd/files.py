"""Adds two .npy files of any size into a third, in bounded memory, so that no failure damages an existing file.

The sum is written to a file beside the target that takes its name only when it is complete, closed and, unless the
caller asks for less, on the disk. What is in between, reading, adding and writing, is csrc/files. Inputs are read
through windows, not mapped: one that shrinks under a mapping is a SIGBUS, and here an error. Mapped, they would save a
twentieth on tmpfs, and nothing on a disk.

The kernel tells a disk's error once, to the first call that can report it. So no result of a call is ignored between
the first write and the rename.
"""

import errno
import io
import math
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from vecadd import _core
from vecadd._npy_input import Input, open_input
from vecadd._sum import shape_and_dtype
from vecadd._temporary import temporary_name
from vecadd._uninterrupted import Check, Progress, run_uninterrupted

__all__ = ["Progress", "add_files"]

# Bytes of each input that a thread holds: two fit in 1 MiB of L2, and the sum overwrites the first.
WINDOW = 512 << 10
FEWEST_THREADS, MOST_THREADS = 2, 16  # one waits for the disk while the other adds; on two processors 4 took longer

# The errors of file systems without unnamed files, or without a way to reserve space.
_NO_TMPFILE = {errno.EOPNOTSUPP, errno.EISDIR}
_NO_FALLOCATE = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}

Name = str | os.PathLike[str]


def add_files(
    a: Name, b: Name, out: Name, *, window: int = WINDOW, sync: bool = True, progress: Progress | None = None
) -> None:
    """Writes the sum of the arrays in the .npy files ``a`` and ``b`` to the .npy file ``out``.

    The file is the one that ``numpy.save(out, numpy.add(a, b))`` would write: shapes broadcast, dtypes may differ, and
    each file may be in C or in Fortran order. ``out`` may be one of the inputs. It takes its name only when the sum is
    complete; a file that it replaces stays as it was until then, and its permissions are kept.

    window
        Bytes of each file that one thread holds in memory, eight times as many where the files' memory orders differ;
        there are as many threads as additions use, at least 2 and at most 16.
    sync
        Whether to wait until the sum is on the disk (fsync) before it takes its name; without, a crash of the machine
        may leave ``out`` damaged.
    progress
        Called in this thread with (elements done, elements in all) after every eight windows, in their order.

    Raises ValueError where a file is not an .npy file, is too short or too long, the two shapes do not broadcast, or
    the window is less than a byte, and TypeError where ``numpy.add`` has no loop for the two dtypes: nothing was
    written then. Raises OSError where a file cannot be opened, read, written, synced or closed: ``out`` is as it was.
    Where the error names its folder, the sum is there, and a crash of the machine may bring back what was there before.

    >>> np.save("a.npy", np.ones((1000, 3)))
    >>> np.save("b.npy", np.arange(3))
    >>> vecadd.add_files("a.npy", "b.npy", "c.npy")
    >>> np.load("c.npy")[0]
    array([1., 2., 3.])
    """
    if window < 1:
        raise ValueError(f"window of {window} bytes; give a positive number")
    _write_sum(a, b, out, window, sync, progress)


def move_files(a: Name, b: Name, out: Name, *, sync: bool = True) -> None:
    """Reads and writes what `add_files` does, by as many threads, and adds nothing: ``out`` becomes as ``a``.

    It is what the addition is measured against. The two files have one shape, order and dtype.
    """
    _write_sum(a, b, out, WINDOW, sync, None, adds=False)


def _write_sum(
    a: Name, b: Name, out: Name, window: int, sync: bool, progress: Progress | None, *, adds: bool = True
) -> None:
    def work(check: Check, tell: Progress | None) -> None:
        with ExitStack() as stack:
            x = stack.enter_context(open_input(Path(a)))
            y = stack.enter_context(open_input(Path(b)))
            shape, dtype = shape_and_dtype(x, y, f"{x.path} has {x.shape}, {y.path} has {y.shape}")
            fortran_order = _fortran_order_of_sum(x, y)
            header = _header(dtype, shape, fortran_order)
            size = math.prod(shape)
            target = stack.enter_context(_replacing(Path(out), len(header) + size * dtype.itemsize, sync, check))
            with _naming(Path(out)):
                _write(target, header, 0)
            total = Input(Path(out), target, dtype, shape, fortran_order, len(header))
            if size:
                _add(x, y, total, window, check, tell, adds=adds)

    run_uninterrupted(work, progress)


def _header(dtype: np.dtype[Any], shape: tuple[int, ...], fortran_order: bool) -> bytes:
    file = io.BytesIO()
    npy.write_array_header_1_0(
        file, {"descr": npy.dtype_to_descr(dtype), "fortran_order": fortran_order, "shape": shape}
    )
    return file.getvalue()


def _fortran_order_of_sum(*inputs: Input) -> bool:
    """Whether numpy.add gives the sum in Fortran order: asked of arrays with at most two elements along an axis.

    Of axes side by side that are alike, two are enough: NumPy puts each further one beside them. Thirty axes of two
    elements would be 1 GiB an array.
    """
    ndim = max(len(x.shape) for x in inputs)
    shapes = [(*(1,) * (ndim - len(x.shape)), *x.shape) for x in inputs]
    axes = [tuple(min(shape[i], 2) for shape in shapes) for i in range(ndim)]
    kept = [axis for i, axis in enumerate(axes) if i < 2 or not axes[i - 2] == axes[i - 1] == axis]
    few = [[axis[k] for axis in kept] for k in range(len(inputs))]
    small = [np.zeros(shape, bool, "F" if x.fortran_order else "C") for shape, x in zip(few, inputs, strict=True)]
    flags = np.asarray(np.add(*small)).flags
    return flags.f_contiguous and not flags.c_contiguous


def _add(x: Input, y: Input, total: Input, window: int, check: Check, tell: Progress | None, *, adds: bool) -> None:
    """Adds by as many threads as additions use; the sum has elements."""
    files = x, y, total
    threads = max(FEWEST_THREADS, min(MOST_THREADS, _core.host_facts()["threads"]))
    _core.add_files(
        tuple(file.descriptor for file in files),
        tuple(file.offset for file in files),
        tuple(file.dtype for file in files),
        tuple(file.shape for file in files),
        tuple(file.fortran_order for file in files),
        tuple(str(file.path) for file in files),
        window,
        [copy_context() for _ in range(threads)],  # numpy.errstate belongs to the context
        adds,
        tell and (lambda done: tell(done, math.prod(total.shape))),
        check.stopped,
    )


def _write(descriptor: int, data: bytes | memoryview, offset: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written


@contextmanager
def _replacing(path: Path, size: int, sync: bool, check: Check) -> Iterator[int]:
    """A descriptor to write ``size`` bytes to; they become the file ``path`` if the block ends without an exception,
    and ``check``, called when they are written (with ``sync``: on the disk), raises none.

    The file is closed before it takes the name: some file systems (NFS) write, or count a quota, only then.
    """
    place = Path(os.path.realpath(path))  # a link stays a link: what it points to is replaced
    mode = _mode_of(place)
    temporary = temporary_name(place)
    # A folder that may be written but not listed can be named, and cannot be synced.
    listed = os.access(place.parent, os.R_OK)
    folder = os.open(place.parent, (os.O_RDONLY if listed else os.O_PATH) | os.O_DIRECTORY | os.O_CLOEXEC)
    named = False
    try:
        with _naming(path):
            descriptor, named = _create(temporary)
        try:
            with _naming(path):
                if mode is not None:
                    os.fchmod(descriptor, mode)
                _reserve(descriptor, size)
            yield descriptor
            with _naming(path):
                if sync:
                    os.fsync(descriptor)
                check()
                if not named:
                    # Only with a dst_dir_fd does Python ask for the link in /proc to be followed.
                    os.link(f"/proc/self/fd/{descriptor}", temporary.name, dst_dir_fd=folder, follow_symlinks=True)
                    named = True
        except BaseException:
            with suppress(OSError):  # the first error says more
                os.close(descriptor)
            raise
        with _naming(path):
            os.close(descriptor)
            temporary.rename(place)
        named = False
        if sync and listed:
            with _naming(place.parent):
                os.fsync(folder)
    finally:
        if named:
            with suppress(OSError):
                temporary.unlink()
        with suppress(OSError):  # no write can fail here
            os.close(folder)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors of the system are said of that path: many calls name none, others a temporary."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


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
