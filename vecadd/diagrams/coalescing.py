"""Which sectors of memory the 32 loads of a warp touch, by how far apart they are."""

from matplotlib.figure import Figure

from vecadd.bench import plot
from vecadd.diagrams.canvas import Canvas
from vecadd.model.access import LINE, SECTOR
from vecadd.model.gpu import WARP

ITEM = 4  # bytes of a float32
DRAWN = 8  # lines of memory

# What a warp's threads load: the first element, and how many elements lie from one thread's to the next's.
PATTERNS = (
    ("side by side: i", 0, 1),
    ("one element off: i + 1", 1, 1),
    ("every second: 2 i", 0, 2),
    ("every eighth: 8 i", 0, 8),
)

TEXT = (
    "Memory as a row of lines of 128 bytes, each of four sectors of 32, for four ways in which a warp's 32 threads "
    "load a float32 each. Side by side they touch 4 sectors and use all of their bytes; one element off 5; every "
    "second element 8 sectors, half used; every eighth 32 sectors, an eighth used."
)


def sectors(first: int, stride: int) -> list[int]:
    """The sectors that a warp touches, when its threads load elements first, first + stride, and so on."""
    return sorted({(first + stride * lane) * ITEM // SECTOR for lane in range(WARP)})


def figure() -> Figure:
    """A strip of memory for each pattern; what is touched is filled."""
    sheet = Canvas(0.45 + 0.52 * len(PATTERNS))
    left, width = 1.65, 3.6
    of_a_line = LINE // SECTOR
    each = width / (DRAWN * of_a_line)
    for line in range(DRAWN):
        sheet.words(left + (line + 0.5) * of_a_line * each, 0.15, f"line {line}", align="center", size=6.5)
    for place, (name, first, stride) in enumerate(PATTERNS):
        y = 0.3 + 0.52 * place
        touched = sectors(first, stride)
        for sector in range(DRAWN * of_a_line):
            sheet.box(left + sector * each, y, each, 0.28, fill=plot.BLUE if sector in touched else "white")
        for line in range(DRAWN + 1):
            x = left + line * of_a_line * each
            sheet.axes.plot((x, x), (y - 0.05, y + 0.33), color=plot.BLACK, linewidth=1.6)
        sheet.words(left - 0.1, y + 0.14, name, align="right", size=7.5)
        used = WARP * ITEM / (len(touched) * SECTOR)
        sheet.words(left + width + 0.1, y + 0.14, f"{len(touched)} sectors, {100 * used:g} % used", size=7.5)
    return sheet.figure
