"""NumPy arrays, added by the GPU: up, added, and down again; then document 004's stages."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from vecadd.bench import limits, transfers
from vecadd.bench.axes import DEFAULT_DTYPES, DEFAULT_SIZES, Axes, dtype_named
from vecadd.bench.buffers import Buffers
from vecadd.bench.contestants import Contestant
from vecadd.bench.sweeps.sweep import ON_DEVICE, ON_THE_WAY, Machine, Sweep, wanted
from vecadd.bench.timing import Cell
from vecadd.figures import Figure

MORE_PROBES = 3  # ahead of the cells


class LinkLimit:
    """The link's best rates so far in this run: probed ahead of the cells, and behind each cell's rounds in other
    memory than the cell's. One probe may be too low: on an H100 it found 75 GB/s for both directions at once, on
    another day 101, and rungs came to 1.12 of the limit that follows from the 75."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        _ = machine.link_limit  # which raises what its probe raises
        for _ in range(MORE_PROBES):
            self._probe_again()

    def open(self, buffers: Mapping[str, Sequence[Buffers]]) -> None: ...
    def round(self) -> None: ...

    def close(self) -> None:
        self._probe_again()

    def _probe_again(self) -> None:
        """A probe that fails leaves the rates as they were."""
        best = self._machine.probed["link"]
        with suppress(MemoryError, RuntimeError):
            again = limits.probe_link(self._machine.device)
            best.update({name: max(rate, again[name]) for name, rate in best.items()})
            best["gbps"] = limits.link_gbps(1e9 * best["to_device_gbps"], 1e9 * best["both_gbps"])

    @property
    def gbps(self) -> float:
        """GB/s of two arrays up while one comes down."""
        return float(self._machine.probed["link"]["gbps"])


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """NumPy arrays, added by the GPU: up, added, and down again; then document 004's stages."""
    machine.probe(*ON_DEVICE, *ON_THE_WAY)
    sizes = axes.sizes_of(DEFAULT_SIZES, transfers.BRIEF_SIZES)
    theory, limit = machine.link_theory, LinkLimit(machine)

    def derive(rows: list[Figure]) -> list[Figure]:
        return transfers.derive(rows, machine.gpu, machine.probed, theory)

    def one(n: int, dtype: np.dtype[Any], every: list[Contestant]) -> Cell:
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
