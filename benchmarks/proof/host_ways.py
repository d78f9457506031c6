"""How the processor adds: contiguous operands, and a column and a row, in calls of lengths that take other loops."""

from collections.abc import Callable, Iterator

import vecadd
from benchmarks.proof.cases import Block
from benchmarks.proof.exact import Array
from benchmarks.proof.flags import Flagged
from benchmarks.proof.ways import Way, explained

# Bytes of a call's sum. One thread and the longest vectors; several threads and ordinary stores; the whole block, with
# streaming stores.
SHORT, MIDDLE = 32 << 10, 2 << 20


def ways() -> list[Way]:
    """The host's ways, at the SIMD level of this process."""
    return [
        _way("contiguous", _contiguous, None, Flagged(vecadd.add)),
        _way("contiguous, 2 MiB", _contiguous, MIDDLE),
        _way("contiguous, 32 KiB", _contiguous, SHORT),
        _way("column and row", _column_and_row, None),
        _way("column and row, 2 MiB", _column_and_row, MIDDLE),
    ]


Calls = Callable[[Block, int | None], Iterator[tuple[Array, Array, Array]]]


def _way(name: str, calls: Calls, nbytes: int | None, flagged: Flagged | None = None) -> Way:
    def add(block: Block) -> Array:
        for operands in calls(block, nbytes):
            vecadd.add(*operands)
        return block.out

    return Way(name, add, lambda block: explained(*next(calls(block, nbytes))), True, flagged)


def _contiguous(block: Block, nbytes: int | None) -> Iterator[tuple[Array, Array, Array]]:
    """Operands and out of each call."""
    x, y, out = (array.reshape(-1) for array in (block.x, block.y, block.out))
    step = out.size if nbytes is None else nbytes // out.itemsize
    for k in range(0, out.size, step):
        yield x[k : k + step], y[k : k + step], out[k : k + step]


def _column_and_row(block: Block, nbytes: int | None) -> Iterator[tuple[Array, Array, Array]]:
    column, rows = block.column, len(block.lefts)
    step = rows if nbytes is None else max(1, nbytes // block.out[0].nbytes)
    for k in range(0, rows, step):
        yield column[k : k + step], block.row, block.out[k : k + step]
