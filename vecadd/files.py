"""Adds two .npy files of any size into a third, in bounded memory, so that no failure damages an existing file.

The sum is written to a file beside the target that takes its name only when it is complete, closed and, unless the
caller asks for less, on the disk. What is in between, reading, adding and writing, is csrc/files. Inputs are read
through windows, not mapped: one that shrinks under a mapping is a SIGBUS, and here an error. Mapped, they would save a
twentieth on tmpfs, and nothing on a disk.
"""

import ast
import errno
import io
import math
import os
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.lib import format as npy

from vecadd import _core
from vecadd._replace import naming, replacing, write_all

# What numpy.add makes of two operands, before anything is read of them.

MOST_AXES = 64  # of NumPy's arrays; it has no public name for it


class Operand(Protocol):
    """A file, or an array that is elsewhere."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its elements."""


def is_possible(shape: tuple[int, ...], itemsize: int) -> bool:
    """Whether NumPy has arrays of that shape: without elements too, the other extents count."""
    return len(shape) <= MOST_AXES and math.prod(extent for extent in shape if extent) * itemsize <= sys.maxsize


def shape_and_dtype(x: Operand, y: Operand, shapes: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the dtype that numpy.add gives the sum. ``shapes`` says for an error which operand has which.

    Raises ValueError where the shapes do not broadcast, or only to a shape that no array can have, and TypeError where
    numpy.add has no loop for the dtypes.
    """
    # Not by numpy.broadcast_shapes, which takes half as many axes as arrays may have.
    axes = max(len(x.shape), len(y.shape))
    pairs = list(zip(*((1,) * (axes - len(each.shape)) + each.shape for each in (x, y)), strict=True))
    if any(m != n and 1 not in (m, n) for m, n in pairs):
        raise ValueError(
            f"shapes that do not broadcast: {shapes}; along each axis, counted from the last, they have to be equal or "
            "one of them 1"
        )
    shape = tuple(n if m == 1 else m for m, n in pairs)
    dtype = np.add.resolve_dtypes((x.dtype, y.dtype, None))[2]
    assert isinstance(dtype, np.dtype)
    if not is_possible(shape, dtype.itemsize):
        raise ValueError(f"no array can have the sum's shape, {shape}: {shapes}")
    return shape, dtype


# Opens a .npy file to read from: what is in it, or why it cannot be added.

# Version 3 is read as 2 once its header is a literal in UTF-8: NumPy has no function of its own for it.
_READ_HEADER = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
    (3, 0): npy.read_array_header_2_0,
}

MOST_HEADER = 10_000  # bytes: NumPy refuses longer ones too, once it has read them, and they may be 4 GiB


@dataclass(frozen=True)
class Input:
    """An open file and the array in it."""

    path: Path
    descriptor: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    offset: int  # bytes of header


def _open_at_once(path: str, flags: int) -> int:
    """Opens without waiting for the writer of a pipe, which is refused later; regular files open as usual."""
    return os.open(path, flags | os.O_NONBLOCK)


@contextmanager
def open_input(path: Path) -> Iterator[Input]:
    """The array in the file, open to be read. Raises ValueError for what is not a .npy file that can be added."""
    with open(path, "rb", buffering=0, opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path} is not a regular file; it cannot be read through windows")
        if why := _another_kind(path, os.pread(file.fileno(), 64, 0)):
            raise ValueError(f"{path} is not a .npy file: {why}")
        try:
            version = npy.read_magic(file)
            if version not in _READ_HEADER:
                raise ValueError(f"format version {version[0]}.{version[1]} is unknown, 1.0 to 3.0 are read")
            length = int.from_bytes(os.pread(file.fileno(), 2 if version == (1, 0) else 4, npy.MAGIC_LEN), "little")
            if length > MOST_HEADER:
                raise ValueError(f"its header has {length} bytes, and those of arrays of numbers at most {MOST_HEADER}")
            if version == (3, 0):
                ast.literal_eval(os.pread(file.fileno(), length, npy.MAGIC_LEN + 4).decode())
            shape, fortran_order, dtype = _READ_HEADER[version](file)
            if any(type(extent) is not int or extent < 0 for extent in shape):
                raise ValueError(f"shape {shape} has an extent that is negative or no integer")
            if not is_possible(shape, dtype.itemsize):
                raise ValueError(f"no array of {dtype} can have its shape, {shape}")
        except (OSError, Warning):  # a warning that is an error stays one: NumPy warns of headers of Python 2
            raise
        except Exception as error:  # for garbage NumPy passes on the exceptions of tokenize, ast and numpy.dtype
            raise ValueError(f"{path} is not a .npy file that can be read: {error}") from error
        if dtype.hasobject:
            raise ValueError(
                f"{path} contains Python objects ({dtype}), and files are never unpickled; save its array again with a "
                "dtype of numbers: numpy.save(file, array.astype(float))"
            )
        if dtype.kind == "V":
            raise ValueError(f"{path} has {dtype}, which is structured or raw bytes; numpy.add has no sum for those")
        if dtype.itemsize == 0:  # NumPy takes memory of such a dtype for elements of one byte
            raise ValueError(f"{path} has {dtype}, whose elements have no bytes; there is nothing to add")
        offset = file.tell()
        expected = offset + math.prod(shape) * dtype.itemsize
        if status.st_size != expected:
            wrong = "cut short" if status.st_size < expected else "too long"
            raise ValueError(
                f"{path} is {wrong}: {status.st_size} bytes, where {dtype} of shape {shape} makes {expected}"
            )
        yield Input(path, file.fileno(), dtype, shape, fortran_order, offset)


def _another_kind(path: Path, begin: bytes) -> str:
    """What a file is that begins so, and what to do with it; nothing for a .npy file."""
    if begin.startswith(npy.MAGIC_PREFIX[: len(begin)]) and begin:
        return "it is cut short in its first bytes" if len(begin) < npy.MAGIC_LEN else ""
    if not begin:
        return "it is empty"
    if begin.startswith(b"PK\x03\x04"):
        take_out = "save the one that you mean: numpy.save(file, numpy.load(archive)[name])"
        return f"it is a zip archive{_arrays_of(path)}; {take_out}"
    if begin.startswith(b"\x80"):
        return "it seems to be a pickle, and files are never unpickled; write it by numpy.save"
    if begin.startswith(b"\x89HDF"):
        return "it is an HDF5 file; write its array by numpy.save"
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in begin):
        return "it seems to be text; write its numbers by numpy.save(file, numpy.loadtxt(text))"
    return f"it begins with {begin[:8]!r}"


def _arrays_of(path: Path) -> str:
    """The arrays in a .npz archive, in words."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    except (OSError, zipfile.BadZipFile):
        names = []
    return f" of arrays (.npz) with {', '.join(names[:10])}" if names else ""


Progress = Callable[[int, int], object]

__all__ = ["Progress", "add_files"]

# Bytes of each input that a thread has in memory: two fit in 1 MiB of L2, and the sum overwrites the first.
WINDOW = 512 << 10
FEWEST_THREADS, MOST_THREADS = 2, 16  # one waits for the disk while the other adds; on two processors 4 took longer

Name = str | os.PathLike[str]


def add_files(
    a: Name, b: Name, out: Name, *, window: int = WINDOW, sync: bool = True, progress: Progress | None = None
) -> None:
    """Writes the sum of the arrays in the .npy files ``a`` and ``b`` to the .npy file ``out``.

    The file is the one that ``numpy.save(out, numpy.add(a, b))`` would write: shapes broadcast, dtypes may differ, and
    each file may be in C or in Fortran order. ``out`` may be one of the inputs. It takes its name only when the sum is
    complete; a file that it replaces stays as it was until then, and its permissions are kept.

    window
        Bytes of each file that one thread has in memory, eight times as many where the files' memory orders differ;
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
    with ExitStack() as stack:
        x = stack.enter_context(open_input(Path(a)))
        y = stack.enter_context(open_input(Path(b)))
        shape, dtype = shape_and_dtype(x, y, f"{x.path} has {x.shape}, {y.path} has {y.shape}")
        fortran_order = _fortran_order_of_sum(x, y)
        header = _header(dtype, shape, fortran_order)
        size = math.prod(shape)
        path = Path(out)
        _refuse_target(path)
        target = stack.enter_context(replacing(path, len(header) + size * dtype.itemsize, sync=sync))
        with naming(path):
            write_all(target, header)
        total = Input(path, target, dtype, shape, fortran_order, len(header))
        if size:
            _add(x, y, total, window, progress, adds=adds)


def _refuse_target(path: Path) -> None:
    """Raises ValueError or PermissionError where the path is a file that is not to be replaced."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} exists and is not a regular file; it is not replaced")
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "exists and is write-protected", str(path))


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


def _add(x: Input, y: Input, total: Input, window: int, progress: Progress | None, *, adds: bool) -> None:
    """Adds by as many threads as additions use; the sum has elements. An interrupt is raised when they have ended: no
    thread writes to a file that is closed, nor to the next one that gets its descriptor's number."""
    files, size = (x, y, total), math.prod(total.shape)
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
        None if progress is None else lambda done: progress(done, size),  # which may be false, as an empty list
    )
