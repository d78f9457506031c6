"""Many small additions, each by its own launch: independent ones, and a chain in which each waits for the last."""

from collections.abc import Iterator

from vecadd.bench import latencies, limits
from vecadd.bench.axes import Axes
from vecadd.bench.sweeps.sweep import ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.timing import Cell


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Many small additions, each by its own launch: independent ones, and a chain in which each waits for the last."""
    machine.probe(*ON_DEVICE)
    for dtype, n, set_bytes in grid(axes, latencies.SIZES, latencies.BRIEF_SIZES):
        adds = latencies.adds_of(n, dtype.itemsize)
        for chain in (0, 1):
            own_bytes = set_bytes if chain else adds * set_bytes
            # A chain finds its operands in the L2: the memory bounds it only where they are many times the L2.
            in_cache = chain and own_bytes < limits.DEVICE_CACHES * machine.gpu["l2"]
            yield Cell(
                "latency",
                dtype,
                n,
                latencies.small_additions(axes, dtype, adds, chain, machine.capability),
                limits.FixedLimit(None if in_cache else machine.device_limit),
                machine.sets(own_bytes),
                reference=latencies.LOOP,
                additions=adds,
                length=n if chain else adds * n,
                derive=latencies.derive,
            )


SWEEP = Sweep(
    "latency",
    cells,
    "timed by the host in C, from the first call until the device is done; of graphs the launch alone",
    tables="vecadd.bench.tables.latency",
    plot="vecadd.bench.plots.latency",
    by_dtype=True,
)
