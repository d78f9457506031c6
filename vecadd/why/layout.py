"""Where the operands of an addition lie, and arrays of our own that lie the same way."""

import mmap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

HUGE_FROM = 4 << 20  # bytes of an array, for which NumPy asks for huge pages
LINE = 64  # bytes of a cache line
ALONE = 64 << 20  # bytes of an array that malloc lays in a mapping of its own: it does so from 32 MiB on at the latest


@dataclass(frozen=True)
class Layout:
    """A NumPy array's dtype, shape, strides in bytes, and address.

    ``starts`` are how many bytes behind a cache line the arrays began that took its place in other calls, each as often
    as its share of them; empty where nothing is known of others.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    starts: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def extent(self) -> tuple[int, int]:
        """The first address, and the one behind the last."""
        reaches = [(length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True)]
        low, high = (sum(reach for reach in reaches if (reach < 0) is side) for side in (True, False))
        return self.address + low, self.address + high + self.dtype.itemsize

    @property
    def contiguous(self) -> bool:
        """Whether the elements fill one run of memory."""
        low, high = self.extent
        return high - low == self.nbytes

    @property
    def converted(self) -> bool:
        """Whether NumPy copies the elements before it adds them, whatever the dtype of the sum."""
        return not self.dtype.isnative or self.address % self.dtype.alignment != 0


def compact(layout: Layout, dtype: np.dtype[Any] | None = None, shape: tuple[int, ...] | None = None) -> Layout:
    """One run of memory in C order, in the machine's byte order."""
    dtype, shape = dtype or layout.dtype, shape or layout.shape
    if not dtype.isnative:  # NumPy is slower where equal dtypes are not one object, so the built-in one is asked for
        dtype = np.dtype(dtype.newbyteorder("=").str)
    strides = tuple(dtype.itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return Layout(dtype, shape, strides, layout.address)


def elsewhere(layout: Layout, number: int) -> Layout:
    """The same in memory of its own, where NumPy would lay a new array; one number, one memory."""
    beyond = number << 50  # all addresses of a process
    return replace(layout, address=beyond + _header() + layout.address - layout.extent[0], starts=())


@cache
def _header() -> int:
    """How far into its page NumPy lays a new large array: glibc's malloc leaves 16 bytes, so that AVX-512 reads across
    two cache lines each time. An addition in the L3 takes 1.3 times as long there as at the beginning of a page."""
    return np.empty(ALONE, np.uint8).ctypes.data % mmap.PAGESIZE


def meet(one: Layout, other: Layout) -> bool:
    """Whether the memory between first and last elements is shared."""
    (low, high), (left, right) = one.extent, other.extent
    return low < right and left < high


def share(one: Layout, other: Layout) -> bool:
    """Whether they meet without being the same elements."""
    same = (one.address, one.shape, one.strides) == (other.address, other.shape, other.strides)
    return meet(one, other) and not same


def made(layouts: Sequence[Layout], number: int = 0) -> list[NDArray[Any]]:
    """Arrays of zeros that lie to each other and in their pages as these do, in memory that has been written; in cache
    lines as the arrays of that number among their ``starts``.

    It is not NumPy's: after a program, malloc hands out what the program has dropped, huge pages also for small arrays.
    """
    blocks: list[list[int]] = []  # [low, high, numbers of the layouts...] of those that share memory
    for at, layout in sorted(enumerate(layouts), key=lambda pair: pair[1].extent):
        low, high = layout.extent
        if blocks and low < blocks[-1][1]:
            blocks[-1][1] = max(blocks[-1][1], high)
            blocks[-1].append(at)
        else:
            blocks.append([low, high, at])
    arrays: dict[int, NDArray[Any]] = {}
    for low, high, *numbers in blocks:
        memory = _mapped(high - low + mmap.PAGESIZE)
        if high - low >= HUGE_FROM:
            _advise(memory, mmap.MADV_HUGEPAGE)
        np.frombuffer(memory, np.uint8).fill(0)
        lowest = layouts[numbers[0]]
        moved = lowest.starts[number % len(lowest.starts)] - lowest.address % LINE // 16 * 16 if lowest.starts else 0
        first = (low + moved) % mmap.PAGESIZE
        for at in numbers:
            layout = layouts[at]
            arrays[at] = np.ndarray(layout.shape, layout.dtype, memory, first + layout.address - low, layout.strides)
    return [arrays[at] for at in range(len(layouts))]


def fresh(layout: Layout, huge: bool) -> NDArray[Any]:
    """An array in pages that nothing has been written to, small or huge ones."""
    low, high = layout.extent
    memory = _mapped(high - low + mmap.PAGESIZE)
    _advise(memory, mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    first = low % mmap.PAGESIZE
    return np.ndarray(layout.shape, layout.dtype, memory, first + layout.address - low, layout.strides)


def _advise(memory: mmap.mmap, advice: int) -> None:
    with suppress(OSError):  # of a kernel that was built without huge pages
        memory.madvise(advice)


def _mapped(nbytes: int) -> mmap.mmap:
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
