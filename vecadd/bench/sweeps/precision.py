"""Half the bytes an element, beside the processor, which adds its own arrays: every dtype in turn at each size."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import inf, nan
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.bench import layout, plot, recorded
from vecadd.bench.contestants import device_rung, numpy_add
from vecadd.bench.options import Options
from vecadd.bench.plot import Axes, Drawing, Picture
from vecadd.bench.probes import HostLimit
from vecadd.bench.run import DEFAULT_SIZES, EVENTS, HOST_SETS, ON_DEVICE, Machine, Sweep
from vecadd.bench.sweeps.ladder import roofline
from vecadd.bench.timing import Cell
from vecadd.figures import Figure, Run
from vecadd.tables import Column, Style, Table, columns, show_seconds, show_size

DTYPES = ("float32", "float16", "bfloat16")
BRIEF_SIZES = (2**10, 2**14, 2**20, 2**24)


def cells(options: Options, machine: Machine) -> Iterator[Cell]:
    """At each size and dtype numpy.add, and then the rungs of the GPU: the dtype's own, then the ladder's."""
    dtypes = list(machine.find_dtypes(options.dtypes or DTYPES, "precision"))
    rungs = sorted(_core.rungs(), key=lambda rung: str(rung["family"]), reverse=True)
    for n in options.choose_sizes(DEFAULT_SIZES, BRIEF_SIZES):
        for dtype in dtypes:
            yield Cell(dtype, n, [numpy_add()], HostLimit(), HOST_SETS)
            every = [
                device_rung(rung, machine.gpu, dtype, n, block=options.block)
                for rung in rungs
                if machine.runs(rung, dtype) and (rung["family"] == "precision" or rung["name"] in _ladder_rungs(dtype))
            ]
            yield Cell(
                dtype,
                n,
                every,
                machine.device_limit,
                add_derived=lambda figures: _add_launch_share(figures, machine.limits("launch")["kernel_seconds"]),
            )


def _ladder_rungs(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """The rungs of the ladder that are run beside the precision rungs of a dtype, or in place of such rungs."""
    name = str(dtype)
    has_own = any(rung["family"] == "precision" and name in rung["dtypes"] for rung in _core.rungs())
    return ("tuned",) if has_own else ("naive", "float4")


def _add_launch_share(figures: list[Figure], empty: float) -> list[Figure]:
    return [figure.with_params(launch_share=empty / figure.seconds) if figure.seconds else figure for figure in figures]


# Tables

CPU, BASE = ("numpy", "float32"), ("naive", "float32")  # (rung, dtype) that the first two speed-ups are over
STEPS = ("half", "half2", "half8", "half8_pack")  # the third is of each of these over the one before

_COLUMNS = columns(
    "rung",
    Column("dtype", right=False),
    "seconds",
    "GB/s",
    "% limit",
    "CPU /",
    "fp32 /",
    "step",
    "launch %",
    "regs",
    "occ. %",
    "document",
    "its CPU /",
    "its fp32 /",
    "its step",
)
_OPTIONAL = ("its step", "its fp32 /", "its CPU /", "document", "occ. %", "regs", "launch %", "step")

NOTES = (
    "CPU /: numpy float32 over this one; fp32 /: naive float32 over this one; step: over the one before of half, "
    "half2, half8, half8_pack; its: the same of document 001",
    "launch %: an empty kernel's share of the time; host arrays stay in the host's memory, GPU arrays in the GPU's",
)

Times = Mapping[tuple[str, str], float]  # seconds by rung and dtype


def tables(figures: Sequence[Figure]) -> list[Table]:
    """16-bit beside 32-bit elements by size: three speed-ups beside document 001's, and from which size on the GPU is
    faster."""
    table = Table("precision", _COLUMNS, optional_columns=_OPTIONAL)
    for n in dict.fromkeys(figure.n for figure in figures):
        group = [figure for figure in figures if figure.n == n]
        table.add(show_size(n), style=Style.HEAD)
        times = {(figure.name, figure.dtype): figure.seconds for figure in group if figure.seconds}
        theirs = {
            (time.rung, "float32" if time.rung in ("numpy", "naive", "float4") else "float16"): time.seconds
            for rung in dict.fromkeys(figure.name for figure in group)
            for time in recorded.figures(rung, n=n)
        }
        for figure in group:
            table.add(figure.name, figure.dtype, *_cells(figure, times, theirs), style=layout.choose_style(figure))
        table.add_gap()
    rungs = dict.fromkeys(figure.name for figure in figures)
    shown = [time for rung in rungs for time in recorded.FIGURES if time.n and time.rung == rung]
    table.notes = [*NOTES, *crossovers(figures), *layout.document_notes(figures, shown)]
    return [table]


def _cells(figure: Figure, times: Times, theirs: Times) -> tuple[str, ...]:
    its = theirs.get((figure.name, figure.dtype))
    return (
        *layout.measured_cells(figure),
        *map(_show_speedup, speedups(figure.name, figure.dtype, times)),
        layout.percent_cell(figure.params.get("launch_share")),
        layout.param_cell(figure, "registers"),
        layout.percent_cell(figure.params.get("occupancy")),
        show_seconds(its) if its else "-",
        *map(_show_speedup, speedups(figure.name, figure.dtype, theirs)),
    )


def _show_speedup(speedup: float | None) -> str:
    return f"{speedup:.3g}" if speedup else "-"


def speedups(rung: str, dtype: str, times: Times) -> tuple[float | None, float | None, float | None]:
    """The times of the CPU, of naive float32 and of the rung before in STEPS, each over this rung's time."""
    own = times.get((rung, dtype))
    before = STEPS[STEPS.index(rung) - 1] if rung in STEPS[1:] else ""
    over = (CPU, BASE, (before, dtype))
    cpu, base, step = (
        times[other] / own if own and other in times and other != (rung, dtype) else None for other in over
    )
    return cpu, base, step


def crossovers(figures: Sequence[Figure]) -> list[str]:
    """From which size on each GPU rung is faster than numpy float32, a line a dtype."""
    timed = [figure for figure in figures if figure.seconds]
    cpu = [figure for figure in timed if (figure.name, figure.dtype) == CPU]
    lines = []
    for dtype in dict.fromkeys(figure.dtype for figure in figures):
        found = []
        for rung in dict.fromkeys(each.name for each in timed if each.dtype == dtype and each.name != CPU[0]):
            own = [each for each in timed if (each.name, each.dtype) == (rung, dtype)]
            if common := {each.n for each in own} & {each.n for each in cpu}:
                ahead = crossover([*cpu, *own])
                found.append(f"{rung} {show_size(ahead) if ahead else f'beyond {show_size(max(common))}'}")
        if found:
            lines.append(f"{dtype} is faster than the CPU's float32 from: {', '.join(found)}")
    return lines


# Pictures


def pictures(run: Run) -> Iterator[Picture]:
    """What half the bytes bring, and from which size on the GPU is ahead of the processor; and the roofline."""
    yield Picture("precision", "Precision: rates and times by dtype", partial(_draw, figures=run.figures))
    yield from roofline(run, "precision-roofline")


def _draw(drawing: Drawing, figures: Sequence[Figure]) -> None:
    """A column for each dtype: rates above times, both over n, with the crossover marked."""
    dtypes = list(dict.fromkeys(figure.dtype for figure in figures))
    drawing.set_size_inches(0.6 + 2.6 * max(len(dtypes), 2), 6.6)
    panels = drawing.subplots(2, len(dtypes), squeeze=False, sharex=True, sharey="row")
    looks = plot.line_styles(figure.label for figure in figures)
    entries: dict[str, Any] = {}
    for column, dtype in enumerate(dtypes):
        some = [figure for figure in figures if figure.dtype == dtype]
        on_gpu = [figure for figure in some if figure.name != CPU[0]]
        rates, times = panels[:, column]
        plot.draw_rates(rates, plot.by_label(on_gpu), looks)
        plot.draw_limit(rates, on_gpu)
        _draw_times(times, some, looks)
        ahead = crossover(some)
        if ahead:
            for axes in (rates, times):
                axes.axvline(ahead, **plot.MARK)
        rates.set_title(f"{dtype}, GPU ahead from {show_size(ahead)}" if ahead else dtype)
        rates.set_xlabel("")
        if column:
            rates.set_ylabel("")
            times.set_ylabel("")
        entries |= plot.legend_entries(times)
    entries |= plot.legend_entries(panels[0, 0])  # the limit is the last of them
    panels[0, 0].set_ylim(bottom=0)
    drawing.legend(handles=list(entries.values()), labels=list(entries), loc="outside lower center", ncols=4)


def crossover(figures: Sequence[Figure]) -> int | None:
    """The smallest n from which on the fastest rung of the GPU is ahead of the processor at every size that both have;
    None where it never is."""
    on_cpu: dict[int, float] = {}
    on_gpu: dict[int, float] = {}
    for figure in figures:
        best = on_cpu if figure.name == CPU[0] else on_gpu
        if figure.seconds:
            best[figure.n] = min(figure.seconds, best.get(figure.n, inf))
    both = on_cpu.keys() & on_gpu.keys()
    behind = max((n for n in both if on_gpu[n] >= on_cpu[n]), default=0)
    return min((n for n in both if n > behind), default=None)


def _draw_times(axes: Axes, figures: Sequence[Figure], looks: Mapping[str, plot.Look]) -> None:
    for label, line in plot.by_label(figures).items():
        values = [nan if figure.seconds is None else figure.seconds for figure in line]
        axes.plot([figure.n for figure in line], values, label=label, **looks[label].keywords())
    plot.size_axis(axes, [figure.n for figure in figures])
    plot.seconds_axis(axes)


SWEEP = Sweep(
    "precision",
    cells,
    f"{EVENTS}; numpy around the Python call, on the host's own arrays",
    probes=ON_DEVICE,
    dtypes=DTYPES,
    tables=tables,
    pictures=pictures,
)
