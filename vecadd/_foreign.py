"""What other libraries' arrays have beyond the array interface and DLPack: a current stream, new arrays of their kind.

The C extension calls ``library_of`` and the methods of what it gives. No library is imported here: whoever hands over
an array of its has done so.
"""

import sys
from typing import Any
from weakref import WeakKeyDictionary

from numpy.typing import NDArray


class Library:
    """A library whose arrays are no more than their interface says: sums are DeviceArrays."""

    void_dtypes: tuple[str, ...] = ()  # ml_dtypes' dtypes that it adds, and that a typestr of their size, "<V2", means
    has_attributes = False  # whether arrays of its `array_type` may be read as operand_cupy.c does
    has_exchange_table = False  # whether types of its may have the table that operand_torch.c reads
    by_dlpack_only = False  # whether its __cuda_array_interface__ orders nothing
    adopts = False  # whether sums are made as DeviceArrays and given to it when their kernel is queued
    has_host_arrays = False  # whether arrays that `export` does not take are on the host, for vecadd._tensors
    sums_in_c_order = False  # whether its sums are in C order whatever its arrays are; else by NumPy's rule, order="K",
    sums_as_first = False  # or in the order of the first array whose strides say one, as torch's iterator has it
    records_streams = False  # whether it is to be told of other streams than its current one that use an array
    count_writes: Any = None  # a function to be called with a tuple or list of its arrays that vecadd has written

    def export(self, array: Any, writing: bool) -> Any:
        """The object whose interface is to be read; None where the array is not in device memory."""
        return array

    def current_stream(self, device: int) -> int | None:
        """The handle of the stream on which the library works now."""
        return None

    def result_dtype(self, a: Any, b: Any) -> str | None:
        """The name of the dtype that the library gives a + b, arrays of its own or one and a number; None: NumPy's."""
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
        """An array of the library's in the memory of this DeviceArray, which it keeps."""
        return array

    def record_stream(self, array: Any, stream: int) -> None:
        """Has the array's memory not used again before what this stream holds now is done."""

    def on_host(self, array: Any, writing: bool) -> Any:
        """The array as its __dlpack__ is to be asked for; raises where it is not to be added."""
        return array

    def from_host(self, total: NDArray[Any], like: Any) -> Any:
        """An array of the library's, where `like` is, in the memory of this NumPy array or with its elements."""
        return total

    def add(self, a: Any, b: Any, out: Any) -> Any:
        """Its own addition, for arrays on the host that have to be broadcast or cast."""
        raise NotImplementedError


def _in_memory(shape: tuple[int, ...], axes: tuple[int, ...] | None) -> tuple[int, ...]:
    """The extents, that of the largest stride first."""
    return shape if axes is None else tuple(shape[axis] for axis in axes)


def _back(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that undo a transposition."""
    return tuple(axes.index(axis) for axis in range(len(axes)))


class _Handle:
    """A stream in the protocol of cuda.core."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class CuPy(Library):
    """Arrays of CuPy, read by their attributes."""

    has_attributes = True

    @property
    def array_type(self) -> Any:
        """The type whose attributes operand_cupy.c reads; what is derived from it may mean something else by them."""
        return sys.modules["cupy"].ndarray

    @property
    def stream_of(self) -> Any:
        """The function that gives a device's current stream, an object with `ptr`."""
        return sys.modules["cupy"].cuda.get_current_stream

    @property
    def pooled_type(self) -> Any:
        """The type of the memory that CuPy's pool has allocated, whose `ptr`, `size` and `device_id` hold; or None."""
        return getattr(getattr(sys.modules["cupy"].cuda, "memory", None), "PooledMemory", None)

    def current_stream(self, device: int) -> int | None:
        return int(sys.modules["cupy"].cuda.get_current_stream(device).ptr)

    def empty_like(
        self,
        array: Any,
        stream: int | None,
        shape: tuple[int, ...] | None = None,
        dtype: str | None = None,
        axes: tuple[int, ...] | None = None,
    ) -> Any:
        cupy = sys.modules["cupy"]
        due = array.shape if shape is None else _in_memory(shape, axes), dtype or array.dtype
        with array.device:
            if stream is None:
                made = cupy.empty(*due)
            else:
                with self._stream(stream, array.device.id):
                    made = cupy.empty(*due)
        return made if axes is None else made.transpose(_back(axes))

    @staticmethod
    def _stream(handle: int, device: int) -> Any:
        cuda = sys.modules["cupy"].cuda
        if not handle:
            return cuda.Stream.null
        if hasattr(cuda.Stream, "from_external"):  # CuPy 14, where ExternalStream warns
            return cuda.Stream.from_external(_Handle(handle))
        return cuda.ExternalStream(handle, device)


class Torch(Library):
    """Tensors of PyTorch, on a GPU or on the host."""

    void_dtypes = ("bfloat16",)
    has_exchange_table = True

    has_host_arrays = True
    sums_as_first = True
    records_streams = True

    @property
    def empty_strided(self) -> Any:
        """What torch's own compiled code makes tensors by, called with sizes, strides and a dtype; None: there is none.

        It takes plain tuples, and allocates on the current device for the current stream."""
        guards = getattr(sys.modules["torch"]._C, "_dynamo", None)
        return getattr(getattr(guards, "guards", None), "_empty_strided_cuda", None)

    @property
    def count_writes(self) -> Any:
        """What torch's own in-place operations call, so that backward() knows which saved tensors were written since.

        torch.autograd.graph.increment_version(x) takes 0.4 us, 0.2 of them in the function of torch._C that it calls.
        """
        torch = sys.modules["torch"]
        count: Any = getattr(torch._C, "_increment_version", None)
        try:
            count(())  # an older PyTorch's takes one tensor
        except (RuntimeError, TypeError):
            graph = getattr(getattr(torch, "autograd", None), "graph", None)
            one = getattr(graph, "increment_version", None)
            return None if one is None else lambda tensors: [one(tensor) for tensor in tensors]
        return count

    def export(self, array: Any, writing: bool) -> Any:
        return self.on_host(array, writing) if getattr(array, "is_cuda", False) else None

    def keeps_gradients(self) -> bool:
        """Whether an addition of a tensor that needs its gradient has to keep one."""
        return bool(sys.modules["torch"].is_grad_enabled())

    def on_host(self, array: Any, writing: bool) -> Any:
        if str(array.dtype).startswith("torch.float8"):
            raise NotImplementedError(f"PyTorch does not add tensors of {array.dtype}, and vecadd.add neither")
        if array.requires_grad:
            if self.keeps_gradients():
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

    def result_dtype(self, a: Any, b: Any) -> str | None:
        # Asked each time, 1 us: the answer depends on dimensions and on torch's default dtype as well.
        return str(sys.modules["torch"].result_type(a, b)).partition(".")[2]

    def empty_like(
        self,
        array: Any,
        stream: int | None,
        shape: tuple[int, ...] | None = None,
        dtype: str | None = None,
        axes: tuple[int, ...] | None = None,
    ) -> Any:
        torch = sys.modules["torch"]

        def make() -> Any:
            if shape is None:
                return torch.empty_like(array, memory_format=torch.contiguous_format)
            made = torch.empty(_in_memory(shape, axes), dtype=getattr(torch, str(dtype)), device=array.device)
            return made if axes is None else made.permute(_back(axes))

        if stream is None:
            return make()
        # ExternalStream(0) would be a new stream of torch's pool.
        external = torch.cuda.ExternalStream(stream, array.device) if stream else None
        with torch.cuda.stream(external or torch.cuda.default_stream(array.device)):
            return make()

    def record_stream(self, array: Any, stream: int) -> None:
        torch = sys.modules["torch"]
        external = torch.cuda.ExternalStream(stream, array.device) if stream else None
        array.record_stream(external or torch.cuda.default_stream(array.device))

    def from_host(self, total: NDArray[Any], like: Any) -> Any:
        torch = sys.modules["torch"]
        if total.dtype.isbuiltin != 1:  # ml_dtypes' are not among the dtypes that NumPy gives away
            as_integers = torch.from_dlpack(total.view(f"i{total.itemsize}"))
            return as_integers.view(getattr(torch, total.dtype.name))
        return torch.from_dlpack(total)

    def add(self, a: Any, b: Any, out: Any) -> Any:
        return sys.modules["torch"].add(a, b, out=out)


class Numba(Library):
    """Device arrays of Numba's CUDA target, whose sums are DeviceArrays that Numba adopts."""

    adopts = True

    def adopt(self, array: Any) -> Any:
        cuda = sys.modules["numba.cuda"]
        # In the context of the array's device, which becomes the new one's own. The array knows its stream: asked to
        # synchronize, which is the default, numba would wait for it here.
        with cuda.gpus[int(array.device.removeprefix("cuda:"))]:
            return cuda.as_cuda_array(array, sync=False)


class JAX(Library):
    """Its arrays never change, and no caller knows the stream that computes them: DLPack orders ours after it."""

    by_dlpack_only = True
    adopts = True
    has_host_arrays = True
    sums_in_c_order = True

    def export(self, array: Any, writing: bool) -> Any:
        jax = sys.modules["jax"]
        if isinstance(array, jax.core.Tracer):
            raise TypeError("vecadd.add cannot be traced by JAX: call it outside jax.jit, jax.grad and jax.vmap")
        if writing:
            raise TypeError("out is a JAX array, and those do not change: leave out away, the sum is a new one")
        if not isinstance(array, jax.Array):
            return None
        if len(array.devices()) > 1:
            raise ValueError("the JAX array is sharded over several devices: add its addressable_shards one by one")
        return array if array.__dlpack_device__()[0] != 1 else None  # 1 is the host, in DLPack's numbers

    def result_dtype(self, a: Any, b: Any) -> str | None:
        return str(sys.modules["jax"].numpy.result_type(a, b).name)

    def adopt(self, array: Any) -> Any:
        return sys.modules["jax"].dlpack.from_dlpack(array)

    def from_host(self, total: NDArray[Any], like: Any) -> Any:
        jax = sys.modules["jax"]
        if total.dtype.isbuiltin != 1:  # ml_dtypes' are not among the dtypes that NumPy gives away
            return jax.device_put(total, like.sharding)
        return jax.dlpack.from_dlpack(total)

    def add(self, a: Any, b: Any, out: Any) -> Any:
        return sys.modules["jax"].numpy.add(a, b)


_LIBRARIES = {"cupy": CuPy(), "jax": JAX(), "jaxlib": JAX(), "numba": Numba(), "torch": Torch()}

_known: WeakKeyDictionary[type, Library | None] = WeakKeyDictionary()


def library_of(kind: type) -> Library | None:
    """The library whose array type this is, or is derived from; None where it is none of these."""
    if kind not in _known:
        modules = (str(base.__module__).partition(".")[0] for base in kind.__mro__)
        _known[kind] = next((_LIBRARIES[module] for module in modules if module in _LIBRARIES), None)
    return _known[kind]
