"""How long the kernel and the copies take: founding document 004's stages."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure as Drawing

from vecadd.bench.plots import style
from vecadd.bench.plots.timeline import look
from vecadd.bench.steps import KINDS, stages_of
from vecadd.figures import Figure
from vecadd.tables import show_seconds, show_size

BAR = 0.15  # inches of height
_WHOLE = "the whole run"
_LANES = (_WHOLE, *KINDS)
_PLACES = len(_LANES) + 1  # of a stage: its bars, and a gap


def chosen(rows: Iterable[Figure]) -> list[Figure]:
    """The rows of the stages whose parts are known, in the document's order."""
    return [row for row in rows if "stage" in row.params and row.seconds and any((stages_of(row) or {}).values())]


def draw(figure: Drawing, meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> None:
    """Bars for each stage, on one logarithmic scale of time: of 981 ms and 3 ms a linear one shows the first alone. The
    whole run takes less than its parts together where they overlap."""
    figure.set_size_inches(style.WIDTH, 1.3 + BAR * _PLACES * len(rows))
    axes = figure.subplots()
    times = [{_WHOLE: row.seconds or 0.0, **(stages_of(row) or {})} for row in rows]
    for stage, found in enumerate(times):
        for place, lane in enumerate(_LANES, _PLACES * stage):
            if not found[lane]:
                continue
            label = lane if stage == 0 else None
            how = {"facecolor": "white", "edgecolor": style.BLACK, "linewidth": 0.6} if lane == _WHOLE else look(lane)
            axes.barh(place, 1e3 * found[lane], height=0.9, label=label, **how)
            style.beside(axes, show_seconds(found[lane]), (1e3 * found[lane], place))
    axes.set_yticks([_PLACES * (stage + 0.5) - 1 for stage in range(len(rows))], [row.params["stage"] for row in rows])
    axes.set_ylim(_PLACES * len(rows) - 1.2, -1)
    axes.set_xscale("log")
    style.plain_logarithm(axes.xaxis, (1,))
    every = [seconds for found in times for seconds in found.values() if seconds]
    axes.set_xlim(0.4e3 * min(every), 3e3 * max(every))
    axes.set_xlabel("ms, on a logarithmic scale")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=len(_LANES))
    subject = f"The stages of document 004, {rows[0].dtype}, {show_size(rows[0].n)} elements"
    style.entitle(figure, subject, meta, recorded=recorded)
