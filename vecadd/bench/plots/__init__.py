"""Pictures of sweeps that have not moved into their files yet."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module

from vecadd.bench.plot import Picture
from vecadd.bench.plots import bars, roofline, stages, timeline, transfer
from vecadd.bench.run import Sweep
from vecadd.figures import Figure, Run

Draw = Callable[..., None]  # (drawing, meta, rows, *, recorded)


def old_pictures(run: Run, sweep: Sweep) -> dict[str, Picture]:
    """The pictures of a sweep by name."""
    found: dict[str, Picture] = {}

    def add(name: str, draw: Draw, rows: Sequence[Figure]) -> None:
        recorded = run.path is not None
        found[name] = Picture(name, "", lambda drawing: draw(drawing, run.meta, rows, recorded=recorded))

    rows = list(run.figures)
    draw = import_module(str(sweep.plot)).draw
    for name, some in _parts(sweep.name, sweep.pictured(rows), sweep.by_dtype):
        if any(row.seconds for row in some):
            add(name, draw, some)
        if draw is bars.draw and bars.spans_decades(some):
            add(f"{name}-log", partial(draw, logarithmic=True), some)
    if sweep.name == "transfer":
        for name, some in _parts("transfer-size", transfer.over_size(rows), True):
            if some:
                add(name, transfer.draw_over_size, some)
        if parts := stages.chosen(rows):
            add("stages", stages.draw, parts)
        for number, page in enumerate(timeline.pages(rows), 1):
            add("timeline" if number == 1 else f"timeline-{number}", timeline.draw, page)
    if sweep.roofline and (several := roofline.chosen(rows, sweep.name)):
        add(sweep.roofline, roofline.draw, several)
    return found


def _parts(sweep: str, rows: Sequence[Figure], by_dtype: bool) -> Iterable[tuple[str, list[Figure]]]:
    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    if not by_dtype or len(dtypes) < 2:
        return [(sweep, list(rows))]
    return [(f"{sweep}-{dtype}", [row for row in rows if row.dtype == dtype]) for dtype in dtypes]
