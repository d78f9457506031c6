"""Files that are added: their bytes, and a target that was there before."""

import errno
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import tame_values

OLD = b"what was there before"
_open = os.open


def npy_bytes(x: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    """x as numpy.save writes it; an array in Fortran order stays in it."""
    file = io.BytesIO()
    np.lib.format.write_array(file, x, version)
    return file.getvalue()


def npy_header(descr: str, shape: str) -> bytes:
    """The header of a .npy file whose entries NumPy would not write."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def operands(dtype: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    size = int(np.prod(shape))
    a = tame_values(np.dtype("int64"), size, seed=1).reshape(shape)
    b = tame_values(np.dtype("int64"), size, seed=2).reshape(shape)
    second = "m8[s]" if "M8" in dtype else dtype
    return a.astype(dtype), b.astype(second)


def assert_untouched(folder: Path) -> None:
    assert (folder / "c.npy").read_bytes() == OLD
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "b.npy", "c.npy"]


def fill_folder(folder: Path) -> Path:
    """The folder with two summands, a.npy and b.npy, and a target c.npy with something else in it."""
    for name, x in zip(("a.npy", "b.npy"), operands("float32", (1000,)), strict=True):
        (folder / name).write_bytes(npy_bytes(x))
    (folder / "c.npy").write_bytes(OLD)
    return folder


def open_without_tmpfile(path: Any, flags: int, mode: int = 0o777, **keywords: Any) -> int:
    """os.open on a file system that has no O_TMPFILE."""
    if flags & os.O_TMPFILE == os.O_TMPFILE:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")
    return _open(path, flags, mode, **keywords)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill_folder(tmp_path)


@pytest.fixture(params=["without a name", "with a name"])
def temporary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of temporary file: the second is for file systems without O_TMPFILE."""
    if request.param == "with a name":
        monkeypatch.setattr(os, "open", open_without_tmpfile)
    return str(request.param)
