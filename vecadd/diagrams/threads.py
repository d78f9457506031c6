"""A grid, its blocks, a block's warps, a warp's threads, and which element each thread adds."""

from matplotlib.figure import Figure

from vecadd.bench import plot
from vecadd.diagrams.canvas import Canvas
from vecadd.model.gpu import WARP

BLOCK, NAMED = 256, 5  # NAMED: the block and the warp that are magnified

TEXT = (
    "A grid is a row of blocks. Block 5, magnified, is 256 threads in 8 warps. Its warp 5, magnified, is 32 threads"
    f" side by side; they add the 32 neighbouring elements {NAMED * BLOCK + NAMED * WARP} to "
    f"{NAMED * BLOCK + (NAMED + 1) * WARP - 1}: blockIdx.x * blockDim.x + threadIdx.x."
)


def figure() -> Figure:
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
