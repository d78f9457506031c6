"""The kernels of the ladder in blocks of every size, and one kernel on some share of the blocks that fit at once."""

from collections.abc import Iterator

from vecadd.bench import ladder, limits
from vecadd.bench.axes import Axes
from vecadd.bench.sweeps.sweep import EVENTS, ON_DEVICE, Machine, Sweep, device_rung, device_rungs, grid, wanted
from vecadd.bench.timing import Cell


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """The ladder's kernels in blocks of every size, and one kernel on some share of the blocks that fit at once."""
    machine.probe(*ON_DEVICE)
    for dtype, n, set_bytes in grid(axes, ladder.BLOCKSIZE_SIZES, ladder.BLOCKSIZE_SIZES):
        every = [
            device_rung(axes, machine, rung, dtype, n, {}, block)
            for rung in device_rungs(machine, dtype)
            if ladder.takes_blocks(rung) and (rung["name"] in ladder.BLOCKSIZE_RUNGS or axes.names(rung["name"]))
            for block in ([axes.block] if axes.block else ladder.BRIEF_BLOCKS if axes.brief else ladder.BLOCKS)
        ]
        every += [
            device_rung(axes, machine, rung, dtype, n, chosen)
            for rung in device_rungs(machine, dtype)
            for chosen in ladder.WAVES.get(rung["name"], ())
        ]
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("blocksize", dtype, n, wanted(axes, every), limit, machine.sets(set_bytes))


SWEEP = Sweep(
    "blocksize",
    cells,
    EVENTS,
    tables="vecadd.bench.tables.blocksize",
    plot="vecadd.bench.plots.blocksize",
    by_dtype=True,
)
