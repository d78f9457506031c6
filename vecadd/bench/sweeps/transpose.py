"""A matrix, transposed by every rung in turn beside a copy of the same size."""

from collections.abc import Iterator

from vecadd import _core
from vecadd.bench import limits, matrices
from vecadd.bench.axes import Axes
from vecadd.bench.sweeps.sweep import EVENTS, ON_DEVICE, Machine, Sweep, expect, grid, wanted
from vecadd.bench.timing import Cell

SIZES = (2**19, 2**26)  # elements; the first is that of document 004's listing, 1024 by 512
BRIEF_SIZES = (2**26,)


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """A matrix, transposed by every rung in turn beside a copy of the same size."""
    machine.probe(*ON_DEVICE)
    for dtype, n, _ in grid(axes, SIZES, BRIEF_SIZES):
        operands = matrices.Transposed(matrices.extents("transpose", n))
        every = [
            matrices.contestant(rung, operands, n)
            for rung in _core.rungs()
            if rung["family"] == "transpose" and machine.runs(rung, dtype)
        ]
        limit = limits.FixedLimit(machine.bound(reads=1))
        sets = machine.sets(operands.nbytes)
        yield Cell("transpose", dtype, n, wanted(axes, every), limit, sets, operands=operands, derive=expect(machine))


SWEEP = Sweep(
    "transpose",
    cells,
    f"{EVENTS}; no two elements of a matrix have the same bits, and every one is compared where it belongs",
    tables="vecadd.bench.tables.matrices",
    plot="vecadd.bench.plots.matrices",
)
