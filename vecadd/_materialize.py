"""Host operands that the GPU cannot take as they are: broadcast, cast and copied on the host, then added on the GPU."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecadd import _core


def add(a: Any, b: Any, out: Any, device: str) -> Any:
    """add(a, b, out, device=device) with numpy.add's values, dtype and shape, for whatever numpy.asarray takes."""
    x, y = _operand(a, "a"), _operand(b, "b")
    dtype = np.dtype(_dtype_of_sum(x, y).type)  # in native byte order, without metadata
    if dtype.name not in _core.DTYPES:
        raise TypeError(f"the sum has dtype {dtype}; on the GPU vecadd adds {', '.join(_core.DTYPES)}")
    x, y = (np.asarray(v, dtype) if np.ndim(v) == 0 else v for v in (x, y))
    if out is not None:
        _check_out(out, dtype)
    shape = np.broadcast_shapes(np.shape(x), np.shape(y))
    if out is not None and np.broadcast_shapes(shape, out.shape) != out.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {out.shape} doesn't match the broadcast shape {shape}"
        )

    total = _core.add(_flat(x, dtype, shape), _flat(y, dtype, shape), device=device).reshape(shape)
    if out is None:
        return total[()]  # numpy.add gives a scalar, not an array without dimensions
    np.copyto(out, total, casting="same_kind")
    return out


def _operand(x: Any, name: str) -> Any:
    """x as an array; Python scalars stay scalars, because their dtype gives way to the other operand's."""
    if type(x) in (bool, int, float, complex):
        return x
    if type(x) is not np.ndarray and not isinstance(x, np.generic) and hasattr(type(x), "__array_ufunc__"):
        raise TypeError(
            f"{name} is a {type(x).__name__}, which has rules of its own for additions; the GPU adds NumPy arrays "
            f"only: pass numpy.asarray({name})"
        )
    return np.asarray(x)


def _dtype_of_sum(x: Any, y: Any) -> np.dtype[Any]:
    """The dtype that numpy.add gives the sum: numpy.result_type differs for bfloat16 and a Python number."""
    kinds = [type(v) if type(v) in (int, float, complex) else np.asarray(v).dtype for v in (x, y)]
    if all(isinstance(kind, type) for kind in kinds):
        kinds = [np.asarray(v).dtype for v in (x, y)]
    return np.add.resolve_dtypes((kinds[0], kinds[1], None))[2]


def _check_out(out: Any, dtype: np.dtype[Any]) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError("return arrays must be of ArrayType")
    if not out.flags.writeable:
        raise ValueError("output array is read-only")
    if not np.can_cast(dtype, out.dtype, "same_kind"):
        raise TypeError(f"cannot cast the sum from {dtype} to {out.dtype} with casting rule 'same_kind'")


def _flat(x: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    whole = np.broadcast_to(np.asarray(x, dtype), shape)
    return np.require(whole, requirements=["C", "ALIGNED"]).reshape(-1)
