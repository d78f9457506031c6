"""Drawings that explain: how a GPU is built and how it runs a kernel. They show no measurement.

    >>> from vecadd import diagrams
    >>> sorted(diagrams.DIAGRAMS)[:3]
    ['banks', 'coalescing', 'compiler']

Needs matplotlib: ``pip install 'vecadd[plot]'``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from vecadd._command import unknown
from vecadd.bench import plot
from vecadd.bench.plot import step_style
from vecadd.model.kernels import LINE, SECTOR
from vecadd.model.theory import WARP

# What all diagrams are drawn with: boxes, words and arrows on a sheet measured in inches, y downwards.

TEXT_SIZE = 8  # points


class Canvas:
    """A sheet of `plot.WIDTH` by ``height`` inches."""

    def __init__(self, height: float) -> None:
        self.figure = Figure(figsize=(plot.WIDTH, height))
        self.axes: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, plot.WIDTH)
        self.axes.set_ylim(height, 0)
        self.axes.set_axis_off()

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        words: str = "",
        *,
        fill: str = "white",
        hatch: str = "",
        size: float = TEXT_SIZE,
        mono: bool = False,
    ) -> None:
        """A box from its upper left corner, with words in its middle."""
        look: dict[str, Any] = {"facecolor": fill, "hatch": hatch, "edgecolor": plot.BLACK, "linewidth": 0.7}
        self.axes.add_patch(Rectangle((x, y), width, height, **look))
        if words:
            self.words(x + width / 2, y + height / 2, words, align="center", size=size, mono=mono)

    def words(
        self, x: float, y: float, text: str, *, align: str = "left", size: float = TEXT_SIZE, mono: bool = False
    ) -> None:
        """Words beside (x, y), their middle at that height; ``size`` in points, ``mono`` for code."""
        how: dict[str, Any] = {"ha": align, "va": "center"} | ({"family": "monospace", "ma": "left"} if mono else {})
        self.axes.text(x, y, text, fontsize=size, linespacing=1.35, **how)

    def arrow(self, begin: tuple[float, float], end: tuple[float, float], *, both: bool = False) -> None:
        """An arrow, or one with two heads."""
        look: dict[str, Any] = {"mutation_scale": 9, "linewidth": 1, "color": plot.BLACK, "shrinkA": 0, "shrinkB": 0}
        self.axes.add_patch(FancyArrowPatch(begin, end, arrowstyle="<|-|>" if both else "-|>", **look))

    def line(self, begin: tuple[float, float], end: tuple[float, float]) -> None:
        """A thin line: from a thing to the same thing magnified."""
        self.axes.plot(*zip(begin, end, strict=True), color=plot.GREY, linewidth=0.7, linestyle=(0, (2, 2)))


# A grid, its blocks, a block's warps, a warp's threads, and which element each thread adds.

BLOCK, NAMED = 256, 5  # NAMED: the block and the warp that are magnified

THREADS_TEXT = (
    "A grid is a row of blocks. Block 5, magnified, is 256 threads in 8 warps. Its warp 5, magnified, is 32 threads"
    f" side by side; they add the 32 neighbouring elements {NAMED * BLOCK + NAMED * WARP} to "
    f"{NAMED * BLOCK + (NAMED + 1) * WARP - 1}: blockIdx.x * blockDim.x + threadIdx.x."
)


def draw_threads() -> Figure:
    """Three rows, each of which magnifies a part of the one above."""
    sheet = Canvas(3.1)
    left, width = 1.0, 6.0
    blocks = width / 9
    sheet.words(0.1, 0.45, "grid")
    for number in range(9):
        named = number < 8
        words = f"block {number}" if named else "…"
        sheet.box(
            left + number * blocks, 0.3, blocks, 0.3, words, fill=plot.SKY if number == NAMED else "white", size=7
        )
    warps = width / 8
    sheet.line((left + NAMED * blocks, 0.6), (left, 1.1))
    sheet.line((left + (NAMED + 1) * blocks, 0.6), (left + width, 1.1))
    sheet.words(0.1, 1.25, "one block,\n256 threads")
    for number in range(8):
        fill = plot.ORANGE if number == NAMED else "white"
        sheet.box(left + number * warps, 1.1, warps, 0.3, f"warp {number}", fill=fill, size=7)
    sheet.line((left + NAMED * warps, 1.4), (left, 1.9))
    sheet.line((left + (NAMED + 1) * warps, 1.4), (left + width, 1.9))
    sheet.words(0.1, 2.05, "one warp,\n32 threads")
    first = NAMED * BLOCK + NAMED * WARP
    for number in range(WARP):
        sheet.box(left + number * width / WARP, 1.9, width / WARP, 0.3, fill=plot.PALE if number % 2 else "white")
    sheet.words(left, 2.42, f"element {first}")
    sheet.words(left + width, 2.42, f"element {first + WARP - 1}", align="right")
    sheet.words(left + width / 2, 2.42, "one instruction for all 32", align="center")
    formula = f"i = blockIdx.x * blockDim.x + threadIdx.x = {NAMED} * {BLOCK} + ({NAMED} * {WARP} + lane)"
    sheet.words(left + width / 2, 2.82, formula, align="center", mono=True, size=7.5)
    return sheet.figure


# Where things are: the host's memory, the link and its copy engines, the GPU's memory, its L2, its multiprocessors.

GPU_TEXT = (
    "On the left the host: its processor and its memory. A link, PCIe, leads to the GPU on the right; one copy "
    "engine works it upwards, another downwards, at the same time. In the GPU, from the bottom: device memory, the "
    "L2 cache that all share, and a row of multiprocessors, SM 0 to SM 131 of an H200. A magnified multiprocessor "
    "has 4 schedulers, 32 lanes to each, registers, and memory that serves as L1 cache and as shared memory."
)


def draw_gpu() -> Figure:
    """The host on the left, the GPU on the right."""
    sheet = Canvas(4.1)
    sheet.words(0.75, 0.15, "host", align="center")
    sheet.box(0.1, 0.3, 1.3, 3.65)
    sheet.box(0.25, 0.5, 1.0, 1.0, "processor", fill=plot.PALE)
    sheet.box(0.25, 2.9, 1.0, 0.9, "memory\n(pageable,\npage-locked)", size=7)
    sheet.words(2.1, 3.03, "copy engine, up", align="center", size=7)
    sheet.words(2.1, 3.48, "copy engine, down", align="center", size=7)
    sheet.words(2.1, 3.8, "PCIe link", align="center", size=7)
    sheet.words(4.9, 0.15, "GPU (an H200's numbers)", align="center")
    sheet.box(2.8, 0.3, 4.3, 3.65)
    sheet.box(3.0, 2.95, 3.9, 0.85, "device memory, 141 GB", fill=plot.SKY)
    sheet.box(3.0, 2.25, 3.9, 0.4, "L2 cache, shared by all", fill=plot.PALE)
    sheet.arrow((0.75, 1.5), (0.75, 2.9), both=True)
    sheet.arrow((1.25, 3.15), (3.0, 3.15))
    sheet.arrow((3.0, 3.6), (1.25, 3.6))
    sheet.arrow((4.95, 2.65), (4.95, 2.95), both=True)
    for number, name in enumerate(("SM 0", "SM 1", "…", "SM 131")):
        x = 5.05 + number * 0.48
        sheet.box(x, 0.5, 0.42, 1.45, name, size=6.5, fill=plot.ORANGE if number == 0 else "white")
        sheet.arrow((x + 0.21, 1.95), (x + 0.21, 2.25), both=True)
    sheet.box(3.0, 0.5, 1.8, 1.45)
    sheet.words(3.9, 0.62, "SM: a multiprocessor", align="center", size=7)
    for number in range(4):
        sheet.box(3.08 + number * 0.42, 0.75, 0.38, 0.44, "32\nlanes", size=6.5, fill=plot.PALE)
    sheet.box(3.08, 1.25, 1.64, 0.28, "registers, 256 KiB", size=7)
    sheet.box(3.08, 1.58, 1.64, 0.3, "L1 / shared, 256 KiB", size=7)
    sheet.line((4.8, 0.5), (5.05, 0.5))
    sheet.line((4.8, 1.95), (5.05, 1.95))
    return sheet.figure


# Which sectors of memory the 32 loads of a warp touch, by how far apart they are.

ITEM = 4  # bytes of a float32
DRAWN = 8  # lines of memory

# What a warp's threads load: the first element, and how many elements it is from one thread's to the next's.
PATTERNS = (
    ("side by side: i", 0, 1),
    ("one element off: i + 1", 1, 1),
    ("every second: 2 i", 0, 2),
    ("every eighth: 8 i", 0, 8),
)

COALESCING_TEXT = (
    "Memory as a row of lines of 128 bytes, each of four sectors of 32, for four ways in which a warp's 32 threads "
    "load a float32 each. Side by side they touch 4 sectors and use all of their bytes; one element off 5; every "
    "second element 8 sectors, half used; every eighth 32 sectors, an eighth used."
)


def sectors(first: int, stride: int) -> list[int]:
    """The sectors that a warp touches, when its threads load elements first, first + stride, and so on."""
    return sorted({(first + stride * lane) * ITEM // SECTOR for lane in range(WARP)})


def draw_coalescing() -> Figure:
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


# Two copy engines and the multiprocessors at work: in one part, one after the other; in four, at the same time.

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


COPIES_TEXT = (
    "Two timelines with a lane for the copy engine that goes up, one for the multiprocessors and one for the copy "
    f"engine that comes down. In one part, 100 ms up, 10 ms of adding and 100 ms down follow each other: {end(1):g} "
    f"ms. In four parts a part comes down while the next goes up: {end(4):g} ms, of which only the first part's way "
    "to the GPU and the last one's way back overlap nothing."
)


def draw_copies() -> Figure:
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


# From CUDA C++ to what a GPU executes: nvcc, PTX, SASS, and the driver.

CUDA = "c[i] = a[i] + b[i];"
# What nvcc 13 makes of it for compute capability 9.0; the descriptors before the addresses of SASS are left out.
PTX = (
    "ld.global.f32 %f1, [%rd12];",
    "ld.global.f32 %f2, [%rd10];",
    "add.f32 %f3, %f2, %f1;",
    "st.global.f32 [%rd14], %f3;",
)
SASS = ("LDG.E R5, [R4.64]", "LDG.E R2, [R2.64]", "FADD R9, R2, R5", "STG.E [R6.64], R9")

COMPILER_TEXT = (
    "Three boxes from left to right. CUDA C++, one line: c[i] = a[i] + b[i]. nvcc's first half turns it into PTX, "
    "an assembly language that a driver compiles for later GPUs: two ld.global.f32, add.f32, st.global.f32. Its second "
    "half, ptxas, turns PTX into SASS, the instructions of one kind of GPU: two LDG.E, FADD, STG.E. Below: the file "
    "has both; the driver takes SASS that fits the GPU, else it compiles the PTX at the kernel's first use."
)


def draw_compiler() -> Figure:
    """The same addition in three languages, and who translates."""
    sheet = Canvas(2.7)
    for x, width, name, lines in (
        (0.1, 1.7, "CUDA C++", (CUDA,)),
        (2.45, 2.3, "PTX: for GPUs to come", PTX),
        (5.4, 1.7, "SASS: for this GPU", SASS),
    ):
        sheet.words(x + width / 2, 0.15, name, align="center")
        sheet.box(x, 0.3, width, 0.95, "\n".join(lines), mono=True, size=6.5, fill=plot.PALE)
    sheet.arrow((1.8, 0.78), (2.45, 0.78))
    sheet.words(2.12, 0.62, "nvcc", align="center", size=7)
    sheet.arrow((4.75, 0.78), (5.4, 0.78))
    sheet.words(5.07, 0.62, "ptxas", align="center", size=7)
    sheet.box(2.45, 1.75, 4.65, 0.34, "the program or the .so file has both", size=7.5)
    sheet.arrow((3.6, 1.25), (3.6, 1.75))
    sheet.arrow((6.25, 1.25), (6.25, 1.75))
    sheet.words(
        4.78, 2.45, "the driver takes SASS that fits the GPU; without it, it compiles the PTX now", align="center"
    )
    sheet.arrow((4.78, 2.09), (4.78, 2.35))
    return sheet.figure


# The decision tree of founding document 003: how to get more bytes in flight, and when not to.

SMALL_TILE, LARGE_TILE = 1, 2  # KiB of a block's copy: asynchronous below, bulk above

TREE_TEXT = (
    "A tree of questions. Are there enough bytes in flight? Yes: stop. No: where shall more loads go? Into "
    "registers: load 16 bytes at a time, then unroll. Into shared memory: are the arrays aligned to 16 bytes? At 4 "
    f"or 8: asynchronous copies. At 16: asynchronous copies for tiles below {SMALL_TILE} KiB, bulk copies "
    f"above {LARGE_TILE} KiB, either between."
)


def draw_tree() -> Figure:
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
    words = f"tile below {SMALL_TILE} KiB: asynchronous copy\nabove {LARGE_TILE} KiB: bulk copy"
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


# Shared memory's banks: in which bank each element of a square is, without and with an unused element a row.

BANKS = 8  # that are drawn of 32

BANKS_TEXT = (
    "Two squares of 8 by 8 elements in shared memory with 8 banks, a small model of 32 by 32. Each element has the "
    "number of its bank. Without padding all 8 elements of a column are in one bank, so that a warp that reads the "
    "column takes 8 turns. With one unused element after each row they are in 8 different banks: one turn."
)


def bank(row: int, column: int, padding: int) -> int:
    """The bank of an element of a square with that many unused elements after each row."""
    return (row * (BANKS + padding) + column) % BANKS


def draw_banks() -> Figure:
    """The squares side by side; a column of each is filled."""
    sheet = Canvas(2.75)
    each, marked = 0.25, 2
    for left, padding, name in ((0.7, 0, "transpose_shared"), (4.1, 1, "transpose_padded")):
        sheet.words(left + BANKS * each / 2, 0.15, name, align="center", mono=True)
        for row in range(BANKS):
            for column in range(BANKS):
                fill = plot.SKY if column == marked else "white"
                words = str(bank(row, column, padding))
                sheet.box(left + column * each, 0.3 + row * each, each, each, words, fill=fill, size=6.5)
            for unused in range(padding):
                sheet.box(left + (BANKS + unused) * each, 0.3 + row * each, each, each, fill=plot.PALE, hatch="///")
        turns = max([bank(row, marked, padding) for row in range(BANKS)].count(number) for number in range(BANKS))
        says = f"a column takes {turns} turn{'s' * (turns > 1)}"
        sheet.words(left + BANKS * each / 2, 0.5 + BANKS * each, says, align="center")
    return sheet.figure


# All of them

__all__ = ["DIAGRAMS", "Diagram", "draw"]


@dataclass(frozen=True)
class Diagram:
    """How it is drawn, and what it shows in words, for those who do not see it."""

    figure: Callable[[], Figure]
    text: str


DIAGRAMS: Mapping[str, Diagram] = {
    "threads": Diagram(draw_threads, THREADS_TEXT),
    "gpu": Diagram(draw_gpu, GPU_TEXT),
    "coalescing": Diagram(draw_coalescing, COALESCING_TEXT),
    "copies": Diagram(draw_copies, COPIES_TEXT),
    "compiler": Diagram(draw_compiler, COMPILER_TEXT),
    "tree": Diagram(draw_tree, TREE_TEXT),
    "banks": Diagram(draw_banks, BANKS_TEXT),
}


def draw(name: str) -> Figure:
    """The diagram of that name. Raises ValueError for an unknown name."""
    if name not in DIAGRAMS:
        raise ValueError(unknown("diagram", name, DIAGRAMS))
    with plot.applied_style():
        return DIAGRAMS[name].figure()
