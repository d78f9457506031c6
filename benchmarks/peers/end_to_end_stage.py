"""NumPy arrays in, a new NumPy array out, as a user feels it: whatever a library has to move is in its time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import libraries
from benchmarks.peers.clocks import Timer
from vecadd.bench import limits
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import HOST, Buffers
from vecadd.bench.contestants import Contestant
from vecadd.bench.sweeps import Machine, Sweep, grid
from vecadd.bench.timing import Cell

SIZES = tuple(2**power for power in range(10, 29, 3))
DTYPES = ("float32", "float16", "float64")

New = Callable[[Any, Any], Any]


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """By dtype and size. use_gpu() comes with the first cell: `vecadd (host)` says what it changes."""
    del machine
    vecadd.use_gpu()
    peers = [Contestant(name, HOST, _new(add)) for name, add in _found().items()]
    for dtype, n, _ in grid(axes, SIZES, dtypes=DTYPES):
        yield Cell("peer-end-to-end", dtype, n, peers, limits.FixedLimit(None), sets=1, reference="vecadd")


def _found() -> Mapping[str, New]:
    adds: dict[str, New] = {
        "vecadd": lambda a, b: vecadd.add(a, b),
        "vecadd (host)": lambda a, b: vecadd.add(a, b, device="cpu"),
        "vecadd (cuda)": lambda a, b: vecadd.add(a, b, device="cuda"),
        "numpy": lambda a, b: np.add(a, b),
    }
    for name, make in (("torch", _torch), ("cupy", _cupy)):
        try:
            adds |= make()
        except Exception as error:
            print(f"left out: {name}: {type(error).__name__}: {error}", flush=True)
    return adds


def _torch() -> dict[str, New]:
    torch = libraries.module("torch")

    def on_gpu(a: Any, b: Any) -> Any:
        up = [torch.from_numpy(x).to("cuda") for x in (a, b)]
        return torch.add(*up).cpu().numpy()

    def on_host(a: Any, b: Any) -> Any:
        return torch.add(torch.from_numpy(a), torch.from_numpy(b)).numpy()

    return {"torch (cuda)": on_gpu, "torch (host)": on_host}


def _cupy() -> dict[str, New]:
    cupy = libraries.module("cupy")
    return {"cupy": lambda a, b: cupy.asnumpy(cupy.add(cupy.asarray(a), cupy.asarray(b)))}


def _new(add: New) -> Timer:
    """Each sum is dropped before the next; the last one is copied out, to be checked, when the clock has stopped."""

    def time(sets: Sequence[Buffers]) -> float:
        seconds = 0.0
        for a, b, out, _ in sets:
            begin = perf_counter()
            made = add(a, b)
            seconds += perf_counter() - begin
            out[...] = made
            del made
        return seconds / len(sets)

    return time


STAGE = Sweep(
    "peer-end-to-end",
    cells,
    "timed by the host around one Python call after another, from NumPy arrays in ordinary memory to a new one: "
    "transfers and allocations are in it",
)
