"""Host → GPU → host: how long each rung takes beside what the model says, and rates over size."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from vecadd.bench.plots import curves, style
from vecadd.bench.sweeps.transfer import round_trips_of
from vecadd.figures import Figure
from vecadd.tables import show_rate, show_size

BAR = 0.2  # inches of height
_CURVES = 2.6  # inches of height of a panel

# By the host's memory: colour and hatch.
_MEMORIES = {
    "pageable": (style.ORANGE, "///"),
    "pinned": (style.GREEN, ""),
}
_OTHER_MEMORY = (style.SKY, "...")


def over_size(rows: Sequence[Figure]) -> list[Figure]:
    """The round trips that were made at several sizes: a line each."""
    lines = curves.by_label(round_trips_of(rows))
    return [row for line in lines.values() if len({row.n for row in line}) > 1 for row in line]


def draw(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """Bars of time at the largest size; of one dtype."""
    largest = [row for row in rows if row.n == max(row.n for row in rows)]
    figure.set_size_inches(style.WIDTH, 1.5 + BAR * len(largest))
    _times(figure.subplots(), largest)
    style.entitle(figure, f"Host to GPU to host, {rows[0].dtype}", meta, recorded=recorded)


def draw_over_size(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """Rates over size under the link's limit, in as many panels as the lines need; of one dtype."""
    lines = curves.by_label(rows)
    portions = curves.in_portions(lines)
    figure.set_size_inches(style.WIDTH, 0.6 + _CURVES * len(portions))
    panels = figure.subplots(len(portions), squeeze=False)[:, 0]
    looks = style.looks(lines)
    top = 1.05 * max(max(row.gbps or 0, row.limit or 0) for row in rows)
    for axes, labels in zip(panels, portions, strict=True):
        curves.rates(axes, {label: lines[label] for label in labels}, looks)
        curves.roof(axes, rows)
        axes.set_ylim(0, top)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    style.entitle(figure, f"Bandwidth over size: host to GPU to host, {rows[0].dtype}", meta, recorded=recorded)


def _times(axes: Axes, rows: Sequence[Figure]) -> None:
    handles: dict[str, Any] = {}
    marks: dict[str, Any] = {}
    longest = max((row.seconds for row in rows if row.seconds), default=1e-3)
    bound = next((row.bytes / row.limit / 1e9 for row in rows if row.limit), None)
    for place, row in enumerate(rows):
        if row.seconds is None or row.gbps is None:
            axes.annotate(" failed", (0, place), va="center", fontsize=style.SMALL)
            continue
        memory = row.params.get("memory", "other")
        color, hatch = _MEMORIES.get(memory, _OTHER_MEMORY)
        look: dict[str, Any] = {"facecolor": color, "hatch": hatch, "edgecolor": style.BLACK, "linewidth": 0.5}
        axes.barh(place, 1e3 * row.seconds, height=0.8, **look)
        handles.setdefault(memory, Patch(label=f"{memory} memory", **look))
        if model := row.params.get("model_seconds"):
            mark: dict[str, Any] = {"color": style.BLACK, "marker": "D", "markersize": 5, "markerfacecolor": "white"}
            axes.plot(1e3 * model, place, linestyle="", zorder=4, **mark)
            marks.setdefault("model", Line2D([], [], linestyle="", label="model: sum or slowest stage", **mark))
        share = "" if row.fraction is None else f", {100 * row.fraction:.0f} %"
        end = 1e3 * max(row.seconds, row.params.get("model_seconds") or 0, bound or 0)  # past the limit's line
        style.beside(axes, f"  {show_rate(1e3 * row.seconds)} ms, {show_rate(row.gbps)} GB/s{share}", (end, place))
    if bound:
        line = axes.axvline(1e3 * bound, color=style.BLACK, linewidth=2.2, alpha=0.55)
        line.set_label(f"limit of the link, {show_rate(1e3 * bound)} ms")
        marks["limit"] = line
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 1e3 * longest * 1.7)
    axes.set_xlabel("ms")
    axes.set_title(f"{show_size(rows[0].n)} elements: time, GB/s and % of the limit")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.legend(handles=[*handles.values(), *marks.values()], loc="center left", bbox_to_anchor=(1.01, 0.5))
