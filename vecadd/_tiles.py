"""How to walk through two arrays in files and their sum, a tile at a time, with as few reads and writes as possible.

The axes of a walk are those of the sum, in the order in which it lies in its file: the last is contiguous. Axes of one
element are left out, and neighbours that are one run of memory in all three arrays are one axis: two files of one shape
and order have a single axis.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

Shape = tuple[int, ...]


def fortran_order_of_sum(*arrays: tuple[Shape, bool]) -> bool:
    """Whether numpy.add gives the sum of arrays of these (shape, Fortran order) in Fortran order: asked of arrays with
    at most two elements along an axis."""
    small = [np.zeros([min(n, 2) for n in shape], bool, "F" if fortran else "C") for shape, fortran in arrays]
    flags = np.asarray(np.add(*small)).flags
    return flags.f_contiguous and not flags.c_contiguous


@dataclass(frozen=True)
class Walk:
    """``steps`` has for each array, the sum first, the elements from one to the next along each axis; 0 where the array
    is broadcast."""

    extents: Shape
    steps: tuple[Shape, ...]

    @staticmethod
    def through(shape: Shape, fortran: bool, *inputs: tuple[Shape, bool]) -> "Walk":
        """The walk through a sum of this shape and order, and through inputs that are broadcast to it."""
        every = [_steps(*each, len(shape)) for each in ((shape, fortran), *inputs)]
        merged: list[tuple[int, list[int]]] = []  # (extent, the step of each array)
        for axis in reversed(range(len(shape))) if fortran else range(len(shape)):
            extent, steps = shape[axis], [each[axis] for each in every]
            if extent == 1:
                continue
            if merged and merged[-1][1] == [step * extent for step in steps]:
                extent *= merged.pop()[0]
            merged.append((extent, steps))
        merged = merged or [(1, [1] + [0] * len(inputs))]
        return Walk(tuple(n for n, _ in merged), tuple(zip(*(steps for _, steps in merged), strict=True)))

    def turns(self) -> bool:
        """Whether some array has other neighbours than another: then a tile needs breadth along two axes."""
        return any(axes != sorted(axes) for axes in map(_order, self.steps))

    def tile(self, most: int) -> Shape:
        """The extents of a tile of at most so many elements, of long runs in each of the files."""
        tile = [1] * len(self.extents)
        root = math.isqrt(most)
        for steps, goal in (*((each, root) for each in self.steps), (self.steps[0], most)):
            run = 1
            for axis in reversed(_order(steps)):
                room = most // (math.prod(tile) // tile[axis])
                tile[axis] = min(self.extents[axis], max(tile[axis], min(room, -(-goal // run))))
                run *= tile[axis]
                if tile[axis] < self.extents[axis]:
                    break
        return tuple(tile)


@dataclass(frozen=True)
class Tiles:
    """The tiles of a walk, in the order in which they lie in the sum; those at an axis' end are smaller."""

    walk: Walk
    extents: Shape

    def __len__(self) -> int:
        return math.prod(self._counts)

    def __getitem__(self, number: int) -> tuple[Shape, Shape]:
        """Where the tile begins, and its extents."""
        begin = []
        for count, extent in zip(reversed(self._counts), reversed(self.extents), strict=True):
            number, place = divmod(number, count)
            begin.append(place * extent)
        start = tuple(reversed(begin))
        return start, tuple(map(min, self.extents, (n - s for n, s in zip(self.walk.extents, start, strict=True))))

    @property
    def _counts(self) -> list[int]:
        return [-(-n // tile) for n, tile in zip(self.walk.extents, self.extents, strict=True)]


def runs(walk: Walk, number: int, start: Shape, extents: Shape) -> Iterator[tuple[int, int]]:
    """The (first element, elements) of each run of a tile in the file of that array."""
    steps, axes, length = walk.steps[number], _order(walk.steps[number]), 1
    while axes:
        *axes, axis = axes
        length *= extents[axis]
        if extents[axis] < walk.extents[axis]:
            break
    first = np.array([sum(step * place for step, place in zip(steps, start, strict=True))])
    for axis in axes:
        first = (first[:, None] + steps[axis] * np.arange(extents[axis])).reshape(-1)
    return ((int(place), length) for place in first)


def strides(walk: Walk, number: int, extents: Shape) -> tuple[Shape, Shape]:
    """The shape and the steps along the walk's axes of a tile whose runs were read one behind the other."""
    shape = tuple(n if step else 1 for n, step in zip(extents, walk.steps[number], strict=True))
    steps, step = [0] * len(shape), 1
    for axis in reversed(_order(walk.steps[number])):
        steps[axis], step = step, step * shape[axis]
    return shape, tuple(steps)


def _order(steps: Shape) -> list[int]:
    """The axes along which an array is not broadcast, as they lie in its file: the last is contiguous."""
    return sorted((axis for axis, step in enumerate(steps) if step), key=lambda axis: -steps[axis])


def _steps(shape: Shape, fortran: bool, dimensions: int) -> Shape:
    """The elements from one to the next of a whole array along each axis of so many, 0 along those it is broadcast."""
    shape = (1,) * (dimensions - len(shape)) + shape
    steps, step = [0] * dimensions, 1
    for axis in range(dimensions) if fortran else reversed(range(dimensions)):
        steps[axis], step = step if shape[axis] > 1 else 0, step * shape[axis]
    return tuple(steps)
