"""Device memory, added by the kernels that represent the ladder and by the call that users make."""

from collections.abc import Iterator
from functools import partial

from vecadd.bench.contestants import QUEUED, device_add, device_rung
from vecadd.bench.options import Options
from vecadd.bench.plot import Picture, draw_rates_over_size
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.timing import Cell
from vecadd.figures import Run


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """The rungs whose row says `headline`, and vecadd.add."""
    call = device_add()
    for dtype, n in grid(options):
        rungs = [rung for rung in machine.ladder(dtype) if rung["headline"]]
        every = [device_rung(rung, machine.gpu, dtype, n, block=options.block) for rung in rungs]
        yield Cell(dtype, n, [*every, call], machine.device_limit)


def pictures(run: Run) -> Iterator[Picture]:
    """Rates over size."""
    draw = partial(draw_rates_over_size, figures=run.figures)
    yield Picture("size", "Bandwidth over size: device arrays, added by a kernel", draw)


SWEEP = Sweep(
    "size",
    cells,
    f"{EVENTS}; add (host clock) over at least {QUEUED} queued calls and until the queue is empty",
    probes=ON_DEVICE,
    pictures=pictures,
)
