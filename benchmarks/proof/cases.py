"""Which dtypes meet, and blocks of their operands."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import ml_dtypes
import numpy as np

from benchmarks.proof import exact
from benchmarks.proof.exact import Array, Dtype
from vecadd import _core

DTYPES: list[Dtype] = [np.dtype(getattr(ml_dtypes, name, name)) for name in _core.DTYPES]
SHORT = [dtype for dtype in DTYPES if dtype.itemsize <= 2]

# Sums of a block: enough for streaming stores and every thread. Two short dtypes with fewer pairs than LEAST repeat
# them up to that many sums, because the host leaves smaller conversions to NumPy.
BLOCK, LEAST = 1 << 24, 1 << 20


@dataclass(frozen=True)
class Case:
    """Every value of dtype a meets every value of dtype b; the sums are of dtype out. ``lefts`` are the bits of the
    left operands, all of them unless a part is asked for."""

    a: Dtype
    b: Dtype
    out: Dtype
    lefts: range
    least: int = LEAST

    @cached_property
    def total(self) -> Dtype:
        """The dtype that adds."""
        return np.add(np.zeros(1, self.a), np.zeros(1, self.b)).dtype

    @property
    def plain(self) -> bool:
        """Whether nothing is converted."""
        return self.a == self.b == self.out

    @property
    def has_flags(self) -> bool:
        """Whether sums raise floating-point flags of their own. Those of conversions are not checked."""
        return self.plain and self.a.kind in "fV" and self.a.itemsize == 2

    @property
    def rights(self) -> int:
        """How many right operands there are."""
        return values(self.b, self.a)

    @property
    def columns(self) -> int:
        """Of a block: every right operand, perhaps again and again."""
        every = 1 << 8 * self.b.itemsize
        return every * max(1, self.least // (len(self.lefts) * every))

    @property
    def blocks(self) -> list[range]:
        """The left operands of each block."""
        rows = max(1, BLOCK // self.columns)
        return [self.lefts[k : k + rows] for k in range(0, len(self.lefts), rows)]


def values(dtype: Dtype, other: Dtype) -> int:
    """How many values of a dtype are added to the other one's. To NumPy a bool may be any byte; the conversions of
    ml_dtypes, which add 2 for a 2, only support 0 and 1."""
    return 2 if dtype == np.bool_ and other.kind == "V" else 1 << 8 * dtype.itemsize


def cases(lefts: int | None = None) -> Iterator[Case]:
    """First sums of one dtype, then of two, then those that are cast into out. What a sum is cast to depends on it
    alone: each two dtypes are met once, by 2^24 pairs at most, which have every sum of 16 bits, that of 0 and a number.
    ``lefts`` bounds the left operands, from the bits of 1 on."""

    def case(a: Dtype, b: Dtype, out: Dtype, most: int = 1 << 16) -> Case:
        every, one = range(values(a, b)), int(np.ones(1, a).view(f"u{a.itemsize}")[0])
        return Case(a, b, out, every[:most] if lefts is None else every[one : one + lefts])

    pairs = [(a, b) for a in SHORT for b in SHORT]
    totals = {(a, b): np.add(np.zeros(1, a), np.zeros(1, b)).dtype for a, b in pairs}
    yield from (case(a, a, a) for a in SHORT)
    yield from (case(a, b, totals[a, b]) for a, b in pairs if a != b and exact.is_known(totals[a, b]))
    cast: set[tuple[Dtype, Dtype]] = set()
    for a, b in sorted(pairs, key=lambda pair: pair[0] != pair[1]):
        for out in filter(exact.is_known, DTYPES):
            total = totals[a, b]
            if out != total and np.can_cast(total, out, "same_kind") and (total, out) not in cast:
                cast.add((total, out))
                yield case(a, b, out, 1 << 8)


@dataclass
class Block:
    """Some left operands with every right one: ``x`` and ``y`` have a pair in each place, ``column`` and ``row``
    broadcast to the same pairs, ``out`` takes the sums. `expect` fills ``due`` and ``flags`` with the right results."""

    case: Case
    lefts: range
    x: Array = field(init=False)
    y: Array = field(init=False)
    out: Array = field(init=False)
    due: Array = field(init=False)
    flags: Array = field(init=False)
    raised: int = field(init=False)  # all flags together

    def __post_init__(self) -> None:
        case, shape = self.case, (len(self.lefts), self.case.columns)
        self.x, self.y, self.out = (np.empty(shape, dtype) for dtype in (case.a, case.b, case.out))
        self.due, self.flags = np.empty(shape, case.out), np.empty(shape, np.uint8)
        bits = np.arange(shape[1]).astype(f"u{case.b.itemsize}")
        self.y.view(bits.dtype)[:] = np.minimum(bits, case.rights - 1)
        self.become(self.lefts)

    def become(self, lefts: range) -> None:
        """The same block of as many other left operands."""
        self.lefts = lefts
        bits = np.arange(lefts.start, lefts.stop).astype(f"u{self.case.a.itemsize}")
        self.x.view(bits.dtype)[:] = bits[:, None]

    def expect(self) -> None:
        exact.sums((self.case.a, self.case.b, self.case.total, self.case.out), self.lefts.start, self.due, self.flags)
        self.raised = int(np.bitwise_or.reduce(self.flags, axis=None))

    @property
    def column(self) -> Array:
        return np.ascontiguousarray(self.x[:, :1])

    @property
    def row(self) -> Array:
        first: Array = self.y[0]
        return first

    def operands_of(self, index: int) -> tuple[str, str]:
        """The bits of the pair in that place."""
        row, column = divmod(index, self.case.columns)
        return bits_of(self.x[row, column:]), bits_of(self.y[row, column:])


def bits_of(x: Array) -> str:
    """The bits of the first element, as "0x3c00"."""
    unsigned = np.dtype(f"u{x.itemsize}")
    return f"0x{int(x[:1].view(unsigned)[0]):0{2 * x.itemsize}x}"


def blocks(case: Case) -> Iterator[Block]:
    """The blocks of a case, one after another in the same memory; the last may be smaller."""
    block: Block | None = None
    for lefts in case.blocks:
        if block is None or len(lefts) != len(block.lefts):
            block = Block(case, lefts)
        else:
            block.become(lefts)
        yield block
