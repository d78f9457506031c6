"""What a call costs its caller."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.peers import clocks, libraries
from vecadd.bench import limits
from vecadd.bench.axes import Axes
from vecadd.bench.sweeps import Machine, Sweep
from vecadd.bench.timing import Cell

N = 1024
CALLS = 500  # in a round; a GPU's queue holds 1024 launches, and a full one makes the caller wait


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """What a call costs its caller: many small additions into `out`, the queue empty before and drained after."""
    del axes, machine
    makers = [
        libraries.vecadd_device_arrays,
        libraries.vecadd_torch_tensors,
        libraries.torch_tensors,
        libraries.cupy_arrays,
    ]
    clock = partial(clocks.by_calls, calls=CALLS)
    peers = [clocks.contestant(peer, clock) for peer in libraries.found(makers)]
    yield Cell("peer-overhead", np.dtype("float32"), N, peers, limits.FixedLimit(None), sets=1, reference="vecadd")


STAGE = Sweep(
    "peer-overhead",
    cells,
    f"timed by the host over {CALLS} queued calls, the queue empty before and drained after",
)
