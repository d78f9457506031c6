"""torch tensors as memory that all libraries on the device share: no library gains by where its arrays are.

A set of 2^30 float64 has 24 GB, so that each library could not have its own; such operands are filled and checked on
the device, where the host would take a minute a cell.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import libraries
from benchmarks.peers.libraries import POISON
from vecadd.bench.operands import Buffers, MemoryKind
from vecadd.bench.run import Machine
from vecadd.model.theory import rotating_sets

# Dtypes that torch cannot take from NumPy, or that NumPy lacks, are passed as integers of the same size.
_AS_INTEGERS = {"bfloat16": "int16"}
_INTEGERS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}

ROWS = 256  # periods compared at a time: 2^28 elements, whose comparison takes as many bytes


def shared() -> MemoryKind:
    """The place; raises what importing torch raises where it is not installed."""
    torch = libraries.module("torch")

    def words(x: Any) -> Any:
        return x.view(getattr(torch, _INTEGERS[x.element_size()]))

    def repeat(period: NDArray[Any], n: int) -> Any:
        result = _empty(torch, period.dtype, n)
        done = period.size
        words(result)[:done].copy_(torch.from_numpy(period.view(_integers(period.dtype)).copy()))
        while done < n:
            count = min(done, n - done)
            words(result)[done : done + count].copy_(words(result)[:count])
            done += count
        return result

    def differs(x: Any, period: NDArray[Any]) -> int | None:
        want = torch.from_numpy(period.view(_integers(period.dtype))).to("cuda")
        got = words(x)
        for first in range(0, got.numel(), ROWS * want.numel()):
            part = got[first : first + ROWS * want.numel()]
            whole = part.numel() // want.numel() * want.numel()
            for at, rows in ((0, part[:whole].view(-1, want.numel())), (whole, part[whole:].view(1, -1))):
                wrong = rows != want[: rows.shape[1]]
                if bool(wrong.any()):
                    return first + at + int(wrong.flatten().to(torch.uint8).argmax())
        return None

    return MemoryKind(
        "torch",
        put=functools.partial(_put, torch),
        get=_get,
        poison=lambda x: x.view(torch.uint8).fill_(POISON),
        on_gpu=True,
        repeat=repeat,
        differs=differs,
    )


def count_sets(machine: Machine, n: int, dtype: np.dtype[Any], spread: int = 1) -> int:
    """How many sets a cell goes round: beyond ``spread`` times the L2, but in a tenth of the memory, because what the
    libraries keep and convert comes on top."""
    return rotating_sets(3 * n * dtype.itemsize, spread * machine.gpu["l2"], machine.gpu["memory"] // 10)


class Kept:
    """What a cell makes once of each of its arrays: views, operands of another dtype, and the expected sums."""

    def __init__(self, place: MemoryKind) -> None:
        self._place = place
        self._made: dict[tuple[int, int, str], tuple[Any, Any]] = {}

    def get_or_make(self, x: Any, what: str, make: Callable[[], Any]) -> Any:
        """What was made of the tensor under that name; made at the first call."""
        key = x.data_ptr(), x.numel(), what
        if key not in self._made or self._made[key][0] is not x:  # an earlier array's memory, reused
            self._made[key] = x, make()
        return self._made[key][1]

    def converted(self, x: Any, dtype: str) -> Any:
        """x as an array of its own of that dtype; the real parts of complex numbers."""
        return self.get_or_make(x, dtype, lambda: self._place.put(self._place.get(x).real.astype(dtype)))

    def forget(self, used: Buffers) -> dict[str, Any]:
        """Frees all of it: a contestant's ``extra_params``, which come after its last round and are empty."""
        del used
        self._made.clear()
        return {}


class Borrowed:
    """A tensor's memory for libraries that read __cuda_array_interface__; it does not keep the memory alive."""

    def __init__(self, pointer: int, n: int, typestr: str) -> None:
        self.__cuda_array_interface__ = {
            "shape": (n,),
            "typestr": typestr,
            "data": (pointer, False),
            "version": 3,
            "stream": None,
        }


def borrowed(x: Any) -> Borrowed:
    """Raises KeyError for a dtype that the interface has no name for: bfloat16."""
    return Borrowed(x.data_ptr(), x.numel(), _TYPESTR[name_of(x)])


_TYPESTR = {name: np.dtype(name).str for name in ("int8", "float16", "float32", "float64", "complex64")}


def name_of(x: Any) -> str:
    """A tensor's dtype as NumPy calls it."""
    return str(x.dtype).removeprefix("torch.")


def _integers(dtype: np.dtype[Any]) -> str:
    return _INTEGERS[dtype.itemsize]


def _empty(torch: Any, dtype: np.dtype[Any], n: int) -> Any:
    return torch.empty(n, dtype=getattr(torch, str(dtype)), device="cuda")


def _put(torch: Any, x: NDArray[Any]) -> Any:
    integers = _AS_INTEGERS.get(str(x.dtype))
    if integers is None:
        return torch.from_numpy(x).to("cuda")
    return torch.from_numpy(x.view(integers)).to("cuda").view(getattr(torch, str(x.dtype)))


def _get(x: Any) -> NDArray[Any]:
    """A NumPy array of the tensor, as integers for a dtype that NumPy lacks: the check compares words."""
    integers = _AS_INTEGERS.get(name_of(x))
    if integers is None:
        result: NDArray[Any] = x.cpu().numpy()
        return result
    import ml_dtypes

    torch = libraries.module("torch")
    words: NDArray[Any] = x.view(getattr(torch, integers)).cpu().numpy()
    return words.view(getattr(ml_dtypes, name_of(x)))
