"""Divides a sum into pieces: boxes of whole chunks of the target, as large as memory allows. Pure functions."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from vecadd.stores.usage import UsageError

Shape = tuple[int, ...]
Run = tuple[int, int]  # pieces by their numbers, from the first to before the second

# Chunks of one array that Zarr has in memory at once, encoded and decoded: its setting async.concurrency.
CONCURRENT_CHUNKS = 10

# Bytes of a sum's piece from which on more bring nothing: some chunks to fetch at once, and memory left for others.
ENOUGH = 16 << 20

# Of what is read in all, as long as a larger piece saves at least a twentieth, it is taken.
WORTH_WHILE = 0.95

RUNS_A_THREAD, MOST_RUNS = 16, 4096


@dataclass(frozen=True)
class Side:
    """An operand, or the sum: its shape, what is read or written at once, and bytes an element."""

    shape: Shape
    chunks: Shape
    itemsize: int

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk, decoded."""
        return math.prod(self.chunks) * self.itemsize

    def box_shape(self, box: Shape) -> Shape:
        """Of this side's part in a box of the sum: axes of extent 1 are broadcast."""
        last = box[len(box) - len(self.shape) :]
        return tuple(1 if n == 1 else extent for n, extent in zip(self.shape, last, strict=True))

    def bytes_held(self, box: Shape, concurrent: int) -> tuple[int, int]:
        """Bytes of this side's part in a box, and of the chunks, encoded and decoded, that are on their way there."""
        mine = self.box_shape(box)
        touched = math.prod(
            min(-(-n // chunk) + (n % chunk > 0), -(-most // chunk))
            for n, chunk, most in zip(mine, self.chunks, self.shape, strict=True)
        )
        return math.prod(mine) * self.itemsize, 2 * min(touched, concurrent) * self.chunk_bytes


@dataclass(frozen=True)
class Pieces:
    """The pieces of a sum, numbered in C order; those at the end of an axis may be smaller."""

    shape: Shape
    piece: Shape

    @property
    def counts(self) -> Shape:
        """Pieces along each axis."""
        return tuple(-(-n // extent) for n, extent in zip(self.shape, self.piece, strict=True))

    def __len__(self) -> int:
        return math.prod(self.counts)

    def box(self, number: int) -> tuple[slice, ...]:
        """Where a piece lies in the sum."""
        at = []
        for n, extent, count in reversed(list(zip(self.shape, self.piece, self.counts, strict=True))):
            number, index = divmod(number, count)
            at.append(slice(index * extent, min((index + 1) * extent, n)))
        return tuple(reversed(at))

    def size(self, number: int) -> int:
        """Elements of a piece."""
        return math.prod(part.stop - part.start for part in self.box(number))


def show_box(box: Sequence[slice]) -> str:
    """ "[0:100, 200:300]" """
    return f"[{', '.join(f'{part.start}:{part.stop}' for part in box)}]"


def part_of(box: tuple[slice, ...], shape: Shape) -> tuple[slice, ...]:
    """The part of an operand that is added to a box of the sum: axes of extent 1 are broadcast."""
    last = box[len(box) - len(shape) :]
    return tuple(slice(0, 1) if n == 1 else part for n, part in zip(shape, last, strict=True))


def memory_needed(box: Shape, operands: Sequence[Side], total: Side, concurrent: int = CONCURRENT_CHUNKS) -> int:
    """Bytes that one thread holds at most while it adds a piece of that shape: both operands' parts and the sum, and
    the chunks on their way in or, later, out."""
    read = [operand.bytes_held(box, concurrent) for operand in operands]
    mine, written = total.bytes_held(box, concurrent)
    return mine + sum(held for held, _ in read) + max(written, *(coming for _, coming in read))


def smallest_piece(operands: Sequence[Side], total: Side, concurrent: int = CONCURRENT_CHUNKS) -> tuple[Shape, int]:
    """One chunk of the target, or its shard, and the bytes that a thread needs to make it."""
    unit = tuple(max(1, min(chunk, n)) for chunk, n in zip(total.chunks, total.shape, strict=True))
    return unit, memory_needed(unit, operands, total, concurrent)


def choose_pieces(operands: Sequence[Side], total: Side, memory: int, concurrent: int = CONCURRENT_CHUNKS) -> Pieces:
    """Pieces that a thread adds within ``memory`` bytes: first so long that chunks of the operands which lie across
    those of the target are read as seldom as possible, then, along the last axes first, so large as is worth while.

    Raises UsageError where not even one chunk of the target, or its shard, fits with what is added to make it.
    """
    unit, least = smallest_piece(operands, total, concurrent)
    if least > memory:
        raise UsageError(
            f"{memory} bytes of memory a thread are too few: a chunk of the sum of shape {total.chunks} takes {least} "
            "with what is added to make it; allow more, or name smaller chunks or shards for the sum"
        )
    piece = unit
    while grown := _grown(piece, unit, operands, total, memory, concurrent):
        piece = grown
    return Pieces(total.shape, piece)


def _grown(
    piece: Shape, unit: Shape, operands: Sequence[Side], total: Side, memory: int, concurrent: int
) -> Shape | None:
    """The next larger piece; None where larger ones bring nothing or do not fit."""
    larger = [
        candidate
        for candidate in _candidates(piece, unit, operands, total.shape)
        if memory_needed(candidate, operands, total, concurrent) <= memory
    ]
    now = _bytes_read(piece, operands, total.shape)
    best = min(larger, key=lambda candidate: _bytes_read(candidate, operands, total.shape), default=None)
    if best is not None and _bytes_read(best, operands, total.shape) < WORTH_WHILE * now:
        return best
    if math.prod(piece) * total.itemsize < ENOUGH and larger:
        return larger[0]
    return None


def _candidates(piece: Shape, unit: Shape, operands: Sequence[Side], shape: Shape) -> Iterator[Shape]:
    """Larger pieces by one axis, the last axis first: twice as long, or a multiple of an operand's chunks too."""
    for axis in reversed(range(len(shape))):
        extents = {2 * piece[axis]}
        for operand in operands:
            at = axis - len(shape) + len(operand.shape)
            if at >= 0 and operand.shape[at] > 1:
                extents.add(math.lcm(piece[axis], operand.chunks[at]))
        for extent in sorted(min(extent, -(-shape[axis] // unit[axis]) * unit[axis]) for extent in extents):
            if piece[axis] < min(extent, shape[axis]):
                yield (*piece[:axis], extent, *piece[axis + 1 :])


def _bytes_read(piece: Shape, operands: Sequence[Side], shape: Shape) -> int:
    """Bytes that are decoded in all, where a chunk that lies in several pieces is read for each."""
    total = 0
    for operand in operands:
        reads, offset = 1, len(shape) - len(operand.shape)
        for axis, n in enumerate(shape):
            pieces = -(-n // piece[axis])
            at = axis - offset
            if at < 0 or operand.shape[at] == 1:
                reads *= pieces
                continue
            chunk = operand.chunks[at]
            shared = (n - 1) // math.lcm(piece[axis], chunk)
            reads *= pieces + (n - 1) // chunk - shared
        total += reads * operand.chunk_bytes
    return total


def unfinished(count: int, finished: Iterable[Run]) -> list[Run]:
    """The runs of pieces, of so many in all, that are in none of the finished ones."""
    left, at = [], 0
    for begin, end in sorted(finished):
        if begin > at:
            left.append((at, begin))
        at = max(at, end)
    return [*left, (at, count)] if at < count else left


def runs_of(todo: Sequence[Run], threads: int) -> list[Run]:
    """The pieces in runs of about one length: some for each thread, and never more than MOST_RUNS and what ``todo``
    falls into by itself."""
    pieces = sum(end - begin for begin, end in todo)
    length = max(1, -(-pieces // min(RUNS_A_THREAD * threads, MOST_RUNS)))
    return [(at, min(at + length, end)) for begin, end in todo for at in range(begin, end, length)]
