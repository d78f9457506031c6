"""Precision: what half the bytes bring, and from which size on the GPU is ahead of the processor."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from vecadd.bench.plots import curves, style
from vecadd.figures import Figure
from vecadd.tables import show_size

PROCESSOR = "numpy"  # the contestant that runs on the processor


def draw(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """A column for each dtype: rates above times, both over n, with the crossover marked."""
    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    figure.set_size_inches(0.6 + 2.6 * max(len(dtypes), 2), 6.6)
    panels = figure.subplots(2, len(dtypes), squeeze=False, sharex=True, sharey="row")
    looks = style.looks(row.label for row in rows)
    handles: dict[str, Any] = {}
    for column, dtype in enumerate(dtypes):
        some = [row for row in rows if row.dtype == dtype]
        rates, times = panels[:, column]
        curves.rates(rates, curves.by_label(row for row in some if row.name != PROCESSOR), looks)
        curves.roof(rates, [row for row in some if row.name != PROCESSOR])
        _times(times, some, looks)
        ahead = crossover(some)
        _mark_crossover(rates, times, ahead)
        rates.set_title(f"{dtype}, GPU ahead from {show_size(ahead)}" if ahead else dtype)
        rates.set_xlabel("")
        if column:
            rates.set_ylabel("")
            times.set_ylabel("")
        handles |= style.legend_entries(times)
    handles |= style.legend_entries(panels[0, 0])  # the limit is the last of them
    panels[0, 0].set_ylim(bottom=0)
    figure.legend(handles=list(handles.values()), labels=list(handles), loc="outside lower center", ncols=4)
    style.entitle(figure, "Precision: rates and times by dtype", meta, recorded=recorded)


def crossover(rows: Sequence[Figure]) -> int | None:
    """The smallest n from which on the fastest rung of the GPU is ahead of the processor at every size that both have;
    None where it never is."""
    ahead = None
    for n in sorted({row.n for row in rows}, reverse=True):
        here = [row for row in rows if row.n == n and row.seconds]
        gpu = [row.seconds for row in here if row.name != PROCESSOR and row.seconds]
        processor = [row.seconds for row in here if row.name == PROCESSOR and row.seconds]
        if not gpu or not processor:
            continue
        if min(gpu) >= min(processor):
            break
        ahead = n
    return ahead


def _times(axes: Axes, rows: Sequence[Figure], looks: Mapping[str, style.Look]) -> None:
    for label, line in curves.by_label(rows).items():
        values = [nan if row.seconds is None else row.seconds for row in line]
        axes.plot([row.n for row in line], values, label=label, **looks[label].keywords())
    style.size_axis(axes, [row.n for row in rows])
    style.seconds_axis(axes)


def _mark_crossover(rates: Axes, times: Axes, n: int | None) -> None:
    if n is None:
        return
    for axes in (rates, times):
        axes.axvline(n, color=style.GREY, linewidth=1, linestyle=(0, (2, 2)))
