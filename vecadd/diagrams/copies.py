"""Two copy engines and the multiprocessors at work: in one part, one after the other; in four, at the same time."""

from matplotlib.figure import Figure

from vecadd.bench.plot import step_style
from vecadd.diagrams.canvas import Canvas

UP, ADD, DOWN = 100.0, 10.0, 100.0  # ms: founding document 004's example
ENGINES = (("to_device", "copy engine, up"), ("kernel", "multiprocessors"), ("to_host", "copy engine, down"))

Span = tuple[float, float]


def schedule(parts: int) -> dict[str, list[Span]]:
    """(begin, end) in ms of each part on each engine: a part waits for its own step before and for its engine."""
    spans: dict[str, list[Span]] = {engine: [] for engine, _ in ENGINES}
    for _ in range(parts):
        ready = 0.0
        for (engine, _), whole in zip(ENGINES, (UP, ADD, DOWN), strict=True):
            begin = max(ready, spans[engine][-1][1] if spans[engine] else 0.0)
            ready = begin + whole / parts
            spans[engine].append((begin, ready))
    return spans


def end(parts: int) -> float:
    """When the last part is back, in ms."""
    return schedule(parts)["to_host"][-1][1]


TEXT = (
    "Two timelines with a lane for the copy engine that goes up, one for the multiprocessors and one for the copy "
    f"engine that comes down. In one part, 100 ms up, 10 ms of adding and 100 ms down follow each other: {end(1):g} "
    f"ms. In four parts a part comes down while the next goes up: {end(4):g} ms, of which only the first part's way "
    "to the GPU and the last one's way back stand alone."
)


def figure() -> Figure:
    """One part above, four parts below, on one scale."""
    sheet = Canvas(2.6)
    left, scale = 1.5, 5.0 / (UP + ADD + DOWN)  # inches a ms
    for top, parts in ((0.1, 1), (1.4, 4)):
        spans = schedule(parts)
        sheet.words(left, top + 0.08, f"{parts} part{'s' * (parts > 1)}: {end(parts):g} ms")
        for lane, (engine, name) in enumerate(ENGINES):
            y = top + 0.25 + 0.3 * lane
            sheet.words(left - 0.1, y + 0.12, name, align="right", size=7)
            for begin, finish in spans[engine]:
                shown = step_style(engine)
                sheet.box(
                    left + scale * begin,
                    y,
                    scale * (finish - begin),
                    0.24,
                    fill=shown["facecolor"],
                    hatch=shown["hatch"],
                )
    return sheet.figure
