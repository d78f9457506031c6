"""The peers on the device: each adds the same tensors into an existing one."""

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import clocks, libraries
from benchmarks.peers.libraries import Add
from benchmarks.peers.tensors import borrowed, name_of
from build_native import toolkit
from vecadd.bench.buffers import Buffers, Place
from vecadd.bench.contestants import Contestant

DTYPES = ("int8", "float16", "bfloat16", "float32", "float64", "complex64")

TRIED = 5  # rounds in which a peer's settings meet before the clock of the cell runs


@dataclass(frozen=True)
class DevicePeer:
    """``settings``: the peer's ways to add, by their names in tables; the fastest counts in each cell."""

    name: str
    settings: Mapping[str, Add]
    dtypes: tuple[str, ...] = DTYPES

    def contestant(self, place: Place, clock: Callable[[Add], clocks.Timer] = clocks.by_events) -> Contestant:
        """The contestant of one cell; its first call, before the rounds, finds the fastest setting there."""
        timers = {name: clock(add) for name, add in self.settings.items()}
        chosen, chosen_by = "", 0

        def time(sets: Sequence[Buffers]) -> float:
            nonlocal chosen, chosen_by
            if len(sets) > chosen_by:  # the warm-up's one set is in the L2, later rounds' sets are not
                chosen, chosen_by = _fastest(timers, sets), len(sets)
            return timers[chosen](sets)

        return Contestant(
            self.name, place, time, inspect=(lambda used: {"setting": chosen}) if len(timers) > 1 else None
        )


def _fastest(timers: Mapping[str, clocks.Timer], sets: Sequence[Buffers]) -> str:
    if len(timers) == 1:
        return next(iter(timers))
    for time in timers.values():
        time(sets)  # compiles
    rounds = [{name: time(sets) for name, time in timers.items()} for _ in range(TRIED)]
    return min(timers, key=lambda name: float(np.median([taken[name] for taken in rounds])))


def all_of(dtypes: Sequence[str], in_a_row: bool = False) -> Iterator[DevicePeer]:
    """The peers that this machine has, vecadd first; a missing one prints a line. ``in_a_row``: for additions that are
    queued one behind the other."""
    makers: list[Callable[[], DevicePeer]] = [
        ours,
        torch,
        functools.partial(cub, dtypes),
        cupy,
        functools.partial(triton, in_a_row),
        numba,
    ]
    return found([*makers, triton_early] if in_a_row else makers)


def found(makers: Sequence[Callable[[], DevicePeer]]) -> Iterator[DevicePeer]:
    """The peers that these functions make; a missing one prints a line."""
    for make in makers:
        try:
            yield make()
        except Exception as error:
            name = getattr(make, "func", make).__name__
            print(f"left out: {name}: {type(error).__name__}: {error}", flush=True)


def ours() -> DevicePeer:
    def add(a: Any, b: Any, out: Any) -> None:
        vecadd.add(a, b, out=out)

    return DevicePeer("vecadd", {"": add})


def torch() -> DevicePeer:
    library = libraries.module("torch")
    return DevicePeer("torch", {"": lambda a, b, out: library.add(a, b, out=out)})


def cub(dtypes: Sequence[str]) -> DevicePeer:
    functions = _compile_cub(tuple(name for name in dtypes if name in _CUB_TYPES))

    def add(a: Any, b: Any, out: Any) -> None:
        status = functions[name_of(a)](a.data_ptr(), b.data_ptr(), out.data_ptr(), a.numel(), None)
        if status:
            raise RuntimeError(f"CUB's DeviceTransform failed with CUDA error {status}")

    return DevicePeer("CUB DeviceTransform", {"": add}, tuple(functions))


def cupy() -> DevicePeer:
    library = libraries.module("cupy")
    view = _views(library.asarray)
    return DevicePeer("cupy", {"": lambda a, b, out: library.add(view(a), view(b), out=view(out))}, _WITHOUT_BFLOAT16)


def triton(in_a_row: bool = False) -> DevicePeer:
    """``in_a_row``: also launched programmatically, which gains nothing where nothing is queued ahead."""
    kernels = libraries.module("benchmarks.peers.triton_add")
    settings = _triton_settings("", kernels.add, ((512, 4), (1024, 4), (2048, 8), (4096, 8)))
    if in_a_row and kernels.PROGRAMMATIC and _launches_programmatically():
        settings |= _triton_settings(", programmatic", kernels.add_programmatically, ((512, 4), (1024, 4)))
    return DevicePeer("triton", settings)


def triton_early() -> DevicePeer:
    """Triton launched programmatically, with kernels that let the next one begin at once. Not a setting like the
    others: the next kernel must not touch their memory before it has waited, which a library cannot promise."""
    kernels = libraries.module("benchmarks.peers.triton_add")
    if not (kernels.PROGRAMMATIC and _launches_programmatically()):
        raise RuntimeError("needs a Triton with gdc_launch_dependents and compute capability 9.0")
    settings = _triton_settings(", early trigger", kernels.add_with_an_early_trigger, ((512, 4), (1024, 4)))
    return DevicePeer("triton, early trigger", settings)


def _launches_programmatically() -> bool:
    return bool(libraries.module("torch").cuda.get_device_capability() >= (9, 0))


_MOST_OF_TRITONS = 2**30  # elements of a launch: its kernel counts them in 32 bits, and complex64 has two floats each


def _triton_settings(
    launch: str, queue: Callable[[Any, Any, Any, int, int], None], shapes: Sequence[tuple[int, int]]
) -> dict[str, Add]:
    def setting(block: int, warps: int) -> Add:
        def add(a: Any, b: Any, out: Any) -> None:
            if a.is_complex():
                a, b, out = (_as_floats(x) for x in (a, b, out))
            parts = (x.split(_MOST_OF_TRITONS) for x in (a, b, out))
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


def _as_floats(x: Any) -> Any:
    library = libraries.module("torch")
    return library.view_as_real(x).view(-1)


_CUB_TYPES = {
    "int8": "signed char",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "cuda::std::complex<float>",
}


@functools.cache
def _compile_cub(dtypes: tuple[str, ...]) -> dict[str, Any]:
    """Compiles cub.cu to a shared library for each dtype, for this machine's GPU, all at once: one takes 15 s and
    more."""
    nvcc = str(toolkit.find().nvcc)
    source = Path(__file__).with_name("cub.cu")
    flags = ["-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler=-fPIC"]

    def compiled(dtype: str) -> Any:
        library = Path(folder) / f"cub-{dtype}.so"
        command = [nvcc, *flags, f"-DCUB_TYPE={_CUB_TYPES[dtype]}", "-o", str(library), str(source)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if result.returncode:
            raise RuntimeError(f"{nvcc} failed: {result.stderr.strip()[-500:]}")
        function = ctypes.CDLL(str(library)).cub_add
        function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_longlong, ctypes.c_void_p]
        function.restype = ctypes.c_int
        return function

    # The folder may go once the libraries are loaded.
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        return dict(zip(dtypes, pool.map(compiled, dtypes), strict=True))
