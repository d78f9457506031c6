"""PyTorch: read by DLPack's exchange table, told of streams and writes."""

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from numpy.typing import NDArray

from vecadd.interop.library import Library, back, in_memory


class Torch(Library):
    """Tensors of PyTorch, on a GPU or on the host."""

    has_exchange_table = True

    has_host_arrays = True
    sums_as_first = True
    numbers_as_torch = True
    records_streams = True
    has_bfloat16 = True

    @property
    def empty_strided(self) -> Any:
        """The function by which torch's compiled code makes tensors, called with sizes, strides and a dtype; None:
        none.

        It takes plain tuples, and allocates on the current device for the current stream."""
        guards = getattr(sys.modules["torch"]._C, "_dynamo", None)
        return getattr(getattr(guards, "guards", None), "_empty_strided_cuda", None)

    @property
    def count_writes(self) -> Any:
        """The function that torch's in-place operations call, by which backward() finds saved tensors that were
        overwritten.

        torch.autograd.graph.increment_version(x) takes 0.4 us, 0.2 of them in the function of torch._C that it calls.
        """
        torch = sys.modules["torch"]
        count: Any = getattr(torch._C, "_increment_version", None)
        try:
            count(())  # in an older PyTorch it takes one tensor
        except (RuntimeError, TypeError):
            graph = getattr(getattr(torch, "autograd", None), "graph", None)
            one = getattr(graph, "increment_version", None)
            return None if one is None else lambda tensors: [one(tensor) for tensor in tensors]
        return count

    def export(self, array: Any, writing: bool) -> Any:
        if _has_own_rules(type(array)):  # which its attributes may go by too
            return NotImplemented
        if self.function_mode():  # which would see that the attribute is read
            with sys.modules["torch"]._C.DisableTorchFunction():
                return NotImplemented if array.is_cuda else None
        if getattr(array, "is_cuda", False) is not True:
            return None
        if not _has_memory(array) or self.must_add((array,), array if writing else None):
            return NotImplemented
        return self.on_host(array, writing)

    def keeps_gradients(self) -> bool:
        """Whether an addition of a tensor that needs its gradient has to keep one."""
        return bool(sys.modules["torch"].is_grad_enabled())

    @property
    def recorders(self) -> tuple[Callable[[], object], ...]:
        """Functions that say whether PyTorch may pass its operations to a mode or a tracer now: those see no kernel of
        ours. 0.03 us a call. Where one says yes, `records` says whether it does."""
        core = sys.modules["torch"]._C
        names = "_len_torch_dispatch_stack", "_is_tracing", "_is_torch_function_mode_enabled"
        return tuple(getattr(core, name, bool) for name in names)

    def function_mode(self) -> bool:
        """Whether a mode takes PyTorch's functions over, but for torch.device's, which only places new tensors."""
        torch = sys.modules["torch"]
        if not getattr(torch._C, "_is_torch_function_mode_enabled", bool)():
            return False
        device = getattr(sys.modules.get("torch.utils._device"), "DeviceContext", None)
        modes = [torch._C._get_function_stack_at(i) for i in range(torch._C._len_torch_function_stack())]
        return any(type(mode) is not device for mode in modes)

    def records(self) -> str | None:
        """How PyTorch passes its operations to a mode or a tracer now, in a few words; None: it does not."""
        *others, _ = self.recorders
        if self.function_mode() or any(recorder() for recorder in others):
            return "PyTorch records or traces its own operations at the moment, or a mode takes them over"
        return None

    @property
    def forward_mode(self) -> Any:
        """The module whose `_current_level` is -1 outside of forward-mode derivatives; None: no such module."""
        return getattr(getattr(sys.modules["torch"], "autograd", None), "forward_ad", None)

    @property
    def in_inference_mode(self) -> Any:
        """The function that says whether PyTorch is in its inference mode; None: it has no such mode."""
        return getattr(sys.modules["torch"], "is_inference_mode_enabled", None)

    def must_add(self, operands: Sequence[Any], out: Any) -> str | None:
        if why := self.records():
            return why
        if getattr(self.forward_mode, "_current_level", -1) >= 0:
            return "PyTorch takes forward-mode derivatives at the moment"
        for x in operands:
            if _has_own_rules(type(x)):
                return "a tensor's type says itself how its tensors are added"
            if (named := getattr(type(x), "has_names", None)) and named(x):
                return "a tensor's dimensions have names"
            if getattr(x, "requires_grad", False) and self.keeps_gradients():
                return "a tensor needs its gradient, which torch.add keeps: tensor.detach() or torch.no_grad() does not"
        if out is not None and self.in_inference_mode and not self.in_inference_mode() and out.is_inference():
            return "out is an inference tensor, which may be written in torch.inference_mode() alone"
        return None

    def on_host(self, array: Any, writing: bool) -> Any:
        if _is_float8(array.dtype):
            raise NotImplementedError(f"PyTorch does not add tensors of {array.dtype}, and vecadd.add neither")
        if array.requires_grad:
            array = array.detach()
        if array.is_conj() or array.is_neg():  # the interface reports neither
            if writing:
                raise ValueError("out is a conjugated or negated view: pass a tensor of its own")
            array = array.resolve_conj().resolve_neg()
        return array

    def current_stream(self, device: int) -> int | None:
        # The handle alone, as torch's own compilers take it: 0.07 us. torch.cuda.current_stream() takes 1.8 us.
        return int(sys.modules["torch"]._C._cuda_getCurrentRawStream(device))

    def stream_owner(self, handle: int, device: int) -> Any:
        torch = sys.modules["torch"]
        if not torch.cuda.is_initialized() or self.current_stream(device) != handle:
            return None
        # torch's own streams are from pools that it never gives back. One of another library has its handle for an id.
        return torch._C._cuda_getCurrentStream(device)[0] != handle or None

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
            made = torch.empty(in_memory(shape, axes), dtype=getattr(torch, str(dtype)), device=array.device)
            return made if axes is None else made.permute(back(axes))

        if stream is None:
            return make()
        with torch.cuda.stream(self._stream(stream, array.device)):
            return make()

    @staticmethod
    def _stream(handle: int, device: Any) -> Any:
        cuda = sys.modules["torch"].cuda  # ExternalStream(0) would be a new stream of torch's pool
        return cuda.ExternalStream(handle, device) if handle else cuda.default_stream(device)

    def record_stream(self, array: Any, stream: int) -> None:
        # torch keeps the handle, and records an event on that stream when the memory goes: it may have been destroyed
        # by then. torch's current stream, which waits for the other one, will do, unless it is another library's too.
        current = self.current_stream(array.device.index)
        if not current or self.stream_owner(current, array.device.index):
            array.record_stream(sys.modules["torch"].cuda.current_stream(array.device))

    def from_host(self, total: NDArray[Any], like: Any) -> Any:
        torch = sys.modules["torch"]
        if total.dtype.isbuiltin != 1:  # NumPy does not export ml_dtypes' dtypes
            as_integers = torch.from_dlpack(total.view(f"i{total.itemsize}"))
            return as_integers.view(getattr(torch, total.dtype.name))
        return torch.from_dlpack(total)

    def add(self, a: Any, b: Any, out: Any, stream: int | None = None) -> Any:
        torch = sys.modules["torch"]
        if stream is None:
            return torch.add(a, b, out=out)
        on_gpu = [x for x in (a, b, out) if getattr(x, "is_cuda", False) is True]
        if not on_gpu or stream == self.current_stream(on_gpu[0].device.index):
            return torch.add(a, b, out=out)
        side, current = self._stream(stream, on_gpu[0].device), torch.cuda.current_stream(on_gpu[0].device)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            total = torch.add(a, b, out=out)
        current.wait_stream(side)
        for x in on_gpu:
            self.record_stream(x, stream)
        return total


def _has_own_rules(kind: type) -> bool:
    """Whether a type takes PyTorch's functions over: one derived from torch.Tensor, or that of torch.fx's proxies."""
    for base in kind.__mro__:
        if "__torch_function__" in base.__dict__ or "__torch_dispatch__" in base.__dict__:
            if base.__module__ != "torch.nn.parameter":
                return base.__module__ != "torch"
            return base.__name__ not in (
                "Parameter",
                "Buffer",
            )  # parameters that have no shape yet refuse all functions
    return False


def _has_memory(tensor: Any) -> bool:
    """Whether the elements are numbers at an address: not those of sparse, nested and quantized tensors, and of tensors
    inside torch.vmap."""
    if getattr(tensor, "is_nested", False) is True or getattr(tensor, "is_quantized", False) is True:
        return False
    try:
        return bool(tensor.data_ptr() != 0 or tensor.numel() == 0)
    except RuntimeError:
        return False


@cache
def _is_float8(dtype: Any) -> bool:
    return str(dtype).startswith("torch.float8")
