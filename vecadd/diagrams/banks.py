"""Shared memory's banks: in which bank each element of a square lies, without and with an unused element a row."""

from matplotlib.figure import Figure

from vecadd.bench import plot
from vecadd.diagrams.canvas import Canvas

BANKS = 8  # that are drawn of 32

TEXT = (
    "Two squares of 8 by 8 elements in shared memory with 8 banks, a small model of 32 by 32. Each element has the "
    "number of its bank. Without padding all 8 elements of a column lie in one bank, so that a warp that reads the "
    "column takes 8 turns. With one unused element behind each row they lie in 8 different banks: one turn."
)


def bank(row: int, column: int, padding: int) -> int:
    """The bank of an element of a square whose rows have so many unused elements behind them."""
    return (row * (BANKS + padding) + column) % BANKS


def figure() -> Figure:
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
