"""NumPy arrays, added by the processor."""

from collections.abc import Iterator
from functools import partial

from vecadd.bench import contestants
from vecadd.bench.operands import HOST
from vecadd.bench.options import Options
from vecadd.bench.plot import Picture, draw_rates_over_size
from vecadd.bench.probes import HostLimit
from vecadd.bench.run import HOST_SETS, Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.figures import Run


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """numpy.add, every rung of the host, and vecadd.add."""
    for dtype, n in grid(options):
        rungs = [contestants.rung(name, HOST) for name in contestants.rung_names("host", str(dtype))]
        yield Cell(dtype, n, [contestants.numpy_add(), *rungs, contestants.host_add()], HostLimit(), HOST_SETS)


def pictures(run: Run) -> Iterator[Picture]:
    """Rates over size."""
    draw = partial(draw_rates_over_size, figures=run.figures, l3=run.meta["cpu"].get("l3") or 0)
    yield Picture("host", "Bandwidth over size: NumPy arrays, added by the processor", draw, host=True)


SWEEP = Sweep(
    "host",
    cells,
    "rungs timed in C, around the work alone; numpy and add around the Python call",
    needs_gpu=False,
    pictures=pictures,
)
