"""Device memory → device memory, kernel against kernel."""

from collections.abc import Iterator

from benchmarks.peers import clocks, libraries
from vecadd.bench import limits
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import rotation
from vecadd.bench.sweeps import Machine, Sweep, grid
from vecadd.bench.timing import Cell

SIZES = tuple(2**power for power in range(16, 29, 2))


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory → device memory by CUDA events, everything on the legacy default stream."""
    makers = [
        libraries.vecadd_device_arrays,
        libraries.vecadd_torch_tensors,
        libraries.torch_tensors,
        libraries.cub_on_tensors,
        libraries.cupy_arrays,
    ]
    peers = [clocks.contestant(peer, clocks.by_events) for peer in libraries.found(makers)]
    for dtype, n, set_bytes in grid(axes, SIZES):
        sets = rotation(set_bytes, machine.gpu["l2"], machine.gpu["memory"] // 10)
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("peer-device", dtype, n, list(peers), limit, sets, reference="vecadd")


STAGE = Sweep(
    "peer-device",
    cells,
    "timed by CUDA events while the GPU sleeps through the queueing, so that no caller's overhead lies between the two "
    "events",
)
