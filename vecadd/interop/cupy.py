"""CuPy: read by attributes, ordered by its current stream."""

import sys
from typing import Any

from vecadd.interop.library import Handle, Library, back, in_memory, is_foreign


class CuPy(Library):
    """Arrays of CuPy, read by their attributes."""

    has_attributes = True

    @property
    def array_type(self) -> Any:
        """The type whose attributes the C extension reads. In a derived type they may mean something else."""
        return sys.modules["cupy"].ndarray

    @property
    def stream_of(self) -> Any:
        """The function that gives a device's current stream, an object with `ptr`."""
        return sys.modules["cupy"].cuda.get_current_stream

    @property
    def pooled_type(self) -> Any:
        """The type of memory from CuPy's pool, whose `ptr`, `size` and `device_id` are right; or None."""
        return getattr(getattr(sys.modules["cupy"].cuda, "memory", None), "PooledMemory", None)

    def current_stream(self, device: int) -> int | None:
        return int(sys.modules["cupy"].cuda.get_current_stream(device).ptr)

    def stream_owner(self, handle: int, device: int) -> Any:
        stream = sys.modules["cupy"].cuda.get_current_stream(device)
        return stream if stream.ptr == handle and not is_foreign(stream, handle) else None

    def empty_like(
        self,
        array: Any,
        stream: int | None,
        shape: tuple[int, ...] | None = None,
        dtype: str | None = None,
        axes: tuple[int, ...] | None = None,
    ) -> Any:
        cupy = sys.modules["cupy"]
        due = array.shape if shape is None else in_memory(shape, axes), dtype or array.dtype
        with array.device:
            if stream is None:
                made = cupy.empty(*due)
            else:
                with self._stream(stream, array.device.id):
                    made = cupy.empty(*due)
        return made if axes is None else made.transpose(back(axes))

    @staticmethod
    def _stream(handle: int, device: int) -> Any:
        cuda = sys.modules["cupy"].cuda
        if not handle:
            return cuda.Stream.null
        if hasattr(cuda.Stream, "from_external"):  # CuPy 14, where ExternalStream warns
            return cuda.Stream.from_external(Handle(handle))
        return cuda.ExternalStream(handle, device)
