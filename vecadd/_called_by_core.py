"""What the extension calls in Python."""

import itertools
from typing import Any, Literal

import numpy as np

from vecadd import _core

# repr() of a DeviceArray: the elements at the ends of each axis. Only these are copied from the device.

EDGE = 3  # elements at each end of an axis, as NumPy prints them
MOST_PIECES = 8  # copies: three long axes


def describe_array(x: _core.DeviceArray) -> str:
    """The text of repr(x)."""
    what = f"shape={x.shape}, dtype={x.dtype}, device={x.device!r}"
    try:
        elements = _elements(x)
    except RuntimeError:  # of a GPU that is lost, or in a forked child
        elements = "..."
    return f"DeviceArray({elements}, {what})"


def _elements(x: _core.DeviceArray) -> str:
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


# What numpy.add would raise for a call before it adds, found without adding.

_NUMBERS = (bool, int, float, complex, np.generic)


def check_numpy_call(a: Any, b: Any, out: Any = None, /, **keywords: Any) -> None:
    """Raises what ``numpy.add(a, b, out, **keywords)`` raises before it adds; adds no array.

    numpy.add itself judges the dtypes, on arrays without elements, and the numbers, which it takes as they are. Objects
    are their own judges: of arrays of objects the first pair is added. An operand with rules of its own for additions,
    as a pandas Series, is not looked at unless it refuses them all.
    """
    own = [own_rules(x) for x in (a, b, out)]
    if "refuses" in own:
        np.add(a, b, out, **keywords)
    if any(own):
        return
    if out is not None and not isinstance(out, np.ndarray):
        np.add(0, 0, out)
    if out is not None and not out.flags.writeable:
        raise ValueError("output array is read-only")
    arrays = [np.asarray(x) for x in ((a, b) if out is None else (a, b, out))]
    numbers = [isinstance(x, _NUMBERS) for x in (a, b, out)]
    objects = any(x.dtype.hasobject for x, number in zip(arrays, numbers, strict=False) if not number)
    few = [x if number else _few(y, objects) for x, y, number in zip((a, b, out), arrays, numbers, strict=False)]
    where = keywords.get("where", True)
    if where is not True:
        where = where if isinstance(where, np.ndarray) else np.asarray(where, bool)
        keywords["where"] = _few(where, objects)
        arrays.append(where)
    with np.errstate(all="ignore"):
        np.add(*few, **keywords)
    flags = [["writeonly", "no_broadcast"] if i == 2 and out is not None else ["readonly"] for i in range(len(arrays))]
    np.nditer(arrays, ["zerosize_ok", "refs_ok"], flags)  # type: ignore[arg-type]


def own_rules(x: Any) -> Literal["has", "refuses"] | None:
    """ "refuses" where NumPy's functions may not be called with x, "has" where x answers them itself, else None."""
    try:
        rules = getattr(type(x), "__array_ufunc__", np.ndarray.__array_ufunc__)
    except Exception:  # of a metaclass: NumPy takes it for no rules
        return None
    if rules is None:
        return "refuses"
    return None if rules is np.ndarray.__array_ufunc__ else "has"


def _few(x: Any, objects: bool) -> Any:
    """A new array of x's dtype without elements; with x's first element where the additions are those of objects."""
    if not objects:
        return np.empty(0, x.dtype)
    return x[(..., *(slice(0, 1),) * x.ndim)].reshape(-1).copy()
