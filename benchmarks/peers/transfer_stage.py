"""Host memory → GPU → host memory."""

from collections.abc import Iterator

import numpy as np

from benchmarks.peers import clocks, libraries
from vecadd.bench import contestants, limits
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import HOST, PINNED
from vecadd.bench.sweeps import Machine, Sweep
from vecadd.bench.timing import Cell

N = 100_000_000


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Host memory → GPU → host memory, by the host's clock; NumPy on the host beside it."""
    del axes
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


STAGE = Sweep(
    "peer-transfer",
    cells,
    "rungs timed in C, around the whole way there and back; all else around the Python call",
)
