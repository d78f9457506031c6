"""The memory's rate and latency over the bytes in flight, with every rung as a dot."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import EngFormatter, FuncFormatter, NullFormatter

from vecadd.bench.plots import style
from vecadd.bench.sweeps.inflight import PROBE, in_flight, latency
from vecadd.figures import Figure
from vecadd.tables import show_size

# The rungs that are named; the others are grey dots.
NAMED = ("grid_stride", "naive", "coarsen4", "unroll2", "float2", "float4", "float4_unroll2", "tuned")


def draw(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """GB/s above, latency below; of one dtype, at the largest n that was added."""
    points = sorted((row for row in rows if row.name == PROBE and row.gbps), key=lambda row: row.bytes)
    added = [row for row in rows if row.name != PROBE and row.gbps and in_flight(row)]
    added = [row for row in added if row.n == max(row.n for row in added)]
    figure.set_size_inches(style.WIDTH, 6.2)
    rates, latencies = figure.subplots(2, sharex=True)
    multiprocessors = points[0].bytes / points[0].params["bytes_in_flight"] if points else None
    held = [row.params["bytes_in_flight"] for row in points]
    line: dict[str, Any] = {"color": style.BLACK, "linewidth": 2.2, "alpha": 0.55, "label": "the memory, probed"}
    rates.plot(held, [row.gbps for row in points], **line)
    latencies.plot(held, [row.seconds for row in points], **line)
    _dots(rates, added, [row.gbps or 0.0 for row in added])
    if multiprocessors:
        _dots(latencies, added, [latency(row, multiprocessors) or 0.0 for row in added])
    rates.set_xscale("log", base=2)
    rates.set_ylim(bottom=0)
    rates.set_ylabel("GB/s")
    rates.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    latencies.set_yscale("log")
    latencies.yaxis.set_major_formatter(EngFormatter("s"))
    latencies.yaxis.set_minor_formatter(NullFormatter())
    latencies.set_ylabel("until they have arrived")
    latencies.xaxis.set_major_formatter(FuncFormatter(lambda nbytes, _: f"{nbytes / 1024:g}"))
    latencies.set_xlabel("KiB in flight on each multiprocessor")
    subject = "Bytes in flight: the memory under load" + (
        f", and {added[0].dtype} additions of {show_size(added[0].n)} elements" if added else ""
    )
    style.entitle(figure, subject, meta, recorded=recorded)


def _dots(axes: Axes, rows: Sequence[Figure], values: Sequence[float]) -> None:
    looks = style.looks(NAMED)
    others = [(in_flight(row), value) for row, value in zip(rows, values, strict=True) if row.name not in looks]
    if others:
        axes.plot(*zip(*others, strict=True), ".", color=style.GREY, markerfacecolor="none", label="other rungs")
    for rung, look in looks.items():
        some = [(in_flight(row), value) for row, value in zip(rows, values, strict=True) if row.name == rung]
        if some:
            axes.plot(*zip(*some, strict=True), **(look.keywords() | {"linestyle": ""}), label=rung)
