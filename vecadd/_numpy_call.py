"""What numpy.add would raise for a call before it adds, found without adding."""

from typing import Any, Literal

import numpy as np

_NUMBERS = (bool, int, float, complex, np.generic)


def check(a: Any, b: Any, out: Any = None, /, **keywords: Any) -> None:
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
