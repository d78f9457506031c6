"""JAX: arrays are read and sums returned by DLPack alone."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from vecadd.interop.library import Library

MOST_STREAMS = 64


class JAX(Library):
    """Arrays of JAX never change, and callers do not know the stream that computes them: DLPack orders our stream after
    it."""

    by_dlpack_only = True
    no_order = None  # the host then waits for the array; JAX would take -1 for a handle
    adopts = True
    has_host_arrays = True
    sums_in_c_order = True

    def export(self, array: Any, writing: bool) -> Any:
        jax = sys.modules["jax"]
        if writing:
            raise TypeError("out is a JAX array, and those do not change: omit out, the sum is a new one")
        if self.must_add((array,), None):
            return NotImplemented
        if not isinstance(array, jax.Array):
            return None
        if not hasattr(array, "__dlpack_device__"):  # keys of random generators
            raise TypeError(f"JAX arrays of the dtype {array.dtype} have no sum: add arrays of numbers")
        if len(array.devices()) > 1:
            raise ValueError("the JAX array is sharded over several devices: add its addressable_shards one by one")
        return array if array.__dlpack_device__()[0] != 1 else None  # 1 is the host, in DLPack's numbers

    def must_add(self, operands: Sequence[Any], out: Any) -> str | None:
        traced = any(isinstance(x, sys.modules["jax"].core.Tracer) for x in operands)
        return "JAX traces them (jax.jit, jax.grad, jax.vmap), and the graph gets jax.numpy.add" if traced else None

    def stream_owner(self, handle: int, device: int) -> Any:
        jax = sys.modules["jax"]
        if not jax._src.xla_bridge.backends_are_initialized():
            return None
        with suppress(RuntimeError):  # JAX has no GPU
            for gpu in jax.local_devices(backend="gpu"):
                # JAX has its producers order one of a few streams, each in its turn, which go with its client.
                streams: set[int] = set()
                while gpu.local_hardware_id == device and len(streams) < MOST_STREAMS:
                    stream = gpu.get_stream_for_external_ready_events()
                    if stream == handle:
                        return gpu.client
                    if stream in streams:
                        break
                    streams.add(stream)
        return None

    def result_dtype(self, a: Any, b: Any) -> str | None:
        return str(sys.modules["jax"].numpy.result_type(a, b).name)

    def adopt(self, array: Any) -> Any:
        return sys.modules["jax"].dlpack.from_dlpack(array)

    def from_host(self, total: NDArray[Any], like: Any) -> Any:
        jax = sys.modules["jax"]
        if total.dtype.isbuiltin != 1:  # NumPy does not export ml_dtypes' dtypes
            return jax.device_put(total, like.sharding)
        return jax.dlpack.from_dlpack(total)

    def add(self, a: Any, b: Any, out: Any, stream: int | None = None) -> Any:
        if out is not None:
            raise TypeError("out cannot be used with arrays that JAX traces, since their sum is a new array: omit out")
        return sys.modules["jax"].numpy.add(a, b)
