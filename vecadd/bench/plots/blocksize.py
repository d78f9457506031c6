"""Rates over threads a block, and over how many waves the blocks make."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter, ScalarFormatter

from vecadd.bench.axes import show_size
from vecadd.bench.plots import curves, style
from vecadd.bench.results import Row
from vecadd.bench.show import show_rate

ADVISED = 0.75  # occupancy, by founding document 002


def draw(figure: Figure, meta: Mapping[str, Any], rows: Sequence[Row], *, recorded: bool) -> None:
    """GB/s over block size above occupancy over block size, and GB/s over waves below; of one dtype, at the
    largest n."""
    rows = [row for row in rows if row.n == max(row.n for row in rows)]
    by_waves = [row for row in rows if row.rung == "waves" and row.params.get("waves")]
    by_block = [row for row in rows if row.rung != "waves" and row.gbps]
    heights = [3.4] * bool(by_block) + [1.5] * bool(by_block) + [2.2] * bool(by_waves)
    figure.set_size_inches(style.WIDTH, 0.6 + sum(heights))
    panels = list(figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0])
    if by_block:
        _blocks(panels.pop(0), panels.pop(0), by_block)
    if by_waves:
        _waves(panels.pop(0), by_waves)
    subject = f"Block size and waves, {rows[0].dtype}, {show_size(rows[0].n)} elements"
    style.entitle(figure, subject, meta, recorded=recorded)


def _blocks(rates: Axes, occupancy: Axes, rows: Sequence[Row]) -> None:
    looks = style.looks(row.rung for row in rows)
    for rung, look in looks.items():
        line = sorted((row for row in rows if row.rung == rung), key=lambda row: row.params["block"])
        blocks = [row.params["block"] for row in line]
        values = [row.gbps or 0.0 for row in line]
        best = max(range(len(line)), key=values.__getitem__)
        label = f"{rung}, best at {blocks[best]}"
        if (most := line[best].params.get("occupancy")) is not None:
            label += f" ({100 * most:.0f} % occupied)"
        rates.plot(blocks, values, label=label, **look.keywords())
        rates.plot(blocks[best], values[best], "o", markersize=10, markerfacecolor="none", color=look.color)
        known = [row for row in line if row.params.get("occupancy") is not None]
        occupancy.plot(
            [row.params["block"] for row in known], [row.params["occupancy"] for row in known], **look.keywords()
        )
    curves.roof_over(rates, rows, [row.params["block"] for row in rows])
    for axes in (rates, occupancy):
        _block_axis(axes, rows)
    rates.set_ylabel("GB/s")
    rates.set_ylim(bottom=0)
    rates.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), title="ring: the fastest block")
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


def _block_axis(axes: Axes, rows: Sequence[Row]) -> None:
    blocks = sorted({int(row.params["block"]) for row in rows})
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([block for block in blocks if block & (block - 1) == 0] or blocks))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())


def _waves(axes: Axes, rows: Sequence[Row]) -> None:
    rows = sorted(rows, key=lambda row: row.params["waves"])
    look = style.looks(["waves"])["waves"]
    axes.plot([row.params["waves"] for row in rows], [row.gbps or float("nan") for row in rows], **look.keywords())
    for row in rows:
        if row.gbps:
            text = f"{show_rate(row.gbps)}"
            axes.annotate(text, (row.params["waves"], row.gbps), (0, 5), textcoords="offset points", ha="center")
    curves.roof_over(axes, rows, [row.params["waves"] for row in rows])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("GB/s")
    axes.set_xlabel("waves: blocks of a grid-stride loop over those that fit at once")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
