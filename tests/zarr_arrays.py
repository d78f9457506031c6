"""Zarr arrays that are added: made, read back, and what is beside them."""

from pathlib import Path
from typing import Any

import numpy as np
import zarr
from npy_files import operands
from zarr.abc.store import Store

import vecadd

Place = str | Path | Store


def make(place: Place, x: np.ndarray, chunks: tuple[int, ...], **keywords: Any) -> "zarr.Array[Any]":
    """A Zarr array there of those elements."""
    array = zarr.create_array(place, shape=x.shape, dtype=x.dtype, chunks=chunks, **keywords)
    array[...] = x
    return array


def read(place: Place) -> np.ndarray:
    """The elements of the array there."""
    return np.asarray(zarr.open_array(place, mode="r")[...])


def fill_folder(folder: Path, *, chunks: tuple[int, int] = (5, 5)) -> np.ndarray:
    """There a.zarr and b.zarr of 20 by 15 elements in other chunks, and another c.zarr. Gives the sum of the two."""
    a, b = operands("float32", (20, 15))
    make(folder / "a.zarr", a, chunks)
    make(folder / "b.zarr", b, (20, 2))
    make(folder / "c.zarr", np.full(3, 7), (3,))
    total: np.ndarray = a + b
    return total


def names(folder: Path) -> list[str]:
    """What is in the folder."""
    return sorted(path.name for path in folder.iterdir())


def files(folder: Path) -> dict[str, bytes]:
    """All files below the folder, and what they contain."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def add(folder: Path, **keywords: Any) -> None:
    """The arrays of fill_folder into its c.zarr."""
    vecadd.add_zarr(folder / "a.zarr", folder / "b.zarr", folder / "c.zarr", **keywords)


def assert_sum(folder: Path) -> None:
    """It is there, and nothing is left beside or in it."""
    np.testing.assert_array_equal(read(folder / "c.zarr"), read(folder / "a.zarr") + read(folder / "b.zarr"))
    assert names(folder) == ["a.zarr", "b.zarr", "c.zarr"]
    assert names(folder / "c.zarr") == ["c", "zarr.json"]
