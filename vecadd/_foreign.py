"""What other libraries' arrays have beyond __cuda_array_interface__: a current stream, and new arrays of their kind.

The C extension calls ``library_of`` and the methods of what it gives. No library is imported here: whoever hands over
an array of its has done so.
"""

import sys
from typing import Any
from weakref import WeakKeyDictionary


class Library:
    """A library whose arrays are no more than their interface says: sums are DeviceArrays."""

    void2_is_bfloat16 = False  # whether the typestr "<V2" means bfloat16
    has_exchange_table = False  # whether types of its may have the table that operand_torch.c reads

    def export(self, array: Any, writing: bool) -> Any:
        """The object whose interface is to be read; None where the array is not in device memory."""
        return array

    def current_stream(self, device: int) -> int | None:
        """The handle of the stream on which the library works now."""
        return None

    def empty_like(self, array: Any, stream: int | None) -> Any:
        """A contiguous array, allocated for use on that stream or on the current one; None: make a DeviceArray."""
        return None


class _Handle:
    """A stream in the protocol of cuda.core."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class CuPy(Library):
    def current_stream(self, device: int) -> int | None:
        return int(sys.modules["cupy"].cuda.get_current_stream(device).ptr)

    def empty_like(self, array: Any, stream: int | None) -> Any:
        cupy = sys.modules["cupy"]
        with array.device:
            if stream is None:
                return cupy.empty(array.shape, array.dtype)
            with self._stream(stream, array.device.id):
                return cupy.empty(array.shape, array.dtype)

    @staticmethod
    def _stream(handle: int, device: int) -> Any:
        cuda = sys.modules["cupy"].cuda
        if not handle:
            return cuda.Stream.null
        if hasattr(cuda.Stream, "from_external"):  # CuPy 14, where ExternalStream warns
            return cuda.Stream.from_external(_Handle(handle))
        return cuda.ExternalStream(handle, device)


class Torch(Library):
    void2_is_bfloat16 = True
    has_exchange_table = True

    def export(self, array: Any, writing: bool) -> Any:
        if not getattr(array, "is_cuda", False):
            return None
        if array.requires_grad:
            if sys.modules["torch"].is_grad_enabled():
                raise RuntimeError(
                    "a tensor needs its gradient, and vecadd.add does not keep one: pass tensor.detach(), or call it "
                    "under torch.no_grad()"
                )
            array = array.detach()
        if array.is_conj() or array.is_neg():  # the interface does not tell of either
            if writing:
                raise ValueError("out is a conjugated or negated view: pass a tensor of its own")
            array = array.resolve_conj().resolve_neg()
        return array

    def current_stream(self, device: int) -> int | None:
        # The handle alone, as torch's own compilers take it: 0.07 us. torch.cuda.current_stream() takes 1.8 us.
        return int(sys.modules["torch"]._C._cuda_getCurrentRawStream(device))

    def empty_like(self, array: Any, stream: int | None) -> Any:
        torch = sys.modules["torch"]
        if stream is None:
            return torch.empty_like(array, memory_format=torch.contiguous_format)
        # ExternalStream(0) would be a new stream of torch's pool.
        external = torch.cuda.ExternalStream(stream, array.device) if stream else None
        with torch.cuda.stream(external or torch.cuda.default_stream(array.device)):
            return torch.empty_like(array, memory_format=torch.contiguous_format)


_LIBRARIES = {"cupy": CuPy(), "numba": Library(), "torch": Torch()}

_known: WeakKeyDictionary[type, Library | None] = WeakKeyDictionary()


def library_of(kind: type) -> Library | None:
    """The library whose array type this is, or is derived from; None where it is none of these."""
    if kind not in _known:
        modules = (str(base.__module__).partition(".")[0] for base in kind.__mro__)
        _known[kind] = next((_LIBRARIES[module] for module in modules if module in _LIBRARIES), None)
    return _known[kind]
