"""The peers: where each library's arrays lie and how it adds into an array that is there already."""

import ctypes
import importlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import vecadd
from build_native import toolkit
from vecadd.bench.buffers import DEVICE, HOST, PINNED, Place

POISON = 0xA5

Add = Callable[[Any, Any, Any], object]  # add(a, b, out); on a GPU it queues the work on the legacy default stream


@dataclass(frozen=True)
class Library:
    name: str
    place: Place
    add: Add


def module(name: str) -> Any:
    """A library by name: none of them is a requirement, of the type checker neither."""
    return importlib.import_module(name)


def vecadd_device_arrays() -> Library:
    return Library("vecadd", DEVICE, _vecadd_add)


def vecadd_torch_tensors() -> Library:
    return Library("vecadd (torch tensors)", _torch_place(), _vecadd_add)


def vecadd_host() -> Library:
    return Library("vecadd", HOST, _vecadd_add)


def numpy_host() -> Library:
    return Library("numpy", HOST, lambda a, b, out: np.add(a, b, out=out))


def torch_tensors() -> Library:
    torch = module("torch")
    return Library("torch", _torch_place(), lambda a, b, out: torch.add(a, b, out=out))


def cupy_arrays() -> Library:
    cupy = module("cupy")
    place = Place(
        "cupy",
        put=cupy.asarray,
        get=cupy.asnumpy,
        poison=lambda x: x.view(cupy.uint8).fill(POISON),
        on_gpu=True,
    )
    return Library("cupy", place, lambda a, b, out: cupy.add(a, b, out=out))


def cub_on_tensors() -> Library:
    function = _compile_cub()

    def add(a: Any, b: Any, out: Any) -> None:
        status = function(a.data_ptr(), b.data_ptr(), out.data_ptr(), a.numel(), None)
        if status:
            raise RuntimeError(f"CUB's DeviceTransform failed with CUDA error {status}")

    return Library("CUB DeviceTransform", _torch_place(), add)


def torch_round_trip() -> Library:
    """torch from pinned memory to the GPU and back, everything asynchronous on one stream."""
    torch = module("torch")

    def add(a: Any, b: Any, out: Any) -> None:
        up = [torch.from_numpy(x).to("cuda", non_blocking=True) for x in (a, b)]
        torch.from_numpy(out).copy_(torch.add(*up), non_blocking=True)
        torch.cuda.synchronize()

    return Library("torch (pinned)", PINNED, add)


def found(makers: list[Callable[[], Library]]) -> Iterator[Library]:
    """Those that this machine has; each that is missing or broken costs a line, not the others."""
    for make in makers:
        try:
            yield make()
        except Exception as error:
            print(f"left out: {make.__name__}: {type(error).__name__}: {error}", flush=True)


def _vecadd_add(a: Any, b: Any, out: Any) -> None:
    vecadd.add(a, b, out=out)


def _torch_place() -> Place:
    torch = module("torch")
    return Place(
        "torch",
        put=lambda x: torch.from_numpy(x).to("cuda"),
        get=lambda x: x.cpu().numpy(),
        poison=lambda x: x.view(torch.uint8).fill_(POISON),
        on_gpu=True,
    )


def _compile_cub() -> Any:
    """cub.cu as a shared library for this machine's GPU. The folder may go once the library is loaded."""
    nvcc = str(toolkit.find().nvcc)
    source = Path(__file__).with_name("cub.cu")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "cub.so"
        flags = ["-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler=-fPIC"]
        command = [nvcc, *flags, "-o", str(library), str(source)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if result.returncode:
            raise RuntimeError(f"{nvcc} failed: {result.stderr.strip()[-500:]}")
        function = ctypes.CDLL(str(library)).cub_add_float32
    function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_longlong, ctypes.c_void_p]
    function.restype = ctypes.c_int
    return function
