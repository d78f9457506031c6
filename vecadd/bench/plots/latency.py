"""Many small adds: the cost of one by each way to launch it, and the size from which the ways no longer differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from vecadd.bench.plots import style
from vecadd.bench.tables.latency import chain
from vecadd.figures import Figure
from vecadd.tables import show_bytes

PLAIN = "launch_loop"  # what the others are compared with
FADED = 1.05  # a smaller gain does not count

_KINDS = {0: "independent adds", 1: "a chain: each add needs the one before"}


def draw(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """A column for each kind of set: time per add above the gain over plain launches, both over the size of one add."""
    kinds = [kind for kind in _KINDS if any(chain(row) == kind for row in rows)]
    figure.set_size_inches(0.6 + 3.6 * len(kinds), 5.6)
    panels = figure.subplots(2, len(kinds), squeeze=False, sharex=True, sharey="row", height_ratios=(3, 2))
    looks = style.looks(row.name for row in rows)
    handles: dict[str, Any] = {}
    for column, kind in enumerate(kinds):
        some = [row for row in rows if chain(row) == kind and row.seconds]
        times, gains = panels[:, column]
        for rung, look in looks.items():
            line = sorted((row for row in some if row.name == rung), key=lambda row: row.n)
            if line:
                times.plot([_size(row) for row in line], [_each(row) for row in line], label=rung, **look.keywords())
                _gains(gains, line, some, look)
        faded = fades(some)
        _mark(times, gains, faded)
        _axes(times, gains, some)
        times.set_title(_title(kind, faded))
        if column:
            times.set_ylabel("")
            gains.set_ylabel("")
        handles |= style.legend_entries(times)
    figure.legend(handles=list(handles.values()), labels=list(handles), loc="outside lower center", ncols=3)
    style.entitle(figure, f"Many small adds, {rows[0].dtype}: what one costs", meta, recorded=recorded)


def fades(rows: Sequence[Figure]) -> int | None:
    """Bytes of one array from which on no rung gains 5 % over plain launches, at any larger size either; None where one
    still does at the largest size."""
    faded = None
    for n in sorted({row.n for row in rows}, reverse=True):
        here = [row for row in rows if row.n == n and row.seconds]
        plain = [_each(row) for row in here if row.name == PLAIN]
        others = [_each(row) for row in here if row.name != PLAIN]
        if not plain or not others:
            continue
        if plain[0] / min(others) >= FADED:
            break
        faded = _size(here[0])
    return faded


def _gains(axes: Axes, line: Sequence[Figure], rows: Sequence[Figure], look: style.Look) -> None:
    plain = {row.n: _each(row) for row in rows if row.name == PLAIN}
    both = [row for row in line if row.n in plain]
    axes.plot([_size(row) for row in both], [plain[row.n] / _each(row) for row in both], **look.keywords())


def _mark(times: Axes, gains: Axes, size: int | None) -> None:
    if size is None:
        return
    for axes in (times, gains):
        axes.axvline(size, color=style.GREY, linewidth=1, linestyle=(0, (2, 2)))


def _title(kind: int, faded: int | None) -> str:
    found = "something gains 5 % at every size" if faded is None else f"no gain of 5 % from {show_bytes(faded)} on"
    return f"{_KINDS[kind]}\n{found}"


def _axes(times: Axes, gains: Axes, rows: Sequence[Figure]) -> None:
    exponents = [_size(row).bit_length() - 1 for row in rows]
    style.powers(gains, range(min(exponents), max(exponents) + 1), show_bytes)
    gains.tick_params(axis="x", labelrotation=45)
    gains.set_xlabel("bytes of each of the three arrays of one add")
    gains.set_ylabel(f"gain over {PLAIN}")
    gains.set_yscale("log")
    style.plain_logarithm(gains.yaxis)
    style.seconds_axis(times, "time per add")


def _size(row: Figure) -> int:
    return row.n * style.itemsize(row.dtype)


def _each(row: Figure) -> float:
    return float(row.params["seconds_per_add"])
