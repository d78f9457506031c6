"""Host operands that the GPU cannot take as they are: broadcast, cast and copied on the host, then added on the GPU."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecadd import _core
from vecadd._numpy_call import check

_NUMBERS = (bool, int, float, complex)  # exactly these: their dtype gives way to the other operand's


def add(a: Any, b: Any, out: Any, device: str) -> Any:
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


def explain(a: Any, b: Any, out: Any, device: str) -> dict[str, Any]:
    """What `add` would do, as _core.explain_route says it. The arrays in place of the fit ones stay untouched."""
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
    x, y = (v if type(v) in _NUMBERS else np.asarray(v) for v in (a, b))
    dtype = np.dtype(_dtype_of_sum(x, y).type)  # in native byte order, without metadata
    if dtype.name not in _core.DTYPES:
        raise TypeError(f"the sum has dtype {dtype}; on the GPU vecadd adds {', '.join(_core.DTYPES)}")
    check(x, y, out)
    if out is not None and np.size(out) == 0:  # operands of one element go with it, and must not be added for nothing
        return x, y, dtype, np.shape(out)
    return x, y, dtype, np.broadcast_shapes(np.shape(x), np.shape(y))


def _dtype_of_sum(x: Any, y: Any) -> np.dtype[Any]:
    """The dtype that numpy.add gives the sum: numpy.result_type differs for bfloat16 and a Python number."""
    if type(x) in _NUMBERS and type(y) in _NUMBERS:
        return np.asarray(np.add(x, y)).dtype  # of ints it depends on their values
    kinds = [type(v) if type(v) in (int, float, complex) else np.asarray(v).dtype for v in (x, y)]
    return np.add.resolve_dtypes((kinds[0], kinds[1], None))[2]


def _flat(x: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    whole = np.broadcast_to(np.asarray(x, dtype), shape)
    return np.require(whole, requirements=["C", "ALIGNED"]).reshape(-1)
