"""What numpy.add makes of two operands, before anything is read of them."""

from typing import Any, Protocol

import numpy as np


class Operand(Protocol):
    """A file, or an array that lies elsewhere."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its elements."""


def shape_and_dtype(x: Operand, y: Operand, shapes: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the dtype that numpy.add gives the sum. ``shapes`` says for an error which operand has which.

    Raises ValueError where the shapes do not broadcast, or only to a shape that no array can have, and TypeError where
    numpy.add has no loop for the dtypes.
    """
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except (OverflowError, ValueError) as error:
        pairs = zip(reversed(x.shape), reversed(y.shape), strict=False)
        if all(m == n or 1 in (m, n) for m, n in pairs):
            raise ValueError(f"no array can have the sum's shape ({error}): {shapes}") from None
        raise ValueError(
            f"shapes that do not broadcast: {shapes}; along each axis, counted from the last, they have to be equal or "
            "one of them 1"
        ) from None
    dtype = np.add.resolve_dtypes((x.dtype, y.dtype, None))[2]
    assert isinstance(dtype, np.dtype)
    return shape, dtype
