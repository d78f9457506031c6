"""The decision tree of founding document 003: how to get more bytes in flight, and when not to."""

from matplotlib.figure import Figure

from vecadd.bench import plot
from vecadd.diagrams.canvas import Canvas
from vecadd.model.advice import LARGE_TILE, SMALL_TILE

_KIB = 1024

TEXT = (
    "A tree of questions. Are there enough bytes in flight? Yes: stop. No: where shall more loads go? Into "
    "registers: load 16 bytes at a time, then unroll. Into shared memory: are the arrays aligned to 16 bytes? At 4 "
    f"or 8: asynchronous copies. At 16: asynchronous copies for tiles below {SMALL_TILE // _KIB} KiB, bulk copies "
    f"above {LARGE_TILE // _KIB} KiB, either between."
)


def figure() -> Figure:
    """Questions are white, what to do is filled."""
    sheet = Canvas(3.4)
    sheet.box(2.3, 0.1, 2.6, 0.4, "Enough bytes in flight?")
    sheet.box(0.1, 1.0, 1.3, 0.4, "Stop.", fill=plot.PALE)
    sheet.box(3.4, 1.0, 2.4, 0.4, "Where shall more loads go?")
    _branch(sheet, (2.9, 0.5), (0.75, 1.0), "yes")
    _branch(sheet, (4.3, 0.5), (4.6, 1.0), "no")
    sheet.box(0.9, 1.9, 2.3, 0.4, "16-byte loads, then unroll", fill=plot.PALE)
    sheet.box(4.6, 1.9, 2.4, 0.4, "Aligned to 16 bytes?")
    _branch(sheet, (4.0, 1.4), (2.05, 1.9), "registers")
    _branch(sheet, (5.2, 1.4), (5.8, 1.9), "shared memory")
    sheet.box(1.9, 2.8, 1.9, 0.5, "asynchronous copy\nof 4 or 8 bytes", fill=plot.PALE)
    small, large = SMALL_TILE // _KIB, LARGE_TILE // _KIB
    words = f"tile below {small} KiB: asynchronous copy\nabove {large} KiB: bulk copy"
    sheet.box(4.4, 2.8, 2.7, 0.5, words, fill=plot.PALE)
    _branch(sheet, (5.1, 2.3), (2.85, 2.8), "no: 4 or 8")
    _branch(sheet, (6.2, 2.3), (6.0, 2.8), "yes")
    return sheet.figure


def _branch(sheet: Canvas, begin: tuple[float, float], end: tuple[float, float], answer: str) -> None:
    """An arrow with the answer beside its middle, on the outer side."""
    sheet.arrow(begin, end)
    left = end[0] < begin[0]
    x, y = (begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2
    sheet.words(x + (-0.12 if left else 0.12), y - 0.07, answer, align="right" if left else "left", size=7)
