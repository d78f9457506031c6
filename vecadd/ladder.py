"""The ladder: every way to add that vecadd has, callable by name, and ways to transpose and to multiply matrices.

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

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vecadd import _core
from vecadd._command import unknown
from vecadd.model.theory import with_parameters

if TYPE_CHECKING:
    from vecadd.code import Code
    from vecadd.judge import judge

__all__ = ["diff", "judge", "names", "run", "sass", "source", "time"]


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

    A few rungs accumulate: they add a + b to what ``out`` was, once or once for each thread of a block. Without
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
    target = _target(name, a, b, out, params)
    _core.run_rung(name, a, b, target, block=_checked(block), params=params)
    return target


def time(name: str, a: Any, b: Any = None, out: Any = None, *, block: int | None = None, **params: int) -> float:
    """The seconds of one ``run``: a device or matrix rung's by CUDA events around its launch, others' by the host's
    clock.

    >>> vecadd.ladder.time("threads", np.ones(1000), np.ones(1000)) > 0
    True
    """
    return _core.run_rung(name, a, b, _target(name, a, b, out, params), block=_checked(block), params=params)


def source(name: str) -> "Code":
    """The source of the rung of that name: its part of a file, from the comment at its head to the end of its row.
    Below it follow its kernel, if that is defined elsewhere, and the shared parts of its file that it uses.

    A str whose ``caption`` names the files; a notebook shows it in colours. Raises ValueError for a name that is not in
    the ladder.

    >>> print(vecadd.ladder.source("naive").splitlines()[0])
    // naive: one component a thread, and a bounds check. The first kernel that most people write.
    """
    from vecadd.code import source

    return source(_rung(name))


def sass(name: str, dtype: Any = None, arch: str | None = None) -> "Code":
    """The machine code of the kernel that the rung of that name launches, an instruction a line.

    ``dtype`` is float32 unless it is given, or the first dtype that a rung takes in its place. ``arch`` is for example
    "sm_90"; None is the first GPU's if this build has code for it, else sm_90. Where parameters or operands choose
    between kernels, it is the one for the usual parameters and for small aligned arrays; a transfer rung launches
    another rung's.

    NVIDIA's cuobjdump and nvdisasm read it from this build where they are installed. Without them it is what was
    recorded for sm_90 when the package was built, the same text.

    A str whose ``caption`` names the kernel. Raises ValueError for a name that is not in the ladder, for a rung of
    the host and for an architecture that the build has no code for, TypeError for a dtype that the rung does not take,
    FileNotFoundError where neither the tools nor a recording are there.

    >>> vecadd.ladder.sass("threads")
    Traceback (most recent call last):
    ...
    ValueError: rung threads adds on the host and has no GPU machine code; its source is vecadd.ladder.source('threads')
    """
    from vecadd.code import sass

    rung = _rung(name)
    return sass(rung, _dtype_of(rung, dtype), arch)


def diff(
    a: str, b: str, what: Literal["source", "sass"] = "source", *, dtype: Any = None, arch: str | None = None
) -> "Code":
    """What differs between two rungs, as a unified diff: of their sources below the comments at their heads, or of
    their machine code without addresses. Empty where nothing differs.

    ``dtype`` and ``arch`` are those of ``sass``. Raises ValueError for another ``what``, and what ``source`` and
    ``sass`` raise.

    >>> [line for line in vecadd.ladder.diff("naive", "float4").splitlines() if ".changes" in line]
    ['-    .changes = "one element a thread, with a bounds check",', '+    .changes = "one 16-byte vector a thread",']
    """
    from vecadd.code import difference

    if what not in ("source", "sass"):
        raise ValueError(f"what must be 'source' or 'sass', not {what!r}")
    if what == "source":
        return difference(source(a), source(b))
    first, second = (sass(name, dtype, arch) for name in (a, b))
    return difference(first, second)


def _rung(name: str) -> dict[str, Any]:
    """The row of the rung of that name."""
    for rung in _core.rungs():
        if rung["name"] == name:
            return rung
    raise ValueError(unknown("rung", str(name), _names()))


def _dtype_of(rung: dict[str, Any], dtype: Any) -> str:
    """The name of the dtype; raises TypeError for one that the rung does not take."""
    taken = rung["dtypes"]
    if dtype is None:
        return "float32" if "float32" in taken else str(taken[0])
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in taken:
        raise TypeError(f"rung {rung['name']} takes {', '.join(taken)}, not {name}")
    return name


def __getattr__(name: str) -> Any:
    if name == "judge":  # which needs the bench, and the package itself does not
        from vecadd.judge import judge

        return judge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _names() -> tuple[str, ...]:
    return tuple(names())


def _target(name: str, a: Any, b: Any, out: Any, params: Mapping[str, int]) -> Any:
    """``out``, or new memory for the rung's result; if the rung refuses a and b, any memory of a's kind."""
    if isinstance(name, str) and name not in _names():  # what is no string the extension refuses
        raise ValueError(unknown("rung", name, _names()))
    if out is not None:
        return out
    row = next((rung for rung in _core.rungs() if rung["name"] == name), None)
    left = with_parameters(row, params)["sum"] if row else "written"
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
    """The block size as the extension takes it: 0 is the rung's own."""
    if block is None:
        return 0
    if block <= 0:
        raise ValueError(f"block must be a multiple of 32 up to 1024, not {block}")
    return block
