"""Host memory → GPU → host memory, and whether the route that is chosen is the fastest."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import clocks, libraries
from vecadd.bench import contestants, limits
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import HOST, PINNED, Place
from vecadd.bench.contestants import Contestant
from vecadd.bench.sweeps import Machine, Sweep, grid
from vecadd.bench.timing import Cell

N = 100_000_000
SIZES = tuple(2**power for power in range(10, 29, 2))
DTYPES = ("float32", "float16", "float64")
CHOSEN = "add as routed"


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Host memory → GPU → host memory, by the host's clock; NumPy on the host beside it."""
    ours = contestants.transfer_add(PINNED, memory="pinned")
    rungs = [
        contestants.rung(name, place, memory="pinned" if place is PINNED else "pageable")
        for name, place in (("pinned_reused", PINNED), ("pinned", PINNED), ("pageable", HOST))
        if name in contestants.rung_names("transfer", "float32")
    ]
    others = [
        clocks.contestant(peer, contestants.by_host_clock) for peer in libraries.found([libraries.torch_round_trip])
    ]
    peers = [ours, *rungs, *others]
    peers += [contestants.transfer_add(HOST, memory="pageable"), contestants.numpy_add()]
    limit = limits.FixedLimit(machine.link_limit)
    yield Cell("peer-transfer", np.dtype("float32"), N, peers, limit, sets=1, reference="add")
    vecadd.use_gpu()
    for dtype, n, _ in grid(axes, SIZES, dtypes=DTYPES):
        for place in (PINNED, HOST):
            routes = list(_routes(place, str(dtype)))
            yield Cell("peer-transfer", dtype, n, routes, limits.FixedLimit(None), sets=1, reference=CHOSEN)


def _routes(place: Place, dtype: str) -> Iterator[Contestant]:
    """The route that add chooses, by `vecadd tune routes` where it was run, beside each that it chooses from."""
    memory = "pinned" if place is PINNED else "pageable"
    for name, device in {CHOSEN: None, "add on the host": "cpu", "add by transfer": "cuda"}.items():
        yield Contestant(name, place, contestants.by_host_clock(vecadd.add, device=device), {"memory": memory})
    if place is not PINNED:
        return
    hybrid: dict[str, Any] = {"device": "hybrid"}
    yield Contestant("add by hybrid", place, contestants.by_host_clock(vecadd.add, **hybrid), {"memory": memory})
    if "tuned_transfer" in contestants.rung_names("transfer", dtype):
        for way, number in (("copies", 1), ("zero-copy", 2)):
            yield contestants.rung("tuned_transfer", place, {"way": number}, memory=memory, way=way)


STAGE = Sweep(
    "peer-transfer",
    cells,
    "rungs timed in C, around the whole way there and back; all else around the Python call",
)
