"""The ladder: every way to add that vecadd holds, callable by name, and ways to transpose and to multiply matrices.

    >>> vecadd.ladder.names("host")
    ['one_thread', 'threads', 'threads_stream']
    >>> a, b = vecadd.to_device(np.ones(4)), vecadd.to_device(np.arange(4.0))
    >>> vecadd.ladder.run("float4", a, b).numpy()
    array([1., 2., 3., 4.])
    >>> x = vecadd.to_device(np.ones((2, 3), np.float32))
    >>> vecadd.ladder.run("transpose_padded", x).shape
    (3, 2)

Each rung changes one thing against the one before. Host and transfer rungs take contiguous NumPy arrays, device and
latency rungs take DeviceArrays; a and b have one dtype and shape. Matrix rungs take DeviceArrays of float32 with two
dimensions, in C order.
"""

from functools import cache
from typing import Any, Literal

import numpy as np

from vecadd import _core
from vecadd._names import unknown

__all__ = ["names", "run", "time"]


KINDS = ("host", "device", "transfer", "latency", "matrix")


def __dir__() -> list[str]:
    return __all__


def names(kind: Literal["host", "device", "transfer", "latency", "matrix"] | None = None) -> list[str]:
    """The rungs in order, all of them or those of one kind. Raises ValueError for an unknown kind.

    >>> vecadd.ladder.names("latency")[:2]
    ['launch_loop', 'graph']
    """
    if kind not in (None, *KINDS):
        raise ValueError(f"kind must be {', '.join(map(repr, KINDS))} or None, not {kind!r}")
    return [rung["name"] for rung in _core.rungs() if kind in (None, rung["kind"])]


def run(name: str, a: Any, b: Any = None, out: Any = None, *, block: int | None = None, **params: int) -> Any:
    """Adds a and b by the rung of that name and returns the sum, in ``out`` if that is given.

    A matrix rung gives in its place the transpose of a, or the product of a and b; ``b`` is None for a rung that takes
    one matrix. Its ``out`` shares no memory with its operands.

    ``block`` is a device rung's number of threads a block, a multiple of 32 up to 1024; None leaves it to the rung.
    ``params`` are further whole numbers that some rungs take: ``run("strided", a, b, stride=4)``.

    A few rungs accumulate: they add a + b to what ``out`` holds, once or once for each thread of a block. Without
    ``out`` they begin at 0.

    Raises ValueError for a name that is not in the ladder, for sizes, shapes, alignments, blocks and parameters that
    the rung does not take and for a GPU that it does not run on, TypeError for arrays, dtypes and names of parameters
    that it does not take, and what every call on a GPU raises without one.

    >>> vecadd.ladder.run("threads", np.ones(3), np.arange(3.0))             # a host rung: NumPy arrays
    array([1., 2., 3.])
    >>> x = vecadd.to_device(np.ones(3))                                     # a device rung: DeviceArrays
    >>> vecadd.ladder.run("grid_stride", x, x, blocks_per_sm=2).numpy()
    array([2., 2., 2.])
    """
    target = _target(name, a, b, out)
    _core.run_rung(name, a, b, target, block=_checked(block), params=params)
    return target


def time(name: str, a: Any, b: Any = None, out: Any = None, *, block: int | None = None, **params: int) -> float:
    """The seconds of one ``run``: a device or matrix rung's by CUDA events around its launch, others' by the host's
    clock.

    >>> vecadd.ladder.time("threads", np.ones(1000), np.ones(1000)) > 0
    True
    """
    return _core.run_rung(name, a, b, _target(name, a, b, out), block=_checked(block), params=params)


@cache
def _names() -> tuple[str, ...]:
    return tuple(names())


def _target(name: str, a: Any, b: Any, out: Any) -> Any:
    """``out``, or new memory for what the rung leaves of a and b; where it refuses them, any memory of a's kind."""
    if isinstance(name, str) and name not in _names():  # what is no string the extension refuses
        raise ValueError(unknown("rung", name, _names()))
    if out is not None:
        return out
    left = next((rung["sum"] for rung in _core.rungs() if rung["name"] == name), "written")
    matrices = all(isinstance(x, _core.DeviceArray) and x.ndim == 2 for x in (a, b if left == "product" else a))
    if left == "product" and matrices:
        return _core.to_device(np.empty((a.shape[0], b.shape[1]), a.dtype), device=a.device)
    target = _core.to_device(a) if isinstance(a, _core.DeviceArray) else np.empty_like(a)
    if left == "transpose" and matrices:
        return target.reshape(a.shape[::-1])
    if left.startswith(("added", "raced")):
        _core.clear(target)
    return target


def _checked(block: int | None) -> int:
    """The block size as the extension takes it: 0 stands for the rung's own."""
    if block is None:
        return 0
    if block <= 0:
        raise ValueError(f"block must be a multiple of 32 up to 1024, not {block}")
    return block
