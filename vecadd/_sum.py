"""What numpy.add makes of two operands, before anything is read of them."""

import math
import sys
from typing import Any, Protocol

import numpy as np

MOST_AXES = 64  # of NumPy's arrays; it has no public name for it


class Operand(Protocol):
    """A file, or an array that lies elsewhere."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its elements."""


def is_possible(shape: tuple[int, ...], itemsize: int) -> bool:
    """Whether NumPy has arrays of that shape: without elements too, the other extents count."""
    return len(shape) <= MOST_AXES and math.prod(extent for extent in shape if extent) * itemsize <= sys.maxsize


def shape_and_dtype(x: Operand, y: Operand, shapes: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the dtype that numpy.add gives the sum. ``shapes`` says for an error which operand has which.

    Raises ValueError where the shapes do not broadcast, or only to a shape that no array can have, and TypeError where
    numpy.add has no loop for the dtypes.
    """
    # Not by numpy.broadcast_shapes, which takes half as many axes as arrays may have.
    axes = max(len(x.shape), len(y.shape))
    pairs = list(zip(*((1,) * (axes - len(each.shape)) + each.shape for each in (x, y)), strict=True))
    if any(m != n and 1 not in (m, n) for m, n in pairs):
        raise ValueError(
            f"shapes that do not broadcast: {shapes}; along each axis, counted from the last, they have to be equal or "
            "one of them 1"
        )
    shape = tuple(n if m == 1 else m for m, n in pairs)
    dtype = np.add.resolve_dtypes((x.dtype, y.dtype, None))[2]
    assert isinstance(dtype, np.dtype)
    if not is_possible(shape, dtype.itemsize):
        raise ValueError(f"no array can have the sum's shape, {shape}: {shapes}")
    return shape, dtype
