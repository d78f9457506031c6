"""What the C extension asks of a library of arrays, beyond the array interface and DLPack."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray


class Library:
    """A library whose arrays have only the array interface: sums are DeviceArrays."""

    has_attributes = False  # whether arrays of its `array_type` may be read as csrc/py/operands/cupy.c does
    has_exchange_table = False  # whether its types may have the table that csrc/py/operands/torch.c reads
    by_dlpack_only = False  # whether its __cuda_array_interface__ orders nothing
    no_order: int | None = -1  # what its __dlpack__ takes for stream= to order nothing: DLPack's own word is -1
    adopts = False  # whether sums are DeviceArrays that `adopt` wraps when their kernel is queued
    has_host_arrays = False  # whether arrays that `export` does not take are on the host, for host_tensors.py
    sums_in_c_order = False  # whether its sums are always in C order; else they follow NumPy's rule, order="K",
    sums_as_first = False  # or in the order of the first array whose strides say one, as torch's iterator has it
    numbers_as_torch = False  # whether numbers beside device arrays are converted as PyTorch's kernels convert them
    has_bfloat16 = False  # whether the typestr "<V2" of its interface means bfloat16, and it adds that
    records_streams = False  # whether `record_stream` has to be called for other streams than its current one
    count_writes: Any = None  # a function to be called with a tuple or list of its arrays that vecadd has written

    def export(self, array: Any, writing: bool) -> Any:
        """The object whose interface is to be read; None where the array is not in device memory, NotImplemented where
        only the library itself can add it."""
        return array

    def must_add(self, operands: Sequence[Any], out: Any) -> str | None:
        """Why only the library itself can add these, in a few words; None where vecadd adds them. ``out`` is one of
        them, or None."""
        return None

    def why_left(self, operands: Sequence[Any], out: Any) -> str:
        """Why operands that `export` leaves to the library are left."""
        return self.must_add(operands, out) or "an operand has no memory that can be read"

    def explain(self, a: Any, b: Any, out: Any, stream: int | None) -> dict[str, Any]:
        """What `add` does with operands that only the library can add, as _core.explain_route says it."""
        return {"route": "library", "why": self.why_left((a, b) if out is None else (a, b, out), out)}

    def current_stream(self, device: int) -> int | None:
        """The handle of the stream on which the library works now."""
        return None

    def stream_owner(self, handle: int, device: int) -> Any:
        """What keeps the stream with this handle: an object with which it goes, True where nothing destroys it, None
        where the library does not know it. Asked of libraries that are imported."""
        return None

    def stream_of(self, array: Any) -> Any:
        """The object of the stream that the array's interface names, if the array has one."""
        return None

    def result_dtype(self, a: Any, b: Any) -> str | None:
        """The name of the dtype that the library gives a + b, two arrays or an array and a number; None: NumPy's."""
        return None

    def empty_like(
        self,
        array: Any,
        stream: int | None,
        shape: tuple[int, ...] | None = None,
        dtype: str | None = None,
        axes: tuple[int, ...] | None = None,
    ) -> Any:
        """A contiguous array, of the array's own shape and dtype or of others, allocated for use on that stream or on
        the current one; None: make a DeviceArray. ``axes`` has the axis of the largest stride first; None: C order."""
        return None

    def adopt(self, array: Any) -> Any:
        """An array of the library's in the memory of this DeviceArray, which it keeps alive."""
        return array

    def record_stream(self, array: Any, stream: int) -> None:
        """Has the library reuse the array's memory only after the work that is queued on this stream now."""

    def on_host(self, array: Any, writing: bool) -> Any:
        """The array whose __dlpack__ is to be called; raises where the array must not be added."""
        return array

    def from_host(self, total: NDArray[Any], like: Any) -> Any:
        """An array of the library's, where `like` is, in the memory of this NumPy array or with its elements."""
        return total

    def add(self, a: Any, b: Any, out: Any, stream: int | None = None) -> Any:
        """The library's own addition, for what only it can add and for host arrays that have to be broadcast or cast.
        ``stream`` is the handle of the caller's."""
        raise NotImplementedError


def in_memory(shape: tuple[int, ...], axes: tuple[int, ...] | None) -> tuple[int, ...]:
    """The extents in the order of ``axes``, that of the largest stride first."""
    return shape if axes is None else tuple(shape[axis] for axis in axes)


def back(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that undo the transposition by ``axes``."""
    return tuple(axes.index(axis) for axis in range(len(axes)))


def is_foreign(stream: Any, handle: int) -> bool:
    """Whether a library's stream object wraps a stream that is not its own, and so does not keep it."""
    return (
        type(stream).__name__ == "ExternalStream"  # PyTorch's and CuPy's
        or getattr(stream, "external", False) is True  # Numba's
        or getattr(stream, "stream_id", None) == handle  # PyTorch's, of a stream that it has been given
    )


class Handle:
    """A stream in the protocol of cuda.core."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle
