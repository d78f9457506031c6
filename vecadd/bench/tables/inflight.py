"""The memory under load, a line for each number of bytes in flight, and each rung beside it."""

from collections.abc import Sequence
from itertools import groupby

from vecadd.bench.sweeps.inflight import PROBE, in_flight, latency
from vecadd.bench.tables import parts
from vecadd.figures import Figure
from vecadd.model.loaded import Loaded
from vecadd.tables import Style, Table, columns, show_seconds, show_size

COUNTED = (
    "KiB/SM: bytes in flight on a multiprocessor, a thread's loads before it waits times its threads; of an addition "
    "half as much again for its stores"
)
LAW = "latency: the probe's is timed; a rung's is its bytes in flight over its rate, by Little's law"
OF_PROBE = "% of the probe: the rung's rate over the probe's with as many bytes in flight"


def tables(sweep: str, rows: list[Figure]) -> list[Table]:
    """The probe's points, and each rung's rate beside what the memory gives for as many bytes in flight."""
    points = [row for row in rows if row.name == PROBE and row.seconds]
    probed = Table(f"{sweep}: the memory under load", columns("KiB/SM", "GB/s", "% of its best", "latency"))
    best = max((row.gbps or 0.0 for row in points), default=0.0)
    for row in points:
        share = parts.percent((row.gbps or 0.0) / best)
        probed.add(_kib(in_flight(row)), parts.rate(row), share, parts.seconds(row))
    rungs = Table(f"{sweep}: the rungs", columns("rung", "KiB/SM", "GB/s", "% limit", "latency", "% of the probe"))
    added = [row for row in rows if row.name != PROBE]
    for (dtype, n), cell in groupby(added, key=lambda row: (row.dtype, row.n)):
        rungs.add(f"{dtype} {show_size(n)}", style=Style.HEAD)
        for row in cell:
            rungs.add(row.label, *_figures(row, points), style=parts.style(row))
        rungs.add_gap()
    found = [table for table in (probed, rungs) if table.lines]
    if found:
        found[-1].notes = [COUNTED, LAW, *([OF_PROBE] if points and added else [])]
    return found


def _figures(row: Figure, points: Sequence[Figure]) -> tuple[str, ...]:
    held = in_flight(row)
    figures = _kib(held), parts.rate(row), parts.fraction(row)
    if held is None or not row.gbps or not points:
        return *figures, "-", "-"
    multiprocessors = points[0].bytes / points[0].params["bytes_in_flight"]
    loaded = Loaded.through((point.params["bytes_in_flight"], 1e9 * (point.gbps or 0.0)) for point in points)
    took = latency(row, multiprocessors)
    share = parts.percent(1e9 * row.gbps / loaded.rate(held)) if loaded else "-"
    return *figures, show_seconds(took) if took else "-", share


def _kib(nbytes: float | None) -> str:
    return "-" if nbytes is None else f"{nbytes / 1024:.3g}"
