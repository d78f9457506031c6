"""repr() of a DeviceArray: the elements at the ends of each axis. Only these are copied from the device."""

import itertools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from vecadd import DeviceArray

EDGE = 3  # elements at each end of an axis, as NumPy prints them
MOST_PIECES = 8  # copies: three long axes


def describe(x: "DeviceArray") -> str:
    """The text of repr(x)."""
    what = f"shape={x.shape}, dtype={x.dtype}, device={x.device!r}"
    try:
        elements = _elements(x)
    except RuntimeError:  # of a GPU that is lost, or in a forked child
        elements = "..."
    return f"DeviceArray({elements}, {what})"


def _elements(x: "DeviceArray") -> str:
    long = [extent > 2 * EDGE for extent in x.shape]
    if 2 ** sum(long) > MOST_PIECES or x.size == 0:
        return "[...]" if x.size else "[]"
    # A long axis is shown by its ends and one element between them, which NumPy prints as an ellipsis.
    shown = np.zeros([2 * EDGE + 1 if cut else extent for cut, extent in zip(long, x.shape, strict=True)], x.dtype)
    ends = [(slice(0, EDGE), slice(-EDGE, None)) if cut else (slice(None),) for cut in long]
    for piece in itertools.product(*ends):
        shown[piece] = x[piece].numpy()
    prefix = "DeviceArray("
    return np.array2string(shown, separator=", ", prefix=prefix, threshold=0 if any(long) else shown.size + 1)
