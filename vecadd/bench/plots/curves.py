"""Rates over size: one line a rung, under the limit that the run found."""

from collections.abc import Iterable, Mapping, Sequence
from math import nan
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from vecadd.bench.plots import style
from vecadd.figures import Figure
from vecadd.tables import show_bytes, show_rate

MOST_LINES = 8  # a panel: more of them cannot be told apart

_SUBJECTS = {
    "host": "Bandwidth over size: NumPy arrays, added by the processor",
    "size": "Bandwidth over size: device arrays, added by a kernel",
}


def draw(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """A panel for each dtype, two and more where it has more lines than a panel can hold."""
    panels = [
        (dtype, labels)
        for dtype in dict.fromkeys(row.dtype for row in rows)
        for labels in in_portions(by_label(row for row in rows if row.dtype == dtype))
    ]
    figure.set_size_inches(style.WIDTH, 0.6 + 3.1 * len(panels))
    drawn = figure.subplots(len(panels), squeeze=False, sharex=True, sharey=True)
    looks = style.looks(row.label for row in rows)
    host = rows[0].sweep == "host"
    for axes, (dtype, labels) in zip(drawn[:, 0], panels, strict=True):
        lines = {label: line for label, line in by_label(rows).items() if label in labels}
        lines = {label: [row for row in line if row.dtype == dtype] for label, line in lines.items()}
        rates(axes, lines, looks)
        roof(axes, [row for line in lines.values() for row in line])
        if host:  # the caches are ten times as fast as the memory
            axes.set_yscale("log")
            style.plain_logarithm(axes.yaxis)
            _mark_cache(axes, meta, lines)
        else:
            axes.set_ylim(bottom=0)
        axes.set_title(dtype)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    style.share_x(drawn)
    style.entitle(figure, _SUBJECTS[rows[0].sweep], meta, recorded=recorded, host=host)


def by_label(rows: Iterable[Figure]) -> dict[str, list[Figure]]:
    """The rows of each line, in the order of the rungs, smallest first."""
    lines: dict[str, list[Figure]] = {}
    for row in rows:
        lines.setdefault(row.label, []).append(row)
    return {label: sorted(line, key=lambda row: row.n) for label, line in lines.items()}


def in_portions(labels: Iterable[str], most: int = MOST_LINES) -> list[list[str]]:
    """The labels in the fewest groups of at most ``most``, all of about the same size."""
    names = list(labels)
    groups = -(-len(names) // most)
    size = -(-len(names) // max(groups, 1))
    return [names[begin : begin + size] for begin in range(0, len(names), size)] if names else []


def rates(axes: Axes, lines: Mapping[str, Sequence[Figure]], looks: Mapping[str, style.Look]) -> None:
    """GB/s over n. A row that failed leaves a gap in its line."""
    for label, line in lines.items():
        values = [nan if row.gbps is None else row.gbps for row in line]
        axes.plot([row.n for row in line], values, label=label, **looks[label].keywords())
    style.size_axis(axes, [row.n for line in lines.values() for row in line])
    axes.set_ylabel("GB/s")


def roof(axes: Axes, rows: Sequence[Figure]) -> None:
    """The limit over n: one line where it is the same at every size, else as it was found at each."""
    roof_over(axes, rows, [row.n for row in rows])


def roof_over(axes: Axes, rows: Sequence[Figure], places: Sequence[float]) -> None:
    """The limit of each row at its place along x."""
    limits = {place: row.limit for place, row in zip(places, rows, strict=True) if row.limit}
    if not limits:
        return
    values = list(limits.values())
    same = max(values) - min(values) < 1e-9 * max(values)
    label = f"limit, {show_rate(values[0])} GB/s" if same else "limit, at each size"
    ordered = sorted(limits)
    axes.plot(
        ordered,
        [limits[place] for place in ordered],
        color=style.BLACK,
        linewidth=2.2,
        alpha=0.55,
        label=label,
        zorder=1.5,
    )


def _mark_cache(axes: Axes, meta: Mapping[str, Any], lines: Mapping[str, Sequence[Figure]]) -> None:
    """Marks the size from which the three arrays do not fit into the processor's last cache."""
    rows = [row for line in lines.values() for row in line]
    elements = (meta["cpu"].get("l3") or 0) * rows[0].n / rows[0].bytes
    if min(row.n for row in rows) < elements < max(row.n for row in rows):
        label = f"three arrays fill\nL3, {show_bytes(meta['cpu']['l3'])}"
        axes.axvline(elements, color=style.GREY, linewidth=1, linestyle=(0, (2, 2)), label=label)
