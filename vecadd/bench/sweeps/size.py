"""Device memory, added by the kernels that stand for the ladder and by the call that users make."""

from collections.abc import Iterator

from vecadd.bench import contestants, limits
from vecadd.bench.axes import Axes
from vecadd.bench.sweeps.sweep import EVENTS, ON_DEVICE, Machine, Sweep, device_rung, device_rungs, grid, wanted
from vecadd.bench.timing import Cell


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory, added by the kernels that stand for the ladder and by the call that users make."""
    machine.probe(*ON_DEVICE)
    call = contestants.device_add()
    for dtype, n, set_bytes in grid(axes):
        rungs = [
            device_rung(axes, machine, rung, dtype, n) for rung in device_rungs(machine, dtype) if rung["headline"]
        ]
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("size", dtype, n, wanted(axes, [*rungs, call]), limit, machine.sets(set_bytes))


SWEEP = Sweep(
    "size",
    cells,
    f"{EVENTS}; add (host clock) over at least {contestants.QUEUED} queued calls and until the queue is empty",
    plot="vecadd.bench.plots.curves",
)
