"""PyTorch: read by DLPack's exchange table, told of streams and writes."""

import sys
from typing import Any

from numpy.typing import NDArray

from vecadd.interop.library import Library, back, in_memory


class Torch(Library):
    """Tensors of PyTorch, on a GPU or on the host."""

    void_dtypes = ("bfloat16",)
    has_exchange_table = True

    has_host_arrays = True
    sums_as_first = True
    records_streams = True

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
        if array.is_conj() or array.is_neg():  # the interface reports neither
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
            made = torch.empty(in_memory(shape, axes), dtype=getattr(torch, str(dtype)), device=array.device)
            return made if axes is None else made.permute(back(axes))

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
        if total.dtype.isbuiltin != 1:  # NumPy does not export ml_dtypes' dtypes
            as_integers = torch.from_dlpack(total.view(f"i{total.itemsize}"))
            return as_integers.view(getattr(torch, total.dtype.name))
        return torch.from_dlpack(total)

    def add(self, a: Any, b: Any, out: Any) -> Any:
        return sys.modules["torch"].add(a, b, out=out)
