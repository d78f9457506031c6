"""Opens a .npy file to read from: what it holds, or why it cannot be added."""

import ast
import math
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from vecadd._sum import is_possible

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
                f"{path} holds Python objects ({dtype}), and files are never unpickled; save its array again with a "
                "dtype of numbers: numpy.save(file, array.astype(float))"
            )
        if dtype.kind == "V":
            raise ValueError(f"{path} holds {dtype}, which is structured or raw bytes; numpy.add has no sum for those")
        if dtype.itemsize == 0:  # NumPy takes memory of such a dtype for elements of one byte
            raise ValueError(f"{path} holds {dtype}, whose elements have no bytes; there is nothing to add")
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
    return f" of arrays (.npz) that holds {', '.join(names[:10])}" if names else ""
