"""Where the operands of an addition lie, and arrays of our own that lie the same way."""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
    """The same in memory of its own; one number, one memory."""
    return replace(layout, address=number << 50)  # beyond all addresses of a process


def meet(one: Layout, other: Layout) -> bool:
    """Whether the memory between first and last elements is shared."""
    (low, high), (left, right) = one.extent, other.extent
    return low < right and left < high


def share(one: Layout, other: Layout) -> bool:
    """Whether they meet without being the same elements."""
    same = (one.address, one.shape, one.strides) == (other.address, other.shape, other.strides)
    return meet(one, other) and not same


def made(layouts: Sequence[Layout]) -> list[NDArray[Any]]:
    """Arrays of zeros that lie to each other and in their pages as these do, in memory that has been written."""
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
        memory = np.empty(high - low + mmap.PAGESIZE, np.uint8)
        memory.fill(0)
        first = (low - memory.ctypes.data) % mmap.PAGESIZE
        for at in numbers:
            layout = layouts[at]
            arrays[at] = np.ndarray(layout.shape, layout.dtype, memory, first + layout.address - low, layout.strides)
    return [arrays[at] for at in range(len(layouts))]


def fresh(layout: Layout, huge: bool) -> NDArray[Any]:
    """An array in pages that nothing has been written to, small or huge ones."""
    low, high = layout.extent
    memory = mmap.mmap(-1, high - low, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    return np.ndarray(layout.shape, layout.dtype, memory, layout.address - low, layout.strides)
