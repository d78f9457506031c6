"""A matrix, transposed by every rung in turn beside a copy of the same size."""

from collections.abc import Iterator

from vecadd import _core
from vecadd.bench.contestants import matrix_rung
from vecadd.bench.operands import Transposed
from vecadd.bench.options import Options
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.figures import Figure
from vecadd.model import Limits, expected
from vecadd.model.matrix_shapes import extents

SIZES = (2**19, 2**26)  # elements; the first is that of document 004's listing, 1024 by 512
BRIEF_SIZES = (2**26,)


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """The rungs that transpose, and that copy."""
    for dtype, n in grid(options, SIZES, BRIEF_SIZES):
        operands = Transposed(extents("transpose", n))
        every = [
            matrix_rung(rung, operands, n)
            for rung in _core.rungs()
            if rung["family"] == "transpose" and machine.runs(rung, dtype)
        ]
        limit = machine.copy_limit()
        yield Cell(dtype, n, every, limit, add_derived=lambda figures: add_model(figures, machine), operands=operands)


def add_model(figures: list[Figure], machine: Machine) -> list[Figure]:
    """Adds to the figures of matrix rungs the seconds that the model expects."""
    rungs, limits = {rung["name"]: rung for rung in _core.rungs()}, Limits.of(machine.probed)
    found = []
    for figure in figures:
        if figure.name in rungs:
            rung = rungs[figure.name]
            seconds = expected(rung, None, machine.gpu, limits, figure.dtype, figure.n, {})
            figure = figure.with_params(model_seconds=seconds)
        found.append(figure)
    return found


SWEEP = Sweep(
    "transpose",
    cells,
    f"{EVENTS}; no two elements of a matrix have the same bits, and every one is compared where it belongs",
    probes=ON_DEVICE,
    tables="vecadd.bench.tables.matrices",
    plot="vecadd.bench.plots.matrices",
)
