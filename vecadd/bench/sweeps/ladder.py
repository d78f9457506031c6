"""Device memory, added by every kernel of the ladder in turn."""

from collections.abc import Iterator

from vecadd.bench import ladder, limits
from vecadd.bench.axes import Axes
from vecadd.bench.sweeps.sweep import EVENTS, ON_DEVICE, Machine, Sweep, device_rung, device_rungs, grid, wanted
from vecadd.bench.timing import Cell


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory, added by every kernel of the ladder in turn."""
    machine.probe(*ON_DEVICE)
    for dtype, n, set_bytes in grid(axes, ladder.SIZES, ladder.BRIEF_SIZES):
        every = [
            device_rung(axes, machine, rung, dtype, n, chosen)
            for rung in device_rungs(machine, dtype)
            for chosen in ladder.variants(rung["name"], named=axes.rungs is not None)
        ]
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("ladder", dtype, n, wanted(axes, every), limit, machine.sets(set_bytes))


SWEEP = Sweep(
    "ladder",
    cells,
    EVENTS,
    tables="vecadd.bench.tables.ladder",
    plot="vecadd.bench.plots.bars",
    by_dtype=True,
    roofline="roofline",
)
