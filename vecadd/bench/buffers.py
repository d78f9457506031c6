"""Operands to time with: random values, several sets in rotation, and the exact check of a sum."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vecadd import _core

# Inputs repeat after a prime number of elements: no block, vector or chunk boundary falls on the same values twice, and
# filling a gigabyte costs a copy in place of 3 s of random numbers. A `Place` with `repeat` gives both inputs the first
# period, and so their sum: an element that comes from a whole number of periods away would go unseen there.
PERIOD_A, PERIOD_B = 1_000_003, 999_983

CACHES = 4  # the sets together are this many times as large as the cache, so that it does not help
MOST_SETS = 64  # small sets stay in the cache whatever their number; more would only cost time to fill

CHECK = 1 << 20  # elements compared at a time, so that a check needs no array of its own size
KEPT = 1 << 30  # bytes of sums kept from check to check: 2^28 float16 sums take NumPy 1 s, and a cell checks each rung


class Buffers(NamedTuple):
    """One set of operands; ``start`` says where in the random pattern its values begin."""

    a: Any
    b: Any
    out: Any
    start: int


@dataclass(frozen=True)
class Place:
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


def _pinned(x: NDArray[Any]) -> NDArray[Any]:
    copy = _core.empty_pinned(x.shape, x.dtype)
    copy[...] = x
    return copy


HOST = Place("host", put=lambda x: x, get=lambda x: x)
PINNED = Place("pinned", put=_pinned, get=lambda x: x)
DEVICE = Place("device", put=_core.to_device, get=lambda x: x.numpy(), on_gpu=True)


class WrongSumError(Exception):
    """A timed call left something else than the sum in its output."""


class Pattern:
    """The random values of one dtype, from which every operand is filled and every sum is checked."""

    def __init__(self, dtype: np.dtype[Any], seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.dtype = dtype
        self._a = _random(random, dtype, PERIOD_A)
        self._b = _random(random, dtype, PERIOD_B)
        self._kept: dict[tuple[int, int, int], NDArray[Any]] = {}

    def buffers(self, place: Place, n: int, sets: int) -> list[Buffers]:
        """``sets`` sets of three arrays of n elements, each with values of its own; outputs are poisoned."""
        self._kept.clear()
        return [self._set(place, n, start=index * 7919) for index in range(sets)]

    def _set(self, place: Place, n: int, start: int) -> Buffers:
        patterns = self._a, self._b
        if place.repeat is not None and n > PERIOD_A:
            out = place.repeat(self._a, n)
            a, b = (place.repeat(_cut(pattern, start, PERIOD_A), n) for pattern in patterns)
        else:
            out = place.put(np.empty(n, self.dtype))
            a, b = (place.put(_cut(pattern, start, n)) for pattern in patterns)
        place.poison(out)
        return Buffers(a, b, out, start)

    def check(self, place: Place, used: Buffers, times: int = 1, chain: int = 1) -> None:
        """Compares every element of the output with numpy.add's, bit for bit; raises WrongSumError.

        ``times`` is how often the sum was added to an output of 0: every addition adds the same number, so that their
        order does not matter, and each is rounded. ``chain`` is how often b was added, the first time to a. float16 and
        bfloat16 are added as float32 and rounded to nearest even, which has more than twice their digits and 2: their
        sums are the correctly rounded ones (Figueroa, When is double rounding innocuous?, 1995).
        """
        if place.repeat is not None and place.differs is not None and len(used.out) > PERIOD_A:
            at = place.differs(used.out, self._wanted(used.start, PERIOD_A, times, chain))
            if at is not None:
                raise WrongSumError(f"element {at} is not the sum")
            return
        got = place.get(used.out)
        for first in range(0, got.size, CHECK):
            part = got[first : first + CHECK]
            want = self._wanted(used.start + first, part.size, times, chain)
            wrong = np.flatnonzero(_words(part) != _words(want))
            if wrong.size:
                at = int(wrong[0]) * _words(part).itemsize // part.itemsize
                raise WrongSumError(f"element {first + at} is {part[at]}, the sum is {want[at]}")

    def _wanted(self, start: int, n: int, times: int, chain: int) -> NDArray[Any]:
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
        b = _cut(self._b, start, n)
        result: NDArray[Any] = np.add(_cut(self._a, start, n), b)
        for _ in range(chain - 1):
            result += b
        if sum(kept.nbytes for kept in self._kept.values()) + result.nbytes <= KEPT:
            self._kept[start, n, chain] = result
        return result


def rotation(set_bytes: int, cache: int, memory: int) -> int:
    """How many sets of ``set_bytes`` to rotate over: enough to exceed the cache if MOST_SETS and ``memory`` allow
    it."""
    wanted = math.ceil(CACHES * cache / set_bytes)
    return max(1, min(wanted, MOST_SETS, memory // set_bytes))


def _random(random: np.random.Generator, dtype: np.dtype[Any], n: int) -> NDArray[Any]:
    """Values whose sums neither overflow nor all share an exponent; integers wrap as they like."""
    if dtype.kind == "b":
        return random.integers(0, 2, n).astype(dtype)
    if dtype.kind in "iu":
        return np.frombuffer(random.bytes(n * dtype.itemsize), dtype)
    if dtype.kind == "c":
        return (random.standard_normal(n) + 1j * random.standard_normal(n)).astype(dtype)
    return random.standard_normal(n).astype(dtype)


def _cut(pattern: NDArray[Any], start: int, n: int) -> NDArray[Any]:
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
