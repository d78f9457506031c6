"""The roofline: additions a second over additions a byte, and how far below the memory's slope each rung stays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from vecadd.bench.plots import style
from vecadd.figures import Figure
from vecadd.model.gpu import Gpu
from vecadd.tables import show_rate

LEAST = 1 << 20  # elements: below, the time is the launch's, not the memory's

_PROCESSOR = "numpy"
_BEYOND = 3  # times the largest intensity: as far as the slope is drawn
_DRAWN = 0.02  # of the limit: slower rungs are named beside the figure, or they would compress all others
_INSET = (0.53, 0.07, 0.46, 0.46)  # of the axes: under the roof, where no dot is

# The rungs that have a mark of their own; others are grey dots, most of which overlap.
_NAMED = (
    "grid_stride",
    "block_range",
    "naive",
    "coarsen4",
    "unroll2",
    "float4",
    "async_copy",
    "tuned",
    "half",
    "half2",
    "half8_pack",
    "strided",
    "divergent",
)


def chosen(rows: Iterable[Figure], sweep: str) -> list[Figure]:
    """The fastest row of each device rung and dtype, at the largest size that the rung ran at."""
    best: dict[tuple[str, str], Figure] = {}
    for row in rows:
        if row.sweep != sweep or not row.gbps or row.name in (_PROCESSOR, "add") or row.n < LEAST:
            continue
        known = best.get((row.name, row.dtype))
        if known is None or (row.n, row.gbps) > (known.n, known.gbps or 0):
            best[row.name, row.dtype] = row
    return list(best.values())


def draw(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """Both axes logarithmic; dots above each other for each number of bytes that an addition moves. Where the GPU's
    clock is known the other roof is there too, and the dots are shown larger below it."""
    figure.set_size_inches(style.WIDTH, 4.8)
    axes = figure.subplots()
    limit = max((row.limit or 0 for row in rows), default=0) or max(row.gbps or 0 for row in rows)
    # Where all are slow there is nothing else to draw.
    drawn = [row for row in rows if (row.gbps or 0) >= _DRAWN * limit] or list(rows)
    peak = _peak(meta)
    _roofs(axes, rows, limit, peak)
    _name_axes(axes)
    if peak is None:
        _dots(axes, drawn)
        _near(axes, drawn, limit)
    else:
        axes.plot(*_places(drawn), ".", color=style.GREY)
        inset = axes.inset_axes(_INSET)
        _dots(inset, drawn)
        _roofs(inset, rows, limit, None)
        _near(inset, drawn, limit)
        axes.set_xlim(left=0.9 * inset.get_xlim()[0])  # the frame of what is magnified lies inside
        axes.set_ylim(bottom=0.9 * inset.get_ylim()[0])
        axes.indicate_inset_zoom(inset, edgecolor=style.GREY)
    entries = style.legend_entries(axes) | (style.legend_entries(inset) if peak else {})
    axes.legend(entries.values(), entries, loc="center left", bbox_to_anchor=(1.01, 0.5), title=_below(rows, drawn))
    style.entitle(figure, "Roofline: every rung at the largest size that it ran at", meta, recorded=recorded)


def _peak(meta: Mapping[str, Any]) -> float | None:
    """1e9 additions of float32 a second that the GPU's cores make at most; None where the file does not know it."""
    try:
        return Gpu.of(meta["gpu"][0]).peak / 1e9
    except (IndexError, KeyError, ValueError):
        return None


def _roofs(axes: Axes, rows: Sequence[Figure], limit: float, peak: float | None) -> None:
    look: dict[str, Any] = {"color": style.BLACK, "linewidth": 2.2, "alpha": 0.55}
    left = 0.7 * min(_intensity(row) for row in rows)
    right = _BEYOND * max(_intensity(row) for row in rows) if peak is None else peak / limit
    axes.plot([left, right], [left * limit, right * limit], label=f"memory: {show_rate(limit)} GB/s,\nmeasured", **look)
    if peak is not None:
        label = f"cores: {show_rate(peak / 1e3)}e12 a second,\nin theory"
        axes.plot([right, _BEYOND * right], [peak, peak], label=label, linestyle=(0, (4, 1)), **look)


def _near(axes: Axes, rows: Sequence[Figure], limit: float) -> None:
    """The axes about the dots."""
    intensities, rates = _places(rows)
    ticks = sorted(set(intensities))
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.plain_logarithm(axes.yaxis)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"1/{1 / value:.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(0.7 * ticks[0], 1.5 * ticks[-1])
    axes.set_ylim(0.7 * min(rates), 1.3 * 1.5 * ticks[-1] * limit)


def _name_axes(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("arithmetic intensity: additions a byte that moves")
    axes.set_ylabel("1e9 additions a second")


def _below(rows: Sequence[Figure], drawn: Sequence[Figure]) -> str:
    below = [f"{row.name} {_share(row)}" for row in rows if row not in drawn]
    return "\n".join(
        ["too low to draw:", *below, "", "% of the memory's limit:"] if below else ["% of the memory's limit:"]
    )


def _intensity(row: Figure) -> float:
    """Additions a byte: 1/12 for float32, 1/16 where the sum is added to what was there."""
    return row.n / row.bytes


def _dots(axes: Axes, rows: Sequence[Figure]) -> None:
    looks = style.looks(row.name for row in rows if row.name in _NAMED)
    others = [row for row in rows if row.name not in looks]
    axes.plot(*_places(others), ".", color=style.GREY, markerfacecolor="none", label="other rungs")
    for rung, look in looks.items():
        some = [row for row in rows if row.name == rung]
        shares = sorted({_share(row) for row in some}, key=lambda text: (len(text), text))
        label = f"{rung} {' to '.join(dict.fromkeys((shares[0], shares[-1])))}"
        axes.plot(*_places(some), **(look.keywords() | {"linestyle": ""}), label=label)


def _places(rows: Sequence[Figure]) -> tuple[list[float], list[float]]:
    """Additions a byte, and 1e9 additions a second."""
    return [_intensity(row) for row in rows], [(row.gbps or 0) * _intensity(row) for row in rows]


def _share(row: Figure) -> str:
    return "" if row.fraction is None else f"{100 * row.fraction:.2g} %"
