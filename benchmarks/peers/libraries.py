"""The peers: where each library's arrays lie and how it adds into an existing array."""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import vecadd
from vecadd.bench.buffers import DEVICE, HOST, PINNED, Place

POISON = 0xA5

Add = Callable[[Any, Any, Any], object]  # add(a, b, out); on a GPU it queues the work on the legacy default stream


@dataclass(frozen=True)
class Library:
    """A way to add, and where its arrays lie."""

    name: str
    place: Place
    add: Add


def module(name: str) -> Any:
    """Imports a library by name: none is required, not even by the type checker."""
    return importlib.import_module(name)


def vecadd_device_arrays() -> Library:
    return Library("vecadd", DEVICE, _vecadd_add)


def vecadd_torch_tensors() -> Library:
    return Library("vecadd (torch tensors)", _torch_place(), _vecadd_add)


def numpy_host() -> Library:
    return Library("numpy", HOST, lambda a, b, out: np.add(a, b, out=out))


def torch_tensors() -> Library:
    torch = module("torch")
    return Library("torch", _torch_place(), lambda a, b, out: torch.add(a, b, out=out))


def cupy_arrays() -> Library:
    cupy = module("cupy")
    return Library("cupy", _cupy_place(), lambda a, b, out: cupy.add(a, b, out=out))


def vecadd_cupy_arrays() -> Library:
    return Library("vecadd (CuPy arrays)", _cupy_place(), _vecadd_add)


def torch_round_trip() -> Library:
    """torch from pinned memory to the GPU and back, everything asynchronous on one stream."""
    torch = module("torch")

    def add(a: Any, b: Any, out: Any) -> None:
        up = [torch.from_numpy(x).to("cuda", non_blocking=True) for x in (a, b)]
        torch.from_numpy(out).copy_(torch.add(*up), non_blocking=True)
        torch.cuda.synchronize()

    return Library("torch (pinned)", PINNED, add)


def found(makers: list[Callable[[], Library]]) -> Iterator[Library]:
    """The libraries that this machine has; a missing or broken one prints a line and does not stop the others."""
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


def _cupy_place() -> Place:
    cupy = module("cupy")
    return Place(
        "cupy",
        put=cupy.asarray,
        get=cupy.asnumpy,
        poison=lambda x: x.view(cupy.uint8).fill(POISON),
        on_gpu=True,
    )
