"""The roofline: additions a second over additions a byte, and how far below the memory's slope each rung stays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from vecadd.bench.plots import style
from vecadd.bench.results import Row

SWEEPS = ("ladder", "precision", "size")  # those of device memory
LEAST = 1 << 20  # elements: below, a launch is measured and not the memory

_PROCESSOR = "numpy"
_BEYOND = 3  # times the largest intensity: as far as the slope is drawn
_DRAWN = 0.02  # of the limit: rungs below are named under the figure, for they would squash all others

# The rungs that have a mark of their own; others are grey dots, of which most lie on each other.
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


def chosen(rows: Iterable[Row]) -> list[Row]:
    """Of each rung on the device and each dtype the fastest row at the largest size that it ran at."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row.sweep not in SWEEPS or not row.gbps or row.rung in (_PROCESSOR, "add") or row.n < LEAST:
            continue
        known = best.get((row.rung, row.dtype))
        if known is None or (row.n, row.gbps) > (known.n, known.gbps or 0):
            best[row.rung, row.dtype] = row
    return list(best.values())


def draw(figure: Figure, meta: Mapping[str, Any], rows: Sequence[Row], *, recorded: bool) -> None:
    """Both axes logarithmic; dots above each other for each number of bytes that an addition moves."""
    figure.set_size_inches(style.WIDTH, 4.4)
    axes = figure.subplots()
    limit = max((row.limit_gbps or 0 for row in rows), default=0) or max(row.gbps or 0 for row in rows)
    left = 0.7 * min(_intensity(row) for row in rows)
    label = f"limit of the memory,\n{style.digits(limit)} GB/s, measured"
    right = _BEYOND * max(_intensity(row) for row in rows)
    axes.plot([left, right], [left * limit, right * limit], color=style.BLACK, linewidth=2.2, alpha=0.55, label=label)
    drawn = [row for row in rows if (row.gbps or 0) >= _DRAWN * limit]
    _dots(axes, drawn)
    _axes(axes, drawn)
    axes.set_ylim(0.5 * min(_places(drawn)[1]), 1.3 * right * limit)
    below = [f"{row.rung} {_share(row)}" for row in rows if row not in drawn]
    if below:
        axes.annotate(
            "\n".join(["far below:", *below]), (0.99, 0.02), xycoords="axes fraction", ha="right", fontsize=style.SMALL
        )
    style.entitle(figure, "Roofline: every rung at the largest size that it ran at", meta, recorded=recorded)


def _intensity(row: Row) -> float:
    """Additions a byte: 1/12 for float32, 1/16 where the sum is added to what was there."""
    return row.n / row.bytes


def _dots(axes: Axes, rows: Sequence[Row]) -> None:
    looks = style.looks(row.rung for row in rows if row.rung in _NAMED)
    others = [row for row in rows if row.rung not in looks]
    axes.plot(*_places(others), ".", color=style.GREY, markerfacecolor="none", label="other rungs")
    for rung, look in looks.items():
        some = [row for row in rows if row.rung == rung]
        shares = sorted({_share(row) for row in some}, key=lambda text: (len(text), text))
        label = f"{rung} {' to '.join(dict.fromkeys((shares[0], shares[-1])))}"
        axes.plot(*_places(some), **(look.keywords() | {"linestyle": ""}), label=label)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), title="% of the limit")


def _places(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Additions a byte, and 1e9 additions a second."""
    return [_intensity(row) for row in rows], [(row.gbps or 0) * _intensity(row) for row in rows]


def _share(row: Row) -> str:
    return "" if row.fraction is None else f"{100 * row.fraction:.2g} %"


def _axes(axes: Axes, rows: Sequence[Row]) -> None:
    ticks = sorted({_intensity(row) for row in rows} | {1 / 4})
    axes.set_xscale("log")
    axes.set_yscale("log")
    style.plain_logarithm(axes.yaxis)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"1/{1 / value:.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("arithmetic intensity: additions a byte that moves")
    axes.set_ylabel("1e9 additions a second")
