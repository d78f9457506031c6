"""The ladder's kernels beside the memory's rate and latency by the bytes in flight on each multiprocessor."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from vecadd.bench import layout, plot
from vecadd.bench.contestants import device_rung
from vecadd.bench.options import Options, find_dtype
from vecadd.bench.plot import Axes, Drawing, Picture
from vecadd.bench.run import EVENTS, ON_DEVICE, Machine, Sweep, grid
from vecadd.bench.sweeps.ladder import choose_variants
from vecadd.bench.timing import Cell
from vecadd.figures import Figure, Run
from vecadd.model.limits import Loaded
from vecadd.tables import Table, columns, show_seconds, show_size

SIZES = (2**26,)

PROBE = "probe"  # the name of the figures that are not additions
DTYPE, ITEMSIZE = "float32", 4  # as whose elements the probe's bytes are counted

# The rungs that a picture names; the others are grey dots.
NAMED = ("grid_stride", "naive", "coarsen4", "unroll2", "float2", "float4", "float4_unroll2", "tuned")


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


def probe_memory(options: Options, machine: Machine) -> list[Figure]:
    """A figure for each point of the probe: its bytes are those in flight on all multiprocessors at one time, its
    seconds the time until they have arrived."""
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


def in_flight(figure: Figure) -> float | None:
    """Bytes in flight on a multiprocessor: a figure's loads, and for an addition its stores in the same proportion as
    its bytes. None where the figure does not say."""
    loads: float | None = figure.params.get("bytes_in_flight")
    if loads is None or figure.name == PROBE:
        return loads
    arrays = round(figure.bytes / figure.n / find_dtype(figure.dtype).itemsize)
    return loads * arrays / (arrays - 1)


def latency(figure: Figure, multiprocessors: float) -> float | None:
    """Seconds that the bytes in flight take at the figure's rate, by Little's law."""
    waiting = in_flight(figure)
    return waiting * multiprocessors / (figure.gbps * 1e9) if waiting is not None and figure.gbps else None


def _count_multiprocessors(points: Sequence[Figure]) -> float:
    return points[0].bytes / float(points[0].params["bytes_in_flight"])


# Tables

COUNTED = (
    "KiB/SM: bytes in flight on a multiprocessor, a thread's loads before it waits times its threads; of an addition "
    "half as much again for its stores"
)
LAW = "latency: the probe's is timed; a rung's is its bytes in flight over its rate, by Little's law"
OF_PROBE = "% of the probe: the rung's rate over the probe's with as many bytes in flight"


def tables(figures: Sequence[Figure]) -> list[Table]:
    """The probe's points, and each rung's rate beside what the memory gives for as many bytes in flight."""
    points = [figure for figure in figures if figure.name == PROBE and figure.seconds]
    probed = Table("inflight: the memory under load", columns("KiB/SM", "GB/s", "% of its best", "latency"))
    best = max((point.gbps or 0.0 for point in points), default=0.0)
    for point in points:
        share = layout.percent_cell((point.gbps or 0.0) / best)
        probed.add(_show_kib(in_flight(point)), layout.rate_cell(point), share, layout.seconds_cell(point))
    rungs = Table("inflight: the rungs", columns("rung", "KiB/SM", "GB/s", "% limit", "latency", "% of the probe"))
    added = [figure for figure in figures if figure.name != PROBE]
    for cell in layout.each_cell(rungs, added):
        for figure in cell:
            rungs.add(figure.label, *_rung_cells(figure, points), style=layout.choose_style(figure))
    found = [table for table in (probed, rungs) if table.lines]
    if found:
        found[-1].notes = [COUNTED, LAW, *([OF_PROBE] if points and added else [])]
    return found


def _rung_cells(figure: Figure, points: Sequence[Figure]) -> tuple[str, ...]:
    waiting = in_flight(figure)
    known = _show_kib(waiting), layout.rate_cell(figure), layout.limit_cell(figure)
    if waiting is None or not figure.gbps or not points:
        return *known, "-", "-"
    loaded = Loaded.through((point.params["bytes_in_flight"], 1e9 * (point.gbps or 0.0)) for point in points)
    seconds = latency(figure, _count_multiprocessors(points))
    share = layout.percent_cell(1e9 * figure.gbps / loaded.rate(waiting)) if loaded else "-"
    return *known, show_seconds(seconds) if seconds else "-", share


def _show_kib(nbytes: float | None) -> str:
    return "-" if nbytes is None else f"{nbytes / 1024:.3g}"


# Pictures


def pictures(run: Run) -> Iterator[Picture]:
    """The memory's rate and latency over the bytes in flight, with every rung as a dot; of each dtype at its largest
    size."""
    for name, figures in plot.by_dtype("inflight", run.figures):
        points = sorted((figure for figure in figures if figure.name == PROBE and figure.gbps), key=lambda at: at.bytes)
        added = [figure for figure in figures if figure.name != PROBE and figure.gbps and in_flight(figure)]
        added = [figure for figure in added if figure.n == max(figure.n for figure in added)]
        title = "Bytes in flight: the memory under load"
        if added:
            title += f", and {added[0].dtype} additions of {show_size(added[0].n)} elements"
        yield Picture(name, title, partial(_draw, points=points, added=added))


def _draw(drawing: Drawing, points: Sequence[Figure], added: Sequence[Figure]) -> None:
    from matplotlib.ticker import EngFormatter, FuncFormatter, NullFormatter

    drawing.set_size_inches(plot.WIDTH, 6.2)
    rates, latencies = drawing.subplots(2, sharex=True)
    places = [point.params["bytes_in_flight"] for point in points]
    rates.plot(places, [point.gbps for point in points], label="the memory, probed", **plot.LIMIT)
    latencies.plot(places, [point.seconds for point in points], label="the memory, probed", **plot.LIMIT)
    _draw_dots(rates, added, [figure.gbps or 0.0 for figure in added])
    if points:
        multiprocessors = _count_multiprocessors(points)
        _draw_dots(latencies, added, [latency(figure, multiprocessors) or 0.0 for figure in added])
    rates.set_xscale("log", base=2)
    rates.set_ylim(bottom=0)
    rates.set_ylabel("GB/s")
    plot.legend_beside(rates)
    latencies.set_yscale("log")
    latencies.yaxis.set_major_formatter(EngFormatter("s"))
    latencies.yaxis.set_minor_formatter(NullFormatter())
    latencies.set_ylabel("until they have arrived")
    latencies.xaxis.set_major_formatter(FuncFormatter(lambda nbytes, _: f"{nbytes / 1024:g}"))
    latencies.set_xlabel("KiB in flight on each multiprocessor")


def _draw_dots(axes: Axes, figures: Sequence[Figure], values: Sequence[float]) -> None:
    places: dict[str, list[tuple[Any, float]]] = {}
    for figure, value in zip(figures, values, strict=True):
        places.setdefault(figure.name if figure.name in NAMED else "other rungs", []).append((in_flight(figure), value))
    if others := places.get("other rungs"):
        axes.plot(*zip(*others, strict=True), ".", color=plot.GREY, markerfacecolor="none", label="other rungs")
    for rung, look in plot.line_styles(NAMED).items():
        if rung in places:
            axes.plot(*zip(*places[rung], strict=True), **look.dots(), label=rung)


SWEEP = Sweep(
    "inflight",
    cells,
    EVENTS + "; the probe reads and adds nothing: each thread waits for all its loads before the next ones",
    probes=ON_DEVICE,
    extra=probe_memory,
    tables=tables,
    pictures=pictures,
)
