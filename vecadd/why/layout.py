"""The addresses and strides of an addition's operands, and arrays of our own that have the same."""

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
MAPPED = 64 << 20  # bytes of an array for which malloc makes a mapping: it does so from 32 MiB on at the latest


@dataclass(frozen=True)
class Layout:
    """A NumPy array's dtype, shape, strides in bytes, and address."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int

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
        """The first address, and the one after the last."""
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


def moved_apart(layout: Layout, number: int) -> Layout:
    """The same in memory of its own, one for each number, as far into a page as NumPy's new arrays begin."""
    beyond = number << 50  # all addresses of a process
    return replace(layout, address=beyond + _header() + layout.address - layout.extent[0])


@cache
def _header() -> int:
    """How far into its page a new large array of NumPy begins: glibc's malloc leaves 16 bytes, so that AVX-512 reads
    across two cache lines each time. An addition in the L3 takes 1.3 times as long there as at the page's beginning."""
    return np.empty(MAPPED, np.uint8).ctypes.data % mmap.PAGESIZE


def overlap(one: Layout, other: Layout) -> bool:
    """Whether the memory between first and last elements is shared."""
    (low, high), (left, right) = one.extent, other.extent
    return low < right and left < high


def overlap_in_part(one: Layout, other: Layout) -> bool:
    """Whether they overlap without being the same elements."""
    same = (one.address, one.shape, one.strides) == (other.address, other.shape, other.strides)
    return overlap(one, other) and not same


def allocate_like(layouts: Sequence[Layout]) -> list[NDArray[Any]]:
    """Arrays of zeros with these offsets to each other and into their pages, in memory that has been written.

    The memory is not NumPy's: after a program, malloc gives what the program has dropped, huge pages for small arrays
    too.
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
        memory = _map(high - low)
        np.frombuffer(memory, np.uint8).fill(0)
        for at in numbers:
            arrays[at] = _array(layouts[at], memory, low)
    return [arrays[at] for at in range(len(layouts))]


def allocate_untouched(layout: Layout) -> NDArray[Any]:
    """An array in pages to which nothing has been written."""
    low, high = layout.extent
    return _array(layout, _map(high - low), low)


def _array(layout: Layout, memory: mmap.mmap, low: int) -> NDArray[Any]:
    """In memory for addresses from `low` on."""
    offset = low % mmap.PAGESIZE + layout.address - low
    return np.ndarray(layout.shape, layout.dtype, memory, offset, layout.strides)


def _map(nbytes: int) -> mmap.mmap:
    """Memory for that many bytes from anywhere in a page on, in huge pages where NumPy asks for them."""
    memory = mmap.mmap(-1, nbytes + mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if nbytes >= HUGE_FROM:
        with suppress(OSError):  # of a kernel that was built without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
