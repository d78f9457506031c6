"""NumPy arrays on the host, back to back."""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import libraries
from benchmarks.peers.clocks import Timer
from benchmarks.peers.libraries import Add
from vecadd.bench import limits
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import HOST, Buffers
from vecadd.bench.contestants import Contestant
from vecadd.bench.sweeps import Machine, Sweep, grid
from vecadd.bench.timing import Cell

SIZES = tuple(2**power for power in range(4, 29, 2))
BATCH = 1 << 16  # elements that a sample adds at least: at 2^4 that is 4096 calls, or 1 ms

_PEERS = [libraries.vecadd_host(), libraries.numpy_host()]


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays on the host, back to back on the same operands; with `out=` and with a new result."""
    del machine
    into = [Contestant(f"{peer.name} out=", HOST, _back_to_back(peer.add)) for peer in _PEERS]
    fresh = [
        Contestant("vecadd", HOST, _back_to_back_new(lambda a, b: vecadd.add(a, b))),
        Contestant("numpy", HOST, _back_to_back_new(lambda a, b: np.add(a, b))),
    ]
    for dtype, n, _ in grid(axes, SIZES):
        yield Cell("peer-host", dtype, n, into + fresh, limits.FixedLimit(None), sets=1, reference="vecadd out=")


def _back_to_back(add: Add) -> Timer:
    def time(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        calls = max(1, BATCH // len(out))
        begin = perf_counter()
        for _ in range(calls):
            add(a, b, out)
        return (perf_counter() - begin) / calls

    return time


def _back_to_back_new(add: Callable[[Any, Any], Any]) -> Timer:
    """As _back_to_back; each result is dropped when the next one is there, and the last one is what gets checked."""

    def time(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        calls = max(1, BATCH // len(out))
        begin = perf_counter()
        for _ in range(calls):
            result = add(a, b)
        seconds = perf_counter() - begin
        out[...] = result
        return seconds / calls

    return time


STAGE = Sweep(
    "peer-host",
    cells,
    f"timed by the host around back-to-back calls on the same operands, at least {BATCH} elements of them",
    needs_gpu=False,
)
