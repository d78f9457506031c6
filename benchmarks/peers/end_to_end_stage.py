"""NumPy arrays in, a new NumPy array out, as users see it: a library's copies count in its time."""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import libraries
from benchmarks.peers.clocks import WARM, Timer, then_resting
from benchmarks.peers.libraries import Entry
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import HOST, Buffers
from vecadd.bench.options import Options
from vecadd.bench.run import Machine, Sweep, grid
from vecadd.bench.timing import Cell

SIZES = tuple(2**power for power in (10, 13, 16, 19, 22, 25, 27))
DTYPES = ("float32", "float16", "float64")
TORCH_ON_HOST = "torch (host)"

MOST_BYTES = 512 << 20  # of an operand: torch on the GPU takes 0.85 s for twice that, NumPy 0.4, seven times each
CACHED = 32 << 20  # bytes of an operand up to which what the last call left is in the caches

New = Callable[[Any, Any], Any]


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """Cells by dtype and size. use_gpu() is called with the first cell; `vecadd (host)` shows what it changes."""
    vecadd.use_gpu()
    timers = {
        name: _new(add)
        for adds in libraries.meeting("peer-end-to-end", PEERS, machine.missing)
        for name, add in adds.items()
    }
    if TORCH_ON_HOST in timers:
        timers[TORCH_ON_HOST] = then_resting(timers[TORCH_ON_HOST])
    peers = [Contestant(name, HOST, timer) for name, timer in timers.items()]
    for dtype, n in grid(options, SIZES, dtypes=DTYPES):
        most = MOST_BYTES // dtype.itemsize
        yield Cell(dtype, min(n, most), peers, sets=1, reference="vecadd")


def _always() -> dict[str, New]:
    return {
        "vecadd": lambda a, b: vecadd.add(a, b),
        "vecadd (host)": lambda a, b: vecadd.add(a, b, device="cpu"),
        "vecadd (cuda)": lambda a, b: vecadd.add(a, b, device="cuda"),
        "numpy": lambda a, b: np.add(a, b),
    }


def _torch() -> dict[str, New]:
    torch = libraries.module("torch")

    def on_gpu(a: Any, b: Any) -> Any:
        up = [torch.from_numpy(x).to("cuda") for x in (a, b)]
        return torch.add(*up).cpu().numpy()

    def on_host(a: Any, b: Any) -> Any:
        return torch.add(torch.from_numpy(a), torch.from_numpy(b)).numpy()

    return {"torch (cuda)": on_gpu, TORCH_ON_HOST: on_host}


def _cupy() -> dict[str, New]:
    cupy = libraries.module("cupy")
    return {"cupy": lambda a, b: cupy.asnumpy(cupy.add(cupy.asarray(a), cupy.asarray(b)))}


PEERS = (
    Entry("vecadd", "", "vecadd", _always),
    Entry("torch", "torch", "torch", _torch),
    Entry("cupy", "cupy", "cupy-cuda13x", _cupy),
)


def _new(add: New) -> Timer:
    """Times new sums, each dropped before the next; small ones after some untimed calls. Copies the last one out for
    the check after the clock has stopped."""

    def time(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        made, seconds, warm = None, 0.0, perf_counter()
        while a.nbytes <= CACHED and perf_counter() - warm < WARM:
            add(a, b)
        for _ in sets:
            made = None
            begin = perf_counter()
            made = add(a, b)
            seconds += perf_counter() - begin
        out[...] = made
        return seconds / len(sets)

    return time


STAGE = Sweep(
    "peer-end-to-end",
    cells,
    "timed by the host around one Python call after another of the same library, from NumPy arrays in ordinary memory "
    "to a new one: transfers and allocations are in it",
)
