"""Matrices to transpose and to multiply: their shapes, their values, and the exact check of what a rung leaves."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vecadd import _core
from vecadd.bench.buffers import DEVICE, Buffers, Place, WrongSumError
from vecadd.bench.contestants import Contestant, kernel_facts
from vecadd.model.matrix_shapes import extents as extents
from vecadd.model.matrix_shapes import near_square as near_square

FLOAT32 = np.dtype(np.float32)
APART = 7919  # from set to set

EXACT = 2**24  # whole numbers up to here are float32 numbers
MOST = 4095  # 12 bits: TF32 keeps 11 of a value, and would show

CUBLAS = "cublas"  # the contestant that is no rung


class Matrices(Protocol):
    """The operands of a cell. ``shape`` is what `extents` gives, ``nbytes`` the bytes of a set."""

    shape: tuple[int, ...]
    nbytes: int

    def buffers(self, place: Place, sets: int) -> list[Buffers]: ...
    def result(self, start: int, left: str) -> NDArray[Any]:
        """What a rung has to leave of the set with that ``start``: its "copy", "transpose" or "product"."""


class Transposed:
    """Matrices of which no two elements have the same bits, up to 2^32 elements: one that is not where it belongs is
    seen. Some are NaNs, which loads and stores keep."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.nbytes = 2 * FLOAT32.itemsize * math.prod(shape)

    def buffers(self, place: Place, sets: int) -> list[Buffers]:
        """``sets`` sets of a matrix and its transpose."""
        starts = range(0, sets * APART, APART)
        return [_set(place, self.result(start, "copy"), None, self.shape[::-1], start) for start in starts]

    def result(self, start: int, left: str) -> NDArray[Any]:
        """The matrix or its transpose."""
        bits = np.arange(math.prod(self.shape), dtype=np.uint32) + np.uint32(start)
        matrix = bits.view(FLOAT32).reshape(self.shape)
        return matrix if left == "copy" else matrix.T


class Factors:
    """Two matrices of whole numbers whose product is exact in float32 by any order of summation, because no partial sum
    exceeds EXACT: a product is right in every bit or wrong. Values of 12 bits show TF32, which keeps 11."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = rows, columns, inner = shape
        self.nbytes = FLOAT32.itemsize * (rows * inner + inner * columns + rows * columns)
        self._products: dict[int, NDArray[Any]] = {}

    def buffers(self, place: Place, sets: int) -> list[Buffers]:
        """``sets`` sets of two factors and their product."""
        self._products.clear()
        return [_set(place, *self.factors(start), self.shape[:2], start) for start in range(sets)]

    def result(self, start: int, left: str) -> NDArray[Any]:
        """The product, by NumPy."""
        if start not in self._products:
            self._products[start] = np.matmul(*self.factors(start))
        return self._products[start]

    def factors(self, start: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """The factors of the set with that ``start``."""
        rows, columns, inner = self.shape
        random = np.random.default_rng(start)
        most = min(MOST, EXACT // max(inner, 1))
        a = random.integers(-most, most, (rows, inner), np.int16, endpoint=True)
        b = random.integers(-1, 1, (inner, columns), np.int8, endpoint=True)
        return a.astype(FLOAT32), b.astype(FLOAT32)


def contestant(rung: Mapping[str, Any], matrices: Matrices, n: int) -> Contestant:
    """A matrix rung that makes n elements; its rows have the kernel's facts and its shared memory."""
    name, left, shape = rung["name"], rung["sum"], matrices.shape
    turned = shape[:2] if left == "copy" else None

    def time(sets: Sequence[Buffers]) -> float:
        outs = [used.out.reshape(turned) if turned else used.out for used in sets]
        return sum(_core.run_rung(name, used.a, used.b, out) for used, out in zip(sets, outs, strict=True)) / len(sets)

    def inspect(_: Buffers) -> dict[str, Any]:
        shared = _core.rung_facts(name, str(FLOAT32), shape)["static_shared"]
        return {**kernel_facts(name, str(FLOAT32), shape), "shared": shared}

    return Contestant(
        name,
        DEVICE,
        time,
        {"shape": list(shape), "load": rung["load"]},
        arrays=matrices.nbytes / FLOAT32.itemsize / n,
        inspect=inspect,
        check=lambda used: compare(used.out, matrices.result(used.start, left)),
    )


def compare(out: Any, want: NDArray[Any]) -> None:
    """Raises WrongSumError unless the DeviceArray has the elements of ``want``, bit for bit."""
    got = out.numpy().reshape(want.shape)
    wrong = np.flatnonzero(got.view(np.uint32) != np.ascontiguousarray(want).view(np.uint32))
    if wrong.size:
        at = tuple(map(int, np.unravel_index(wrong[0], want.shape)))
        raise WrongSumError(f"element {at} is {got[at]}, and must be {want[at]}")


def _set(place: Place, a: NDArray[Any], b: NDArray[Any] | None, shape: tuple[int, ...], start: int) -> Buffers:
    out = place.put(np.empty(shape, FLOAT32))
    place.poison(out)
    return Buffers(place.put(a), None if b is None else place.put(b), out, start)
