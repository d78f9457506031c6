"""The ladder, rung by rung: how near each rung comes to the memory's limit."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from vecadd.bench.plots import style
from vecadd.figures import Figure
from vecadd.tables import show_rate, show_size

MOST_SIZES = 3  # panels beside each other
BAR = 0.165  # inches of height
ONE_PANEL = 3.6  # inches of width, at least: the legend's
DECADES = 100
MOST_TICKS = 4

_PART = 0.6  # of a panel's width: the bars; the rest is for their figures, in two columns
_COLUMNS = (0.82, 1.0)
_LETTERS = 6.5

# By what a thread loads at a time: colour and hatch. The row's own load counts: a rung's kernel may have changed since.
_LOADS = {
    4: ("one element a load", style.ORANGE, "///"),
    8: ("8 bytes a load", style.SKY, "..."),
    16: ("16 bytes a load", style.GREEN, ""),
}
_COPIED = ("copied past the registers", style.PURPLE, "\\\\\\")
_UNKNOWN = ("a rung that this build does not have", style.PALE, "")
_CAUGHT = ("wrong on purpose, and caught", style.VERMILLION, "xxx")


def spans_decades(rows: Sequence[Figure]) -> bool:
    """Whether some rung of a size is so far behind another that a linear axis does not show its bar."""
    rates: dict[int, list[float]] = {}
    for row in rows:
        if row.gbps:
            rates.setdefault(row.n, []).append(row.gbps)
    return any(max(some) > DECADES * min(some) for some in rates.values())


def draw(
    figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool, logarithmic: bool = False
) -> None:
    """A panel for each size, at most three, with the same rungs in all; for one dtype."""
    sizes = _chosen(sorted({row.n for row in rows}))
    names = list(dict.fromkeys((row.name, _variant(row)) for row in rows))
    places = _places(names)
    figure.set_size_inches(1.7 + max(2.1 * len(sizes), ONE_PANEL), 1.4 + BAR * (max(places.values()) + 1))
    panels = figure.subplots(1, len(sizes), squeeze=False, sharey=True)[0]
    used: dict[str, Patch] = {}
    for axes, n in zip(panels, sizes, strict=True):
        cell = [row for row in rows if row.n == n]
        here = {(row.name, _variant(row)): row for row in cell}
        for name, place in places.items():
            if name in here:
                _bar(axes, here[name], place, used)
            else:
                _write(axes, place, "not run", "")
        _limit(axes, cell, logarithmic=logarithmic)
        axes.set_title(f"{show_size(n)} elements")
        axes.grid(visible=False, axis="y")
    first = panels[0]
    first.set_yticks([places[name] for name in names], _labels(names), fontsize=_LETTERS)
    first.set_ylim(max(places.values()) + 0.8, -0.8)
    for axes in panels:
        axes.tick_params(axis="y", length=0)
    figure.legend(handles=list(used.values()), loc="outside lower center", ncols=2)
    style.entitle(figure, f"The ladder, {rows[0].dtype}: each rung against the limit", meta, recorded=recorded)


def _chosen(sizes: Sequence[int]) -> list[int]:
    """The smallest, the one in the middle and the largest."""
    if len(sizes) <= MOST_SIZES:
        return list(sizes)
    return [sizes[0], sizes[len(sizes) // 2], sizes[-1]]


def _variant(row: Figure) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.params.get("parameters", {}).items())


def _places(names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Where each bar is along y: variants of a rung close together, half a bar between two rungs."""
    place, places, before = 0.0, {}, names[0][0]
    for rung, variant in names:
        place += 0.5 * (rung != before)
        places[rung, variant] = place
        place, before = place + 1, rung
    return places


def _labels(names: Sequence[tuple[str, str]]) -> list[str]:
    """The rung stands at the first of its variants."""
    seen: set[str] = set()
    labels = []
    for rung, variant in names:
        labels.append(variant if rung in seen else f"{rung}  {variant}".rstrip())
        seen.add(rung)
    return labels


def _bar(axes: Axes, row: Figure, place: float, used: dict[str, Patch]) -> None:
    if row.gbps is None:
        _write(axes, place, "failed", "")
        return
    meaning, color, hatch = _meaning(row)
    look: dict[str, Any] = {"facecolor": color, "hatch": hatch, "edgecolor": style.BLACK, "linewidth": 0.5}
    axes.barh(place, row.gbps, height=0.85, **look)
    _write(axes, place, show_rate(row.gbps), "" if row.fraction is None else _percent(row.fraction))
    used.setdefault(meaning, Patch(label=meaning, **look))


def _write(axes: Axes, place: float, *columns: str) -> None:
    for x, text in zip(_COLUMNS, columns, strict=True):
        where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
        axes.annotate(text, (x, place), fontsize=_LETTERS, **where)


def _meaning(row: Figure) -> tuple[str, str, str]:
    if "caught" in row.params:
        return _CAUGHT
    load = row.params.get("load")
    if load is None:
        return _UNKNOWN
    if not load.startswith("LDG."):
        return _COPIED
    return _LOADS[16 if ".128" in load else 8 if ".64" in load else 4]


def _percent(fraction: float) -> str:
    percent = 100 * fraction
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.1f} %" if percent >= 0.095 else "<0.1 %"


def _limit(axes: Axes, cell: Sequence[Figure], *, logarithmic: bool) -> None:
    """A line where the limit fits in the panel; its figure in any case. The bars end where their figures begin."""
    rates = [row.gbps for row in cell if row.gbps] or [1.0]
    longest = max(rates)
    limit = next((row.limit for row in cell if row.limit), None)
    if limit and limit < 1.5 * longest:
        longest = max(longest, limit)
        axes.axvline(limit, color=style.BLACK, linewidth=2.2, alpha=0.55)
    if logarithmic:
        least = min(rates) / 3
        axes.set_xscale("log")
        axes.set_xlim(least, least * (longest / least) ** (1 / _PART))
        powers = range(ceil(log10(least)), floor(log10(longest)) + 1)
        axes.xaxis.set_major_locator(FixedLocator([10.0**power for power in powers[:: -(-len(powers) // MOST_TICKS)]]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlim(0, longest / _PART)
        axes.set_xticks([tick for tick in axes.get_xticks() if tick <= longest])
    axes.set_xlabel(f"GB/s, limit {show_rate(limit)}" if limit else "GB/s")
