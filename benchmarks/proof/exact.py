"""Exact sums, by a library that is linked with nothing of vecadd's (exact.h, exact.c)."""

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from build_native.incremental import processors
from build_native.targets import Build

Array = NDArray[Any]
Dtype = np.dtype[Any]

OVERFLOW, INVALID = 1, 2  # the flags that an addition raises
NAMES = {OVERFLOW: "overflow", INVALID: "invalid"}

_SIZE = ctypes.c_size_t
_POINTER = ctypes.c_void_p
_ARGUMENTS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "exact_format": (ctypes.c_int, (ctypes.c_char_p,)),
    "exact_sums": (ctypes.c_int, (*[ctypes.c_int] * 4, ctypes.c_uint32, _SIZE, _SIZE, _POINTER, _POINTER)),
    "exact_wrong": (ctypes.c_uint64, (ctypes.c_int, _POINTER, _POINTER, _SIZE, ctypes.POINTER(ctypes.c_uint64))),
    "exact_select": (_SIZE, (ctypes.c_uint, _POINTER, ctypes.c_uint32, _SIZE, _SIZE, _POINTER, _POINTER)),
}
THREADS = processors()


@cache
def library() -> ctypes.CDLL:
    """exact.c, compiled where it has changed."""
    loaded = ctypes.CDLL(str(Build().exact()))
    for name, (result, arguments) in _ARGUMENTS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def is_known(dtype: Dtype) -> bool:
    """Whether there are exact sums of that dtype."""
    return int(library().exact_format(dtype.name.encode())) >= 0


def sums(dtypes: tuple[Dtype, Dtype, Dtype, Dtype], first: int, due: Array, flags: Array) -> None:
    """Fills ``due`` and ``flags``, both (rows, columns): row i is the sum of the left operand with the bits first + i
    and of right operands with the bits 0, 1, ... The dtypes are a's, b's, the one that adds and out's."""
    numbers = [_number(dtype) for dtype in dtypes]
    rows, columns = due.shape

    def part(begin: int, end: int) -> None:
        places = due[begin:end].ctypes.data, flags[begin:end].ctypes.data
        if library().exact_sums(*numbers, first + begin, end - begin, columns, *places) != 0:
            raise MemoryError("no memory for the operands of exact sums")

    _in_parts(rows, part)


def wrong(due: Array, found: Array) -> tuple[int, int]:
    """How many sums are not those that are due, and the index of the first; one quiet NaN is as good as another."""
    number = _number(due.dtype)

    def part(begin: int, end: int) -> tuple[int, int]:
        first = ctypes.c_uint64()
        places = due[begin:].ctypes.data, found[begin:].ctypes.data
        count = library().exact_wrong(number, *places, end - begin, ctypes.byref(first))
        return int(count), begin + first.value

    if due.dtype != found.dtype or due.shape != found.shape or not found.flags.c_contiguous:
        raise ValueError(f"{found.dtype} of shape {found.shape} where {due.dtype} of shape {due.shape} is due")
    due, found = due.reshape(-1), found.reshape(-1)
    parts = [each for each in _in_parts(due.size, part) if each[0]]
    return sum(count for count, _ in parts), min((first for _, first in parts), default=-1)


def select(flag: int, flags: Array, first: int, into: tuple[Array, Array]) -> int:
    """Gathers the operands, of 16 bits, of the block's sums that raise exactly ``flag`` (0: none). Their number."""
    rows, columns = flags.shape
    places = [array.ctypes.data for array in into]
    return int(library().exact_select(flag, flags.ctypes.data, first, rows, columns, *places))


def _number(dtype: Dtype) -> int:
    number = int(library().exact_format(dtype.name.encode()))
    if number < 0:
        raise ValueError(f"there are no exact sums of {dtype}")
    return number


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS)


def _in_parts(n: int, part: Callable[[int, int], Any]) -> list[Any]:
    """Calls part(begin, end) for parts of [0, n), on every processor at once."""
    edges = [n * k // THREADS for k in range(THREADS + 1)]
    return list(_pool().map(part, edges[:-1], edges[1:]))
