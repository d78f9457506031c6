"""Operands to time with: random values, several sets in rotation, matrices, and the exact check of what is left."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from vecadd import _core

# Inputs repeat after a prime number of elements: no block, vector or chunk boundary falls on the same values twice, and
# filling a gigabyte costs a copy in place of 3 s of random numbers. A `MemoryKind` with `repeat` gives both inputs the
# first period, and so their sum: an element that comes from a whole number of periods away would go unseen there.
PERIOD_A, PERIOD_B = 1_000_003, 999_983

CHECK = 1 << 20  # elements compared at a time, so that a check needs no array of its own size
KEPT = 1 << 30  # bytes of sums kept from check to check: 2^28 float16 sums take NumPy 1 s, and a cell checks each rung

FLOAT32 = np.dtype(np.float32)  # of all matrices
APART = 7919  # from set to set: where in the random pattern each begins

EXACT = 2**24  # whole numbers up to here are float32 numbers
MOST = 4095  # 12 bits: TF32 keeps 11 of a value, and would show


class Buffers(NamedTuple):
    """One set of operands; ``start`` says where in the random pattern its values begin."""

    a: Any
    b: Any
    out: Any
    start: int


@dataclass(frozen=True)
class MemoryKind:
    """A kind of memory: how a host array gets there and back, and how an array there is overwritten or made 0.

    Where filling and checking gigabytes from the host would take longer than timing them, ``repeat(x, n)`` makes an
    array of n elements that repeats x, and ``differs(y, x)`` gives the first element at which y differs from x
    repeated, bit for bit; None where none does.
    """

    name: str
    put: Callable[[NDArray[Any]], Any]
    get: Callable[[Any], NDArray[Any]]
    poison: Callable[[Any], object] = _core.poison
    clear: Callable[[Any], object] = _core.clear
    on_gpu: bool = False
    repeat: Callable[[NDArray[Any], int], Any] | None = None
    differs: Callable[[Any, NDArray[Any]], int | None] | None = None


def _copy_to_pinned(x: NDArray[Any]) -> NDArray[Any]:
    copy = _core.empty_pinned(x.shape, x.dtype)
    copy[...] = x
    return copy


HOST = MemoryKind("host", put=lambda x: x, get=lambda x: x)
PINNED = MemoryKind("pinned", put=_copy_to_pinned, get=lambda x: x)
DEVICE = MemoryKind("device", put=_core.to_device, get=lambda x: x.numpy(), on_gpu=True)


class WrongSumError(Exception):
    """A timed call left something else than the sum in its output."""


class Pattern:
    """The random values of one dtype, from which every operand is filled and every sum is checked."""

    def __init__(self, dtype: np.dtype[Any], seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.dtype = dtype
        self._a = _random_values(random, dtype, PERIOD_A)
        self._b = _random_values(random, dtype, PERIOD_B)
        self._kept: dict[tuple[int, int, int], NDArray[Any]] = {}

    def buffers(self, memory: MemoryKind, n: int, sets: int) -> list[Buffers]:
        """``sets`` sets of three arrays of n elements, each with values of its own; outputs are poisoned."""
        self._kept.clear()
        return [self._set(memory, n, start=index * APART) for index in range(sets)]

    def _set(self, memory: MemoryKind, n: int, start: int) -> Buffers:
        patterns = self._a, self._b
        if memory.repeat is not None and n > PERIOD_A:
            out = memory.repeat(self._a, n)
            a, b = (memory.repeat(_repeated(pattern, start, PERIOD_A), n) for pattern in patterns)
        else:
            out = memory.put(np.empty(n, self.dtype))
            a, b = (memory.put(_repeated(pattern, start, n)) for pattern in patterns)
        memory.poison(out)
        return Buffers(a, b, out, start)

    def check(self, memory: MemoryKind, used: Buffers, times: int = 1, chain: int = 1) -> None:
        """Compares every element of the output with numpy.add's, bit for bit; raises WrongSumError.

        ``times`` is how often the sum was added to an output of 0: every addition adds the same number, so that their
        order does not matter, and each is rounded. ``chain`` is how often b was added, the first time to a. float16 and
        bfloat16 are added as float32 and rounded to nearest even, which has more than twice their digits and 2: their
        sums are the correctly rounded ones (Figueroa, When is double rounding innocuous?, 1995).
        """
        if memory.repeat is not None and memory.differs is not None and len(used.out) > PERIOD_A:
            at = memory.differs(used.out, self._expected(used.start, PERIOD_A, times, chain))
            if at is not None:
                raise WrongSumError(f"element {at} is not the sum")
            return
        got = memory.get(used.out)
        for first in range(0, got.size, CHECK):
            part = got[first : first + CHECK]
            want = self._expected(used.start + first, part.size, times, chain)
            wrong = np.flatnonzero(_words(part) != _words(want))
            if wrong.size:
                at = int(wrong[0]) * _words(part).itemsize // part.itemsize
                raise WrongSumError(f"element {first + at} is {part[at]}, the sum is {want[at]}")

    def _expected(self, start: int, n: int, times: int, chain: int) -> NDArray[Any]:
        """The output after adding the sum ``times`` times to 0; the sum itself for one."""
        once = self._sum(start, n, chain)
        want = once if times == 1 else once.copy()
        for _ in range(times - 1):
            want += once
        return want

    def _sum(self, start: int, n: int, chain: int) -> NDArray[Any]:
        """a + b, and + b again until it was added ``chain`` times."""
        known = self._kept.get((start, n, chain))
        if known is not None:
            return known
        b = _repeated(self._b, start, n)
        result: NDArray[Any] = np.add(_repeated(self._a, start, n), b)
        for _ in range(chain - 1):
            result += b
        if sum(kept.nbytes for kept in self._kept.values()) + result.nbytes <= KEPT:
            self._kept[start, n, chain] = result
        return result


def _random_values(random: np.random.Generator, dtype: np.dtype[Any], n: int) -> NDArray[Any]:
    """Values whose sums neither overflow nor all share an exponent; integers wrap as they like."""
    if dtype.kind == "b":
        return random.integers(0, 2, n).astype(dtype)
    if dtype.kind in "iu":
        return np.frombuffer(random.bytes(n * dtype.itemsize), dtype)
    if dtype.kind == "c":
        return (random.standard_normal(n) + 1j * random.standard_normal(n)).astype(dtype)
    return random.standard_normal(n).astype(dtype)


def _repeated(pattern: NDArray[Any], start: int, n: int) -> NDArray[Any]:
    """n elements of the endlessly repeated pattern from ``start`` on, as an array of its own."""
    result = np.empty(n, pattern.dtype)
    done, at = 0, start % pattern.size
    while done < n:
        count = min(pattern.size - at, n - done)
        result[done : done + count] = pattern[at : at + count]
        done, at = done + count, 0
    return result


def _words(x: NDArray[Any]) -> NDArray[Any]:
    """The bits of x as unsigned integers: equal as numbers is not enough."""
    return x.view(f"u{min(x.itemsize, 8)}")


class Matrices(Protocol):
    """The operands of a cell of matrices. ``shape`` is what `vecadd.model.theory.extents` gives, ``nbytes`` the
    bytes of a set."""

    shape: tuple[int, ...]
    nbytes: int

    def buffers(self, memory: MemoryKind, sets: int) -> list[Buffers]:
        """``sets`` sets, each with values of its own; outputs are poisoned."""

    def result(self, start: int, left: str) -> NDArray[Any]:
        """What a rung has to leave of the set with that ``start``: its "copy", "transpose" or "product"."""


class Transposed:
    """Matrices of which no two elements have the same bits, up to 2^32 elements: one that is not where it belongs is
    seen. Some are NaNs, which loads and stores keep."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.nbytes = 2 * FLOAT32.itemsize * math.prod(shape)

    def buffers(self, memory: MemoryKind, sets: int) -> list[Buffers]:
        """``sets`` sets of a matrix and its transpose."""
        starts = range(0, sets * APART, APART)
        return [_matrix_set(memory, self.result(start, "copy"), None, self.shape[::-1], start) for start in starts]

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

    def buffers(self, memory: MemoryKind, sets: int) -> list[Buffers]:
        """``sets`` sets of two factors and their product."""
        self._products.clear()
        return [_matrix_set(memory, *self.factors(start), self.shape[:2], start) for start in range(sets)]

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


def compare_matrices(out: Any, want: NDArray[Any]) -> None:
    """Raises WrongSumError unless the DeviceArray has the elements of ``want``, bit for bit."""
    got = out.numpy().reshape(want.shape)
    wrong = np.flatnonzero(got.view(np.uint32) != np.ascontiguousarray(want).view(np.uint32))
    if wrong.size:
        at = tuple(map(int, np.unravel_index(wrong[0], want.shape)))
        raise WrongSumError(f"element {at} is {got[at]}, and must be {want[at]}")


def _matrix_set(
    memory: MemoryKind, a: NDArray[Any], b: NDArray[Any] | None, shape: tuple[int, ...], start: int
) -> Buffers:
    out = memory.put(np.empty(shape, FLOAT32))
    memory.poison(out)
    return Buffers(memory.put(a), None if b is None else memory.put(b), out, start)
