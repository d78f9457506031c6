"""Rates over threads a block, and over how many waves the blocks make."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter, ScalarFormatter

from vecadd.bench.plots import curves, style
from vecadd.figures import Figure
from vecadd.model.theory import ARRAYS
from vecadd.tables import show_rate, show_size

ADVISED = 0.75  # occupancy, by founding document 002


def draw(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """GB/s over block size above occupancy over block size, and GB/s over waves below; of one dtype, at the
    largest n."""
    rows = [row for row in rows if row.n == max(row.n for row in rows)]
    by_waves = [row for row in rows if row.name == "waves" and row.params.get("waves")]
    by_block = [row for row in rows if row.name != "waves" and row.gbps]
    heights = [3.4] * bool(by_block) + [1.5] * bool(by_block) + [2.2] * bool(by_waves)
    figure.set_size_inches(style.WIDTH, 0.6 + sum(heights))
    panels = list(figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0])
    if by_block:
        rates = panels.pop(0)
        _blocks(rates, panels.pop(0), by_block)
        _starts(rates, by_block, meta.get("limits", {}).get("launch", {}).get("block_seconds"))
        rates.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), title="ring: the fastest block")
    if by_waves:
        _waves(panels.pop(0), by_waves)
    subject = f"Block size and waves, {rows[0].dtype}, {show_size(rows[0].n)} elements"
    style.entitle(figure, subject, meta, recorded=recorded)


def _blocks(rates: Axes, occupancy: Axes, rows: Sequence[Figure]) -> None:
    looks = style.looks(row.name for row in rows)
    for rung, look in looks.items():
        line = sorted((row for row in rows if row.name == rung), key=lambda row: row.params["block"])
        blocks = [row.params["block"] for row in line]
        values = [row.gbps or 0.0 for row in line]
        best = max(range(len(line)), key=values.__getitem__)
        label = f"{rung}, best at {blocks[best]}"
        if (most := line[best].params.get("occupancy")) is not None:
            label += f" ({100 * most:.0f} % occupied)"
        rates.plot(blocks, values, label=label, **look.keywords())
        rates.plot(blocks[best], values[best], "o", markersize=10, markerfacecolor="none", color=look.color)
    _occupied(occupancy, rows, looks)
    curves.roof_over(rates, rows, [row.params["block"] for row in rows])
    for axes in (rates, occupancy):
        _block_axis(axes, rows)
    rates.set_ylabel("GB/s")
    rates.set_ylim(bottom=0)
    rates.tick_params(labelbottom=False)
    occupancy.axhline(ADVISED, color=style.BLACK, linewidth=1, linestyle=(0, (2, 2)))
    occupancy.annotate(
        " advised by\n document 002",
        (1, ADVISED),
        xycoords=("axes fraction", "data"),
        va="center",
        fontsize=style.SMALL,
    )
    occupancy.yaxis.set_major_formatter(PercentFormatter(1))
    occupancy.set_ylim(0, 1.08)
    occupancy.set_ylabel("occupancy")
    occupancy.set_xlabel("threads a block")


def _occupied(axes: Axes, rows: Sequence[Figure], looks: Mapping[str, style.Look]) -> None:
    """Dots for each rung; the same ones for all whose multiprocessors hold the same. Between them lies a sawtooth."""
    lines: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for rung in looks:
        held = {row.params["block"]: row.params.get("occupancy") for row in rows if row.name == rung}
        known = tuple(sorted((block, share) for block, share in held.items() if share is not None))
        lines.setdefault(known, []).append(rung)
    for known, rungs in lines.items():
        look = style.Look(style.BLACK, "o", "", hollow=False) if len(rungs) > 1 else looks[rungs[0]]
        label = f"all {len(rungs)} rungs" if len(rungs) == len(looks) else ", ".join(rungs)
        if known:
            axes.plot(*zip(*known, strict=True), label=label, **(look.keywords() | {"linestyle": ""}))
    if any(len(rungs) > 1 for rungs in lines.values()):
        axes.legend(loc="lower right", fontsize=style.SMALL)


def _starts(axes: Axes, rows: Sequence[Figure], block_seconds: float | None) -> None:
    """How fast blocks start, where the run measured it: no rung whose threads add so many elements each and end is
    above."""
    if not block_seconds:
        return
    top = axes.get_ylim()[1]
    blocks = sorted({int(row.params["block"]) for row in rows})
    for elements in (1, 2, 4):
        of_a_thread = ARRAYS * style.itemsize(rows[0].dtype) * elements
        rates = [of_a_thread * block / block_seconds / 1e9 for block in blocks]
        label = f"blocks start, {1e9 * block_seconds:.2g} ns each:\n1, 2 and 4 elements a thread"
        look: dict[str, Any] = {"color": style.BLACK, "linewidth": 1, "linestyle": (0, (1, 2)), "zorder": 3}
        axes.plot(blocks, rates, label=label if elements == 1 else None, **look)
    axes.set_ylim(0, top)


def _block_axis(axes: Axes, rows: Sequence[Figure]) -> None:
    blocks = sorted({int(row.params["block"]) for row in rows})
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(blocks))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", labelsize=style.SMALL)


def _waves(axes: Axes, rows: Sequence[Figure]) -> None:
    rows = sorted(rows, key=lambda row: row.params["waves"])
    look = style.looks(["waves"])["waves"].keywords() | {"linestyle": ""}  # between them lies a sawtooth, no line
    places = [row.params["waves"] for row in rows]
    axes.plot(places, [row.gbps or float("nan") for row in rows], **look)
    for row in rows:
        if row.gbps:
            where: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": style.SMALL}
            axes.annotate(show_rate(row.gbps), (row.params["waves"], row.gbps), (0, 6), **where)
    curves.roof_over(axes, rows, places)
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.1f}"))
    axes.tick_params(axis="x", labelsize=style.SMALL)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("GB/s")
    axes.set_xlabel("waves: blocks of a grid-stride loop over those that fit at once")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
