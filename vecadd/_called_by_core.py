"""What the extension calls in Python."""

import itertools
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

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


# Host operands that the GPU cannot take as they are: broadcast, cast and copied on the host, then added on the GPU.

_PYTHON_NUMBERS = (bool, int, float, complex)  # exactly these: their dtype gives way to the other operand's


def add_materialized(a: Any, b: Any, out: Any, device: str) -> Any:
    """add(a, b, out, device=device) with numpy.add's values, dtype and shape, for whatever numpy.asarray takes."""
    x, y, dtype, shape = _operands(a, b, out)
    if 0 in shape:
        _core.add(np.empty(0, dtype), np.empty(0, dtype), device=device)  # the GPU has to be there
        return np.add(x, y, out)  # which converts an operand of one element, and may warn of it
    total = _core.add(_flat(x, dtype, shape), _flat(y, dtype, shape), device=device).reshape(shape)
    if out is None:
        return total[()]  # numpy.add gives a scalar, not an array without dimensions
    np.copyto(out, total, casting="same_kind")
    return out


def explain_materialized(a: Any, b: Any, out: Any, device: str) -> dict[str, Any]:
    """What `add` would do, as _core.explain_route describes it for arrays that the GPU takes. The operands stay
    untouched."""
    _, _, dtype, shape = _operands(a, b, out)
    fit = np.empty(math.prod(shape), dtype)
    return _core.explain_route(fit, fit, np.empty_like(fit), device=device)


def _operands(a: Any, b: Any, out: Any) -> tuple[Any, Any, np.dtype[Any], tuple[int, ...]]:
    """The operands, and the sum's dtype and shape; `out` may be larger than the sum."""
    for x, name in ((a, "a"), (b, "b")):
        if type(x) is not np.ndarray and hasattr(type(x), "__array_ufunc__"):
            raise TypeError(
                f"{name} is a {type(x).__name__}, which has rules of its own for additions; the GPU adds NumPy arrays "
                f"only: pass numpy.asarray({name})"
            )
    x, y = (v if type(v) in _PYTHON_NUMBERS else np.asarray(v) for v in (a, b))
    dtype = np.dtype(_dtype_of_sum(x, y).type)  # in native byte order, without metadata
    if dtype.name not in _core.DTYPES:
        raise TypeError(f"the sum has dtype {dtype}; on the GPU vecadd adds {', '.join(_core.DTYPES)}")
    check_numpy_call(x, y, out)
    if out is not None and np.size(out) == 0:  # operands of one element go with it, and must not be added for nothing
        return x, y, dtype, np.shape(out)
    return x, y, dtype, np.broadcast_shapes(np.shape(x), np.shape(y))


def _dtype_of_sum(x: Any, y: Any) -> np.dtype[Any]:
    """The dtype that numpy.add gives the sum: numpy.result_type differs for bfloat16 and a Python number."""
    if type(x) in _PYTHON_NUMBERS and type(y) in _PYTHON_NUMBERS:
        return np.asarray(np.add(x, y)).dtype  # of ints it depends on their values
    kinds = [type(v) if type(v) in (int, float, complex) else np.asarray(v).dtype for v in (x, y)]
    return np.add.resolve_dtypes((kinds[0], kinds[1], None))[2]


def _flat(x: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    whole = np.broadcast_to(np.asarray(x, dtype), shape)
    return np.require(whole, requirements=["C", "ALIGNED"]).reshape(-1)
