"""The ladder's kernels beside the memory's rate and latency by the bytes in flight on each multiprocessor."""

from collections.abc import Iterator

from vecadd.bench import ladder, limits
from vecadd.bench.axes import Axes, dtype_named
from vecadd.bench.sweeps.sweep import EVENTS, ON_DEVICE, Machine, Sweep, device_rung, device_rungs, grid, wanted
from vecadd.bench.timing import Cell
from vecadd.figures import Figure

PROBE = "probe"  # the rung of the rows that are no additions
DTYPE, ITEMSIZE = "float32", 4  # as whose elements the probe's bytes are counted


def cells(axes: Axes, machine: Machine) -> Iterator[Cell]:
    """Device memory, added by every kernel of the ladder in turn."""
    machine.probe(*ON_DEVICE)
    for dtype, n, set_bytes in grid(axes, ladder.BRIEF_SIZES, ladder.BRIEF_SIZES):
        every = [
            device_rung(axes, machine, rung, dtype, n, chosen)
            for rung in device_rungs(machine, dtype)
            if rung["blocks"] == 0  # else they leave most multiprocessors idle
            for chosen in ladder.variants(rung["name"], named=False)
        ]
        limit = limits.FixedLimit(machine.device_limit)
        yield Cell("inflight", dtype, n, wanted(axes, every), limit, machine.sets(set_bytes))


def probe_rows(axes: Axes, machine: Machine) -> list[Figure]:
    """A row for each point of the probe: its bytes are those in flight on all multiprocessors at one time, its seconds
    the time until they have arrived."""
    if axes.rungs is not None and not axes.names(PROBE):
        return []
    found = machine.loaded
    return [
        Figure(  # without a limit: it is one itself
            sweep="inflight",
            name=PROBE,
            dtype=DTYPE,
            n=nbytes * machine.gpu["multiprocessors"] // ITEMSIZE,
            params={"bytes_in_flight": nbytes},
            value=seconds,
            bytes=nbytes * machine.gpu["multiprocessors"],
        )
        for nbytes, seconds in zip(found["bytes_in_flight"], found["seconds"], strict=True)
    ]


def in_flight(row: Figure) -> float | None:
    """Bytes in flight on a multiprocessor: a row's loads, and for an addition its stores in the same proportion as its
    bytes. None where the row does not say."""
    loads: float | None = row.params.get("bytes_in_flight")
    if loads is None or row.name == PROBE:
        return loads
    arrays = round(row.bytes / row.n / dtype_named(row.dtype).itemsize)
    return loads * arrays / (arrays - 1)


def latency(row: Figure, multiprocessors: float) -> float | None:
    """Seconds that the bytes in flight take at the row's rate, by Little's law."""
    held = in_flight(row)
    return held * multiprocessors / (row.gbps * 1e9) if held is not None and row.gbps else None


SWEEP = Sweep(
    "inflight",
    cells,
    EVENTS + "; the probe reads and adds nothing: each thread waits for all its loads before the next ones",
    extra=probe_rows,
    tables="vecadd.bench.tables.inflight",
    plot="vecadd.bench.plots.inflight",
    by_dtype=True,
)
