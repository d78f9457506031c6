"""NumPy arrays, added by the GPU: up, added, and down again; then document 004's stages."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from vecadd.bench import limits, transfers
from vecadd.bench.axes import DEFAULT_DTYPES, DEFAULT_SIZES, Axes, dtype_named
from vecadd.bench.contestants import Contestant
from vecadd.bench.results import Row
from vecadd.bench.sweeps.sweep import ON_DEVICE, ON_THE_WAY, Machine, Sweep, wanted
from vecadd.bench.timing import Cell


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays, added by the GPU: up, added, and down again; then document 004's stages."""
    machine.probe(*ON_DEVICE, *ON_THE_WAY)
    sizes = axes.sizes_of(DEFAULT_SIZES, transfers.BRIEF_SIZES)
    theory = machine.link_theory

    def derive(rows: list[Row]) -> None:
        transfers.derive(rows, machine.gpu, machine.probed, theory)

    def one(n: int, dtype: np.dtype[Any], every: list[Contestant]) -> Cell:
        limit = limits.FixedLimit(machine.link_limit)
        return Cell("transfer", dtype, n, wanted(axes, every), limit, transfers.SETS, derive=derive)

    for name in axes.dtypes or DEFAULT_DTYPES:
        dtype = dtype_named(name)
        for n in sizes:
            yield one(n, dtype, transfers.round_trips(axes, dtype, last=n == max(sizes)))
    dtype = dtype_named((axes.dtypes or DEFAULT_DTYPES)[0])
    yield one(min(transfers.STAGES_SIZE, max(sizes)), dtype, transfers.stages(dtype))


SWEEP = Sweep(
    "transfer",
    cells,
    "rungs timed in C, around the whole way there and back; add around the Python call; timelines and stages "
    "of one more run, by events; cold_start once, around a process",
    extra=lambda axes, machine: transfers.extra_rows(axes, machine.device),
    tables="vecadd.bench.tables.transfer",
    plot="vecadd.bench.plots.transfer",
    by_dtype=True,
    pictured=transfers.round_trips_of,
)
