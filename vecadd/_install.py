"""vecadd in NumPy's own addition: `install` and `uninstall`."""

import sys
import warnings
from contextvars import ContextVar
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from vecadd import _core

# The handler of NumPy's memory before ours, in each context that has installed it.
_before: ContextVar[Any] = ContextVar("vecadd_array_memory", default=None)

MOST = 2**63 - 1  # bytes that an array may have


class Installation:
    """What `vecadd.install` gives; as a context manager it takes out at the end what its call has put in.

    ``calls`` and ``elements`` count what vecadd has added in NumPy's place since this call. ``below`` names, by dtype,
    the libraries other than NumPy whose loops get the calls that vecadd leaves; usually it is empty.

    >>> with vecadd.install() as installed:
    ...     total = np.ones(4_000_000) + 1
    >>> installed.elements
    4000000
    """

    def __init__(self, below: dict[str, str], added_loops: bool, added_memory: bool) -> None:
        self.below = below
        self._added_loops, self._added_memory = added_loops, added_memory
        self._begun = _core.loop_counts()

    @property
    def calls(self) -> int:
        """The calls of NumPy's loops that vecadd has added."""
        return _core.loop_counts()["calls"] - self._begun["calls"]

    @property
    def elements(self) -> int:
        """The elements of their sums."""
        return _core.loop_counts()["elements"] - self._begun["elements"]

    def __repr__(self) -> str:
        state = "installed" if _core.loop_counts()["installed"] else "not installed"
        return f"<vecadd in numpy.add: {state}, {self.calls} calls and {self.elements} elements added>"

    def __enter__(self) -> "Installation":
        return self

    def __exit__(self, *_: object) -> None:
        if self._added_memory:
            _restore_memory()
        if self._added_loops:
            _core.uninstall_loops()


def install(*, allocator: bool = False, least: int | None = None) -> Installation:
    """Puts vecadd into NumPy's own addition in this process: ``a + b``, ``+=``, ``numpy.add`` and what calls them.

    NumPy calls one of its loops for each run of elements. From now on vecadd adds the runs that several threads or
    streaming stores add faster: from a few hundred KiB on, both operands contiguous or one of them a single element.
    Threads that sleep are woken where that pays. NumPy's loop adds all others as before: short runs, sums of an axis,
    cumulative sums, operands that overlap in part, other dtypes. Results and floating-point warnings are the same. No
    GPU is used.

    ``allocator``: also keep the memory of large arrays that are dropped for the next ones, in the pool for sums of
    `vecadd.add` (`vecadd.memory_stats` counts it, `vecadd.release` gives it back). NumPy keeps its allocator by
    context: this applies to the thread and context of the call, and to tasks that copy the context.

    ``least``, for tests: bytes of a run from which all threads add, whether they gain or not.

    It applies to all threads and to forked children, not to processes that are started anew: see `vecadd run`. A
    second call adds nothing. Gives an `Installation`: ``with vecadd.install(): ...`` takes it out at the end.

    Warns with RuntimeWarning where another library has put its loops into numpy.add before: vecadd's go above them.
    Raises RuntimeError where another library has put its loops above vecadd's, TypeError and ValueError for what
    ``least`` cannot be.

    >>> a = np.ones(2_000_000)
    >>> with vecadd.install():
    ...     total = a + a
    >>> float(total.sum())
    4000000.0
    """
    if least is not None:
        least = index(least)
        if not 1 <= least <= MOST:
            raise ValueError(f"least is {least}: it takes bytes, 1 or more and at most 2^63 - 1")
    added_loops = not _core.loop_counts()["installed"]
    below = {
        dtype: library
        for dtype, library in _core.install_loops(least).items()
        if Path(library).parent != _numpys_folder()
    }
    if below and added_loops:
        names = ", ".join(sorted(set(below.values())))
        warnings.warn(
            f"numpy.add's loops of {', '.join(below)} are those of {names}: vecadd leaves to them what it does not add",
            RuntimeWarning,
            stacklevel=2,
        )
    return Installation(below, added_loops, allocator and _add_memory())


def uninstall() -> None:
    """Takes vecadd out of NumPy's addition, and its allocator out of this context; does nothing where it is not in.

    Raises RuntimeError where another library has put its loops above vecadd's: take those out first.

    >>> vecadd.uninstall()
    """
    _restore_memory()
    _core.uninstall_loops()


def _numpys_folder() -> Path:
    file = sys.modules["numpy._core._multiarray_umath"].__file__
    return Path(file or np.__file__).parent


def _add_memory() -> bool:
    if _before.get() is not None:
        return False
    _before.set(_core.use_array_memory(True))
    return True


def _restore_memory() -> None:
    if _before.get() is not None:
        _core.use_array_memory(_before.get())
        _before.set(None)
