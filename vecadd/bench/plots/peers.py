"""Beside other libraries: each one's time over ours, with the 95 % interval of the pairs; above 1 it is slower."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from vecadd.bench.plots import style
from vecadd.bench.plots.curves import by_label
from vecadd.bench.results import Row

PREFIX = "peer"
COLUMNS = 2
BARS_UP_TO = 2  # sizes of a contestant; more are drawn as lines
NAMED = 3  # references, at most

LEVEL: dict[str, Any] = {"color": style.BLACK, "linewidth": 1.2, "alpha": 0.6, "zorder": 1.5}  # both take the same time

# The axis's ticks, by how far apart the ratios are.
TICKS: Sequence[tuple[float, Sequence[float]]] = (
    (1.1, (0.92, 0.94, 0.96, 0.98, 1, 1.02, 1.04, 1.06, 1.08)),
    (1.5, (0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3, 1.4)),
    (4.0, (0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3)),
    (8.0, (0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6)),
    (3000, (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
    (inf, (0.001, 0.01, 0.1, 1, 10, 100, 1000)),
)


def chosen(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """By sweep, the rows that have a ratio to another row."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.sweep.startswith(PREFIX) and row.seconds and "ratio" in row.params:
            found.setdefault(row.sweep, []).append(row)
    return found


def draw(figure: Figure, meta: Mapping[str, Any], rows: Sequence[Row], *, recorded: bool) -> None:
    """Lines over the size, a panel a dtype; bars where no contestant has many sizes."""
    subject = f"Time over ours: {rows[0].sweep}"
    if max(len({row.n for row in line}) for line in by_label(rows).values()) > BARS_UP_TO:
        _lines(figure, rows)
    else:
        _bars(figure, rows)
    style.entitle(figure, subject, meta, recorded=recorded, host=rows[0].sweep == "peer-host")


def _lines(figure: Figure, rows: Sequence[Row]) -> None:
    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    columns = min(COLUMNS, len(dtypes))
    lines = -(-len(dtypes) // columns)
    figure.set_size_inches(style.WIDTH, 1.4 + 2.3 * lines)
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    every = list(panels.flat)
    looks = style.looks(row.label for row in rows)
    entries: dict[str, Any] = {}
    for axes, dtype in zip(every, dtypes, strict=False):
        for label, line in by_label(row for row in rows if row.dtype == dtype).items():
            axes.errorbar(
                [row.n for row in line],
                [row.params["ratio"] for row in line],
                yerr=_errors(line),
                label=label,
                elinewidth=0.8,
                **looks[label].keywords(),
            )
        axes.axhline(1.0, **LEVEL)
        style.size_axis(axes, [row.n for row in rows])
        axes.set_yscale("log")
        _ratio_axis(axes.yaxis, rows)
        axes.set_title(dtype)
        entries |= style.legend_entries(axes)
    for axes in every[len(dtypes) :]:
        axes.set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel("time / ours")
    style.share_x(panels)
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3)


def _bars(figure: Figure, rows: Sequence[Row]) -> None:
    several = len({(row.dtype, row.n) for row in rows}) > 1
    names = [f"{row.label}, {row.dtype} {row.n}" if several else row.label for row in rows]
    figure.set_size_inches(style.WIDTH, 1.2 + 0.24 * len(rows))
    axes = figure.subplots()
    places = range(len(rows))
    ratios = [row.params["ratio"] for row in rows]
    from_level = [ratio - 1 for ratio in ratios]
    axes.barh(places, from_level, left=1, color=style.SKY, edgecolor=style.BLACK, linewidth=0.6)
    axes.errorbar(ratios, places, xerr=_errors(rows), fmt="none", ecolor=style.BLACK, elinewidth=0.8, capsize=2)
    axes.axvline(1.0, **LEVEL)
    axes.set_yticks(places, names)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xscale("log")
    _ratio_axis(axes.xaxis, rows)
    axes.set_xlabel(_over(list(dict.fromkeys(row.params["reference"] for row in rows))))


def _over(references: Sequence[str]) -> str:
    """What the times are divided by: named where all rows, or nearly all, have the same."""
    if len(references) > NAMED:
        return "time over that of vecadd for the same addition"
    return "time over that of " + ";\nor of ".join(references)


def _errors(rows: Sequence[Row]) -> list[list[float]]:
    """How far the interval reaches below and above each ratio."""
    below = [max(0.0, row.params["ratio"] - row.params["ratio_interval"][0]) for row in rows]
    above = [max(0.0, row.params["ratio_interval"][1] - row.params["ratio"]) for row in rows]
    return [below, above]


def _ratio_axis(axis: Axis, rows: Sequence[Row]) -> None:
    """Plain numbers as ticks, spaced by how far apart the ratios are."""
    ends = [end for row in rows for end in row.params["ratio_interval"]]
    low, high = min([1.0, *ends]), max([1.0, *ends])
    ticks = next(ticks for reach, ticks in TICKS if high / low <= reach)
    axis.set_major_locator(FixedLocator([tick for tick in ticks if 0.8 * low <= tick <= 1.25 * high]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
