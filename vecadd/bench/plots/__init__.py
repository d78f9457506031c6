"""Pictures of a run: a figure a sweep, the roofline, and the timeline and the stages of transfers.

Needs matplotlib: ``pip install 'vecadd[plot]'``. Other users of matplotlib in the process are not affected: pyplot
knows none of these figures, and every call restores matplotlib's settings.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from matplotlib.figure import Figure as Drawing

from vecadd.bench.plots import bars, roofline, stages, style, timeline, transfer
from vecadd.bench.sweeps import SWEEPS
from vecadd.figures import Figure, replace_file

__all__ = ["FORMATS", "figures", "save", "write"]

FORMATS = ("png", "svg")

Draw = Callable[..., None]  # (figure, meta, rows, *, recorded)


def save(meta: Mapping[str, Any], rows: Sequence[Figure], folder: Path | str, *, recorded: bool) -> list[Path]:
    """Writes each of the run's `figures` as FOLDER/NAME.png and FOLDER/NAME.svg and returns the paths, in that order.

    The same run gives the same files, byte for byte, with one version of matplotlib. ``folder`` is made where it does
    not exist. Raises OSError where it cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _write_file(figure, folder / f"{name}.{kind}", kind)
        for name, figure in figures(meta, rows, recorded=recorded).items()
        for kind in FORMATS
    ]


def write(figure: Drawing, target: Path | BinaryIO, kind: str) -> None:
    """One figure as one file of that kind, "png" or "svg"."""
    with style.applied():
        # A date would make two files of one figure.
        figure.savefig(target, format=kind, metadata={"Date": None} if kind == "svg" else None)


def figures(meta: Mapping[str, Any], rows: Sequence[Figure], *, recorded: bool) -> dict[str, Drawing]:
    """The figures of a run by name: that of the sweep, with the dtype behind it where there is one for each, and "-log"
    behind it where bars that a linear axis does not show are drawn on a logarithmic one too.

    ``recorded`` says that the rows come from a file: then the title gives the machine, the date and the commit.
    Sweeps without a timed row, and sweeps without a plot, have no figure.
    """
    return {name: draw() for name, draw in _draws(meta, rows, recorded).items()}


def figure(meta: Mapping[str, Any], rows: Sequence[Figure], name: str, *, recorded: bool) -> Drawing | None:
    """The figure of `figures` with that name, drawn alone: drawing all of the transfers' takes eight seconds."""
    draw = _draws(meta, rows, recorded).get(name)
    return draw() if draw else None


def _draws(meta: Mapping[str, Any], rows: Sequence[Figure], recorded: bool) -> dict[str, Callable[[], Drawing]]:
    """The function that draws each figure, by the figure's name."""
    drawn: dict[str, Callable[[], Drawing]] = {}
    for sweep in SWEEPS.values():
        if sweep.plot is None:
            continue
        draw = import_module(sweep.plot).draw
        timed = sweep.pictured([row for row in rows if row.sweep == sweep.name])
        for name, some in _parts(sweep.name, timed, sweep.by_dtype):
            if any(row.seconds for row in some):
                drawn[name] = partial(_drawn, draw, meta, some, recorded)
            if draw is bars.draw and bars.spans_decades(some):
                drawn[f"{name}-log"] = partial(_drawn, partial(draw, logarithmic=True), meta, some, recorded)
    for name, some in _parts(
        "transfer-size", transfer.over_size([row for row in rows if row.sweep == "transfer"]), True
    ):
        if some:
            drawn[name] = partial(_drawn, transfer.draw_over_size, meta, some, recorded)
    if parts := stages.chosen(rows):
        drawn["stages"] = partial(_drawn, stages.draw, meta, parts, recorded)
    for number, page in enumerate(timeline.pages(rows), 1):
        drawn["timeline" if number == 1 else f"timeline-{number}"] = partial(
            _drawn, timeline.draw, meta, page, recorded
        )
    for sweep in SWEEPS.values():
        if sweep.roofline and (several := roofline.chosen(rows, sweep.name)):
            drawn[sweep.roofline] = partial(_drawn, roofline.draw, meta, several, recorded)
    return drawn


def _write_file(figure: Drawing, path: Path, kind: str) -> Path:
    drawn = BytesIO()
    write(figure, drawn, kind)
    replace_file(path, drawn.getvalue())
    return path


def _parts(sweep: str, rows: Sequence[Figure], by_dtype: bool) -> Iterable[tuple[str, list[Figure]]]:
    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    if not by_dtype or len(dtypes) < 2:
        return [(sweep, list(rows))]
    return [(f"{sweep}-{dtype}", [row for row in rows if row.dtype == dtype]) for dtype in dtypes]


def _drawn(draw: Draw, meta: Mapping[str, Any], rows: Sequence[Figure], recorded: bool) -> Drawing:
    with style.applied():
        figure = Drawing(layout="constrained")
        draw(figure, meta, rows, recorded=recorded)
    return figure
