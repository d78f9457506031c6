"""Matrices: how fast each rung is, beside what the model expects, and how many threads the GPU holds meanwhile."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from vecadd.bench.plots import style
from vecadd.bench.tables.matrices import rate
from vecadd.figures import Figure
from vecadd.tables import show_rate

BAR = 0.26  # inches of height

_PART = 0.86  # of a panel's width: the bars; the rest is for their figures


def draw(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """A row of two panels for each shape: rates on the left, occupancy on the right, the same rungs in both."""
    shapes = list(dict.fromkeys(tuple(row.params["shape"]) for row in rows))
    cells = [[row for row in rows if tuple(row.params["shape"]) == shape] for shape in shapes]
    most = max(len(cell) for cell in cells)
    figure.set_size_inches(style.WIDTH, 0.9 + len(cells) * (0.7 + BAR * most))
    panels = figure.subplots(len(cells), 2, squeeze=False, sharey="row", width_ratios=(3, 2))
    for (rates, occupancies), shape, cell in zip(panels, shapes, cells, strict=True):
        _rates(rates, cell)
        _occupancies(occupancies, cell)
        rates.set_title(" x ".join(map(str, shape)))
        rates.set_yticks(range(len(cell)), [row.name for row in cell])
        rates.set_ylim(len(cell) - 0.4, -0.6)
        for axes in (rates, occupancies):
            axes.tick_params(axis="y", length=0)
            axes.grid(visible=False, axis="y")
    entries = style.legend_entries(panels[0][0])
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=3)
    what = "Products of matrices" if len(shapes[0]) == 3 else "A matrix transposed"
    style.entitle(figure, f"{what}, float32: rate and occupancy of each rung", meta, recorded=recorded)


def _rates(axes: Axes, rows: Sequence[Figure]) -> None:
    product = len(rows[0].params["shape"]) == 3
    found = {place: value for place, row in enumerate(rows) if (value := rate(row))}
    axes.barh(list(found), list(found.values()), height=0.7, color=style.SKY, edgecolor=style.BLACK, linewidth=0.5)
    limit = next((value for row in rows if (value := _at_limit(row))), None)
    modelled = [
        (place, found[place] * row.seconds / row.params["model_seconds"])
        for place, row in enumerate(rows)
        if place in found and row.seconds and row.params.get("model_seconds")
    ]
    expected: dict[str, Any] = {"marker": "D", "linestyle": "", "color": style.VERMILLION, "markersize": 4}
    axes.plot([x for _, x in modelled], [y for y, _ in modelled], label="expected by the model", **expected)
    if limit:
        axes.axvline(limit, color=style.BLACK, linewidth=2.2, alpha=0.55, label="limit")
    longest = max([*found.values(), *(x for _, x in modelled), limit or 0, 1e-9])
    for place, value in found.items():  # in a column of their own, clear of the model's marks
        where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
        axes.annotate(show_rate(value), (0.99, place), fontsize=style.SMALL, **where)
    axes.set_xlim(0, longest / _PART)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= longest])
    axes.set_xlabel("1e12 multiplications and additions a second" if product else "GB/s")


def _at_limit(row: Figure) -> float | None:
    """The rate at the row's limit."""
    value = rate(row)
    return value / row.fraction if value and row.fraction else None


def _occupancies(axes: Axes, rows: Sequence[Figure]) -> None:
    known = {place: 100 * row.params["occupancy"] for place, row in enumerate(rows) if "occupancy" in row.params}
    look: dict[str, Any] = {"color": style.PALE, "hatch": "///", "edgecolor": style.BLACK, "linewidth": 0.5}
    axes.barh(list(known), list(known.values()), height=0.7, **look)
    for place, value in known.items():
        style.beside(axes, f"{value:.0f} %", (value, place))
    axes.set_xlim(0, 120)
    axes.set_xticks(range(0, 101, 25))
    axes.set_xlabel("occupancy, %")
