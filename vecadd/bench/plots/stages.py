"""The shares of the kernel and of the copies in the time: founding document 004's stages."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from vecadd.bench.axes import show_size
from vecadd.bench.plots import style
from vecadd.bench.plots.timeline import look
from vecadd.bench.results import Row
from vecadd.bench.show import show_seconds

BAR = 0.3  # inches of height
_KINDS = ("to_device", "kernel", "to_host")
_LEAST = 0.08  # of the width: a part that is narrower has no room for its time


def chosen(rows: Iterable[Row]) -> list[Row]:
    """The rows of the stages, in the document's order."""
    return [row for row in rows if "stage" in row.params and row.seconds and any(row.params["stages"].values())]


def draw(figure: Figure, meta: Mapping[str, Any], rows: Sequence[Row], *, recorded: bool) -> None:
    """A bar for each stage, all of one length, because the times differ a thousandfold; behind it the time of the whole
    run, which is less than the sum of its parts where they overlap."""
    figure.set_size_inches(style.WIDTH, 1.5 + BAR * len(rows))
    axes = figure.subplots()
    for place, row in enumerate(rows):
        parts = {kind: row.params["stages"][kind] for kind in _KINDS}
        left, whole = 0.0, sum(parts.values())
        for kind, seconds in parts.items():
            share = seconds / whole
            label = kind if place == 0 else None
            axes.barh(place, share, left=left, height=0.8, label=label, **look(kind))
            if share >= _LEAST:
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
                middle = left + share / 2
                text = show_seconds(seconds)
                axes.annotate(text, (middle, place), ha="center", va="center", fontsize=style.SMALL, bbox=box)
            left += share
        text = f" {show_seconds(row.seconds or 0)} in all, kernel {100 * parts['kernel'] / whole:.1f} %"
        axes.annotate(text, (1, place), va="center", fontsize=style.SMALL)
    axes.set_yticks(range(len(rows)), [str(row.params["stage"]) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.42)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel("share of the copies and the kernel together")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    figure.legend(loc="outside lower center", ncols=len(_KINDS))
    subject = f"The stages of document 004, {rows[0].dtype}, {show_size(rows[0].n)} elements"
    style.entitle(figure, subject, meta, recorded=recorded)
