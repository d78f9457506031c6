"""The peers on the device: each adds the same tensors into an existing one. `entries` is the table of them."""

import ctypes
import functools
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import clocks, events, libraries
from benchmarks.peers.libraries import Add, Entry
from benchmarks.peers.tensors import borrowed, name_of
from build_native import toolkit
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import MemoryKind

DTYPES = ("int8", "float16", "bfloat16", "float32", "float64", "complex64")

HEADERS = "VECADD_CCCL"  # names the folder of CUB's headers; else those of the toolkit count


@dataclass(frozen=True)
class DevicePeer:
    """``settings``: the peer's ways to add, by their names in tables; the fastest counts in each cell. ``params`` join
    those of its rows."""

    name: str
    settings: Mapping[str, Add]
    dtypes: tuple[str, ...] = DTYPES
    params: Mapping[str, Any] = field(default_factory=dict)

    def contestant(self, place: MemoryKind, clock: Callable[[Add], clocks.Timer] = events.by_events) -> Contestant:
        """The contestant of one cell; its first call, before the rounds, finds the fastest setting there."""
        fastest = clocks.Fastest({name: clock(add) for name, add in self.settings.items()})
        return Contestant(self.name, place, fastest, self.params, extra_params=fastest.facts)


def entries(dtypes: Sequence[str] = (), in_a_row: bool = False) -> list[Entry[DevicePeer]]:
    """The table of the peers, vecadd first; ``dtypes`` are those that CUB is compiled for. ``in_a_row``: for additions
    that are queued one after the other."""
    return [
        Entry("vecadd", "", "vecadd", ours),
        Entry("torch", "torch", "torch", torch),
        Entry("torch.compile", "torch", "torch", torch_compiled),
        Entry("CUB DeviceTransform", "", "nvidia-cuda-nvcc", functools.partial(cub, dtypes)),
        Entry("cuda.compute", "cuda.compute", "cuda-cccl[cu13]", cuda_compute),
        Entry("cupy", "cupy", "cupy-cuda13x", cupy),
        Entry("triton", "triton", "triton", functools.partial(triton, in_a_row)),
        Entry("helion", "helion", "helion", helion),
        Entry("numba", "numba.cuda", "numba-cuda[cu13]", numba),
        Entry("cuTile", "cuda.tile", "cuda-tile", None),
        Entry("CuTe DSL", "cutlass.cute", "nvidia-cutlass-dsl", None),
        Entry("Warp", "warp", "warp-lang", None),
        Entry("TileLang", "tilelang", "tilelang", None),
    ]


def ours() -> DevicePeer:
    return DevicePeer("vecadd", {"": vecadd.add})


def torch() -> DevicePeer:
    return DevicePeer("torch", {"": libraries.module("torch").add})


def torch_compiled() -> DevicePeer:
    """torch.compile, compiled anew for each dtype and size: code for any size is less optimised. Complex numbers are
    added as pairs, because it compiles nothing for them."""
    library = libraries.module("torch")
    config = libraries.module("torch._dynamo").config
    # Beyond these it would add without compiling.
    config.recompile_limit = config.accumulated_recompile_limit = 1 << 12

    def compiled(mode: str) -> Add:
        add = library.compile(_add_functionally, mode=mode, dynamic=False)
        return lambda a, b, out: add(*_without_complex(a, b, out))

    return DevicePeer("torch.compile", {mode: compiled(mode) for mode in ("default", "max-autotune-no-cudagraphs")})


def _add_functionally(a: Any, b: Any, out: Any) -> None:
    out.copy_(a + b)  # one kernel, which writes into out


def cub(dtypes: Sequence[str]) -> DevicePeer:
    compiled = _compile_cub(tuple(name for name in dtypes if name in _CUB_TYPES))

    def add(a: Any, b: Any, out: Any) -> None:
        status = compiled[name_of(a)].cub_add(a.data_ptr(), b.data_ptr(), out.data_ptr(), a.numel(), None)
        if status:
            raise RuntimeError(f"CUB's DeviceTransform failed with CUDA error {status}")

    numbers = {library.cub_version() for library in compiled.values()}
    versions = [f"CCCL {number // 10**6}.{number // 1000 % 1000}.{number % 1000}" for number in numbers]
    return DevicePeer("CUB DeviceTransform", {"": add}, tuple(compiled), {"version": ", ".join(versions)})


def cuda_compute() -> DevicePeer:
    """cuda-cccl's Python: CUB compiled at run time, once a dtype; the object that it makes is called, which is quicker
    than `binary_transform`."""
    compute = libraries.module("cuda.compute")
    plus = compute.OpKind.PLUS
    made: dict[str, Any] = {}

    def add(a: Any, b: Any, out: Any) -> None:
        a, b, out = _without_complex(a, b, out)
        if (dtype := name_of(a)) not in made:
            made[dtype] = compute.make_binary_transform(d_in1=a, d_in2=b, d_out=out, op=plus)
        made[dtype](d_in1=a, d_in2=b, d_out=out, op=plus, num_items=a.numel())

    return DevicePeer("cuda.compute", {"": add})


def cupy() -> DevicePeer:
    library = libraries.module("cupy")
    view = _views(library.asarray)
    return DevicePeer("cupy", {"": lambda a, b, out: library.add(view(a), view(b), out=view(out))}, _WITHOUT_BFLOAT16)


def triton(in_a_row: bool = False) -> DevicePeer:
    """``in_a_row``: also launched programmatically, which gains nothing where nothing is queued ahead."""
    kernels = libraries.module("benchmarks.peers.triton_add")
    settings = _triton_settings("", kernels.add, _SHAPES)
    if in_a_row and kernels.PROGRAMMATIC and libraries.module("torch").cuda.get_device_capability() >= (9, 0):
        settings |= _triton_settings(", programmatic", kernels.add_programmatically, ((512, 4), (1024, 4)))
    return DevicePeer("triton", settings)


def helion() -> DevicePeer:
    """Helion with the shapes of Triton's kernel: its own search takes ten minutes for one size of one dtype."""
    libraries.module("helion")
    kernels = libraries.module("benchmarks.peers.triton_add")
    return DevicePeer("helion", _triton_settings("", kernels.add_by_helion, _SHAPES))


_SHAPES = ((512, 4), (1024, 4), (2048, 8), (4096, 8))  # elements and warps of a block
_MOST_OF_TRITONS = 2**30  # elements of a launch: its kernel counts them in 32 bits, and complex64 has two floats each


def _triton_settings(
    launch: str, queue: Callable[[Any, Any, Any, int, int], None], shapes: Sequence[tuple[int, int]]
) -> dict[str, Add]:
    def setting(block: int, warps: int) -> Add:
        def add(a: Any, b: Any, out: Any) -> None:
            parts = (x.split(_MOST_OF_TRITONS) for x in _without_complex(a, b, out))
            for some_a, some_b, some_out in zip(*parts, strict=True):
                queue(some_a, some_b, some_out, block, warps)

        return add

    return {f"block {block}, {warps} warps{launch}": setting(block, warps) for block, warps in shapes}


def numba() -> DevicePeer:
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # removed in NumPy 2.5; numba 0.6x still uses it
    cuda = libraries.module("numba.cuda")
    libraries.module("numba").config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    view = _views(lambda x: cuda.as_cuda_array(x, sync=False))

    def kernel(a: Any, b: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a[i] + b[i]

    compiled = cuda.jit(kernel)

    def setting(block: int) -> tuple[str, Add]:
        def add(a: Any, b: Any, out: Any) -> None:
            compiled[(a.numel() + block - 1) // block, block](view(a), view(b), view(out))

        return f"block {block}", add

    return DevicePeer("numba", dict(setting(block) for block in (256, 512, 1024)), _WITHOUT_BFLOAT16)


_WITHOUT_BFLOAT16 = tuple(name for name in DTYPES if name != "bfloat16")


def _views(wrap: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wraps a tensor as another library's array, once for each address: making one takes as long as adding."""
    made: dict[tuple[int, int, str], Any] = {}

    def view(x: Any) -> Any:
        key = x.data_ptr(), x.numel(), name_of(x)
        if key not in made:
            made[key] = wrap(borrowed(x))
        return made[key]

    return view


def _without_complex(*tensors: Any) -> Sequence[Any]:
    """Complex numbers as pairs of floats; other tensors as they are."""
    if not tensors[0].is_complex():
        return tensors
    library = libraries.module("torch")
    return [library.view_as_real(x).view(-1) for x in tensors]


_CUB_TYPES = {
    "int8": "signed char",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "cuda::std::complex<float>",
}


@functools.cache
def _compile_cub(dtypes: tuple[str, ...]) -> dict[str, ctypes.CDLL]:
    """Compiles cub.cu to a shared library for each dtype, for this machine's GPU, all at once: one takes 15 s and
    more."""
    nvcc = str(toolkit.find().nvcc)
    source = Path(__file__).with_name("cub.cu")
    flags = ["-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler=-fPIC", *_headers(os.environ.get(HEADERS))]

    def compiled(dtype: str) -> ctypes.CDLL:
        library = Path(folder) / f"cub-{dtype}.so"
        command = [nvcc, *flags, f"-DCUB_TYPE={_CUB_TYPES[dtype]}", "-o", str(library), str(source)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if result.returncode:
            raise RuntimeError(f"{nvcc} failed: {result.stderr.strip()[-500:]}")
        loaded = ctypes.CDLL(str(library))
        loaded.cub_add.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_longlong, ctypes.c_void_p]
        return loaded

    # The folder may go once the libraries are loaded.
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        return dict(zip(dtypes, pool.map(compiled, dtypes), strict=True))


def _headers(named: str | None) -> list[str]:
    """The compiler's options for CCCL's headers in that folder: an include folder, or a checkout. None for the
    toolkit's own headers."""
    if not named:
        return []
    for parts in (("",), ("cub", "thrust", "libcudacxx/include")):
        if Path(named, parts[0], "cub", "cub.cuh").is_file():
            return [f"-I{Path(named, part)}" for part in parts]
    raise FileNotFoundError(
        f"{HEADERS}={named} has neither cub/cub.cuh nor cub/cub/cub.cuh: name an include folder or a checkout of CCCL"
    )
