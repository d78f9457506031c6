"""The ladder's kernels beside the memory's rate and latency by the bytes in flight on each multiprocessor."""

from collections.abc import Iterator

from vecadd.bench.contestants import device_rung
from vecadd.bench.options import Options, find_dtype
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.sweeps.ladder import choose_variants
from vecadd.bench.timing import Cell
from vecadd.figures import Figure

PROBE = "probe"  # the rung of the rows that are no additions
DTYPE, ITEMSIZE = "float32", 4  # as whose elements the probe's bytes are counted


SIZES = (2**26,)


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """The kernels of the ladder with each of their variants, but those of few blocks, which leave most multiprocessors
    idle."""
    for dtype, n in grid(options, SIZES, SIZES):
        every = [
            device_rung(rung, machine.gpu, dtype, n, chosen, options.block)
            for rung in machine.ladder(dtype)
            if rung["blocks"] == 0
            for chosen in choose_variants(rung["name"])
        ]
        yield Cell(dtype, n, every, machine.device_limit)


def probe_rows(options: Options, machine: Machine) -> list[Figure]:
    """A row for each point of the probe: its bytes are those in flight on all multiprocessors at one time, its seconds
    the time until they have arrived."""
    if not options.wants(PROBE):
        return []
    found = machine.limits("loaded")
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
    arrays = round(row.bytes / row.n / find_dtype(row.dtype).itemsize)
    return loads * arrays / (arrays - 1)


def latency(row: Figure, multiprocessors: float) -> float | None:
    """Seconds that the bytes in flight take at the row's rate, by Little's law."""
    held = in_flight(row)
    return held * multiprocessors / (row.gbps * 1e9) if held is not None and row.gbps else None


SWEEP = Sweep(
    "inflight",
    cells,
    EVENTS + "; the probe reads and adds nothing: each thread waits for all its loads before the next ones",
    probes=ON_DEVICE,
    extra=probe_rows,
    tables="vecadd.bench.tables.inflight",
    plot="vecadd.bench.plots.inflight",
    by_dtype=True,
)
