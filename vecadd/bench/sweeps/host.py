"""NumPy arrays, added by the processor."""

from collections.abc import Iterator

from vecadd.bench import contestants, limits
from vecadd.bench.axes import Axes
from vecadd.bench.buffers import HOST
from vecadd.bench.sweeps.sweep import HOST_SETS, Machine, Sweep, grid, wanted
from vecadd.bench.timing import Cell


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays, added by the processor."""
    for dtype, n, _ in grid(axes):
        rungs = [contestants.rung(name, HOST) for name in contestants.rung_names("host", str(dtype))]
        every = [contestants.numpy_add(), *rungs, contestants.host_add()]
        yield Cell("host", dtype, n, wanted(axes, every), limits.HostLimit(), HOST_SETS)


SWEEP = Sweep(
    "host",
    cells,
    "rungs timed in C, around the work alone; numpy and add around the Python call",
    needs_gpu=False,
    plot="vecadd.bench.plots.curves",
)
