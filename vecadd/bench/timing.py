"""The method: contestants in interleaved rounds, medians with their spread, checks outside of the clock."""

import gc
import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from typing import Any

import numpy as np

from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import Buffers, Matrices, MemoryKind, Pattern, WrongSumError
from vecadd.bench.probes import Limit
from vecadd.figures import Figure, Range
from vecadd.tables import show_size

LONGEST = 2.0  # seconds: a single addition that would take longer is skipped
PROBE_FROM = 1 << 12  # elements of the first addition that a prediction is made from
TELLING = 10e-3  # seconds: a longer time is spent on bytes, not fixed costs, and scales with n

FEWEST_ROUNDS, MOST_ROUNDS = 6, 400  # the least and the greatest of five ratios enclose the median at 94 % only
SAMPLE = 50e-6  # seconds: shorter additions are timed several at a time, or the clock's 30 ns would show
MOST_IN_SAMPLE = 500  # additions; the first ones take 40 ns
LONGEST_SAMPLE = 50e-3  # seconds: a slow contestant, one GPU thread for example, is not timed several at a time
SETTLE = 0.3  # seconds: a GPU is up to 11 % slower for 2.7 ms a GiB after memory was freed

METHOD = (
    "median of interleaved rounds in random order on random values, after a warm-up; device memory rotates over four "
    "times the L2 or 64 buffer sets, whichever is less, host memory stays the same and is in the cache where it fits; "
    "spread is p10 to p90; every sum of the first and the last round compared bit for bit with numpy.add after its "
    "output was poisoned, or made 0 where a rung adds to it; limits from probes in the same run"
)


@dataclass(frozen=True)
class Cell:
    """Contestants that meet at one dtype and size, below a limit: one that is probed among the rounds, GB/s that are
    known before, or None.

    ``sets`` is how many buffer sets each kind of memory gets; 0 for as many as rotate past the GPU's cache, which
    `vecadd.bench.run.Session` knows, as it knows the ``sweep``. ``reference`` names the contestant that the others are
    compared with. Where a contestant makes ``additions`` of n elements in one run, its operands have ``length``
    elements, else n. ``add_derived`` adds to the figures what follows from figures and limits. ``min_rounds`` are made
    even where they take longer than a cell should. ``operands`` take the place of three arrays of random values.
    """

    dtype: np.dtype[Any]
    n: int
    contestants: Sequence[Contestant]
    limit: Limit | float | None = None
    sets: int = 0
    reference: str | None = None
    additions: int = 1
    length: int = 0
    add_derived: Callable[[list[Figure]], list[Figure]] | None = None
    min_rounds: int = 0
    operands: Matrices | None = None
    sweep: str = ""

    @property
    def elements(self) -> int:
        """Elements of each operand."""
        return self.length or self.n

    @property
    def name(self) -> str:
        """Which cell it is: "size float32 2^20"."""
        return f"{self.sweep} {self.dtype} {show_size(self.n)}"

    @property
    def set_bytes(self) -> int:
        """Bytes of a, b and out together."""
        return 3 * self.elements * self.dtype.itemsize if self.operands is None else self.operands.nbytes


@dataclass
class Samples:
    """One contestant of a cell: its seconds in each round, or its error."""

    contestant: Contestant
    seconds: list[float] = field(default_factory=list)
    checks: int = 0
    error: str | None = None
    caught: str | None = None  # what the check found wrong with a contestant that races
    found: dict[str, Any] = field(default_factory=dict)  # the contestant's extra parameters

    @property
    def median(self) -> float:
        """The median seconds; raises without a sample."""
        return float(np.median(self.seconds))

    @property
    def spread(self) -> Range:
        """The 10th and the 90th percentile."""
        low, high = np.percentile(self.seconds, (10, 90))
        return float(low), float(high)


def paired_ratio(timed: Samples, reference: Samples) -> tuple[float, float, float]:
    """Times of one contestant over the reference's of the same round: `interval` of the ratios."""
    return paired_interval(timed.seconds, reference.seconds)


def paired_interval(samples: Sequence[float], reference: Sequence[float]) -> tuple[float, float, float]:
    """`interval` of the samples over the reference's of the same rounds."""
    return interval([a / b for a, b in zip(samples, reference, strict=False)])


def interval(values: Iterable[float]) -> tuple[float, float, float]:
    """The median and its 95 % interval around it: (low, median, high).

    The interval is that of the sign test, between two of the sorted values: it assumes nothing about the distribution
    of times.
    """
    ordered = sorted(values)
    reach = 0.98 * math.sqrt(len(ordered))  # 1.96 standard deviations of a fair coin
    middle = (len(ordered) - 1) / 2
    low, high = max(0, math.floor(middle - reach)), min(len(ordered) - 1, math.ceil(middle + reach))
    return ordered[low], float(np.median(ordered)), ordered[high]


class TimePredictor:
    """How long an addition will take, from the largest one of the same contestant that was timed before."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], dict[int, float]] = {}

    def note(self, contestant: Contestant, dtype: np.dtype[Any], n: int, seconds: float) -> None:
        """Remembers how many seconds the contestant took for n elements."""
        self._known.setdefault(self._key(contestant, dtype), {})[n] = seconds

    def seconds(self, contestant: Contestant, pattern: Pattern, n: int) -> float:
        """Predicts n elements, by timing ever larger additions where those known so far do not tell."""
        key = self._key(contestant, pattern.dtype)
        while True:
            smaller = [(m, t) for m, t in self._known.get(key, {}).items() if m <= n]
            m, t = max(smaller) if smaller else (0, 0.0)
            if m and (t >= TELLING or 16 * m >= n):
                return t * n / m
            m = min(n, 16 * m or PROBE_FROM)
            sets = pattern.buffers(contestant.memory, m, 1)
            # The first call may load or compile a kernel.
            self.note(contestant, pattern.dtype, m, min(contestant.time(sets) for _ in range(2)))

    def _key(self, contestant: Contestant, dtype: np.dtype[Any]) -> tuple[str, str, str]:
        return f"{contestant.name} {contestant.params.get('parameters', '')}", contestant.memory.name, str(dtype)


class Measurement:
    """One cell being measured. ``timed`` has the samples so far, also after an interrupt."""

    def __init__(self, cell: Cell, pattern: Pattern, order: random.Random) -> None:
        self.cell = cell
        self.limit = cell.limit if isinstance(cell.limit, Limit) else Limit(cell.limit)
        self.timed = [Samples(contestant) for contestant in cell.contestants]
        self._pattern = pattern
        self._order = order

    def run(self, seconds: float) -> None:
        """Measures for about that long. A contestant that fails keeps the reason in its ``error``."""
        memories = {timed.contestant.memory.name: timed.contestant.memory for timed in self.timed}
        sets = {name: self._buffers(memory) for name, memory in memories.items()}
        if any(memory.on_gpu for memory in memories.values()):
            time.sleep(SETTLE)
        self.limit.open(sets)
        # A garbage collection within a sample takes milliseconds.
        collects = gc.isenabled()
        gc.disable()
        try:
            self._time_rounds(sets, seconds)
            self._find_extra_params(sets)
        finally:
            self.limit.close()
            if collects:
                gc.enable()

    def figures(self) -> list[Figure]:
        """A figure of every contestant that was timed and checked, or failed."""
        return [self._figure(timed) for timed in self.timed if timed.checks or timed.error]

    def _figure(self, timed: Samples) -> Figure:
        cell = self.cell
        return Figure(
            sweep=cell.sweep,
            name=timed.contestant.name,
            dtype=str(cell.dtype),
            n=cell.n,
            params={**self._params(timed), **self._ratio(timed)},
            value=None if timed.error else timed.median,
            spread=None if timed.error else timed.spread,
            bytes=round(timed.contestant.arrays * cell.additions * cell.n * cell.dtype.itemsize),
            limit=self.limit.gbps if timed.contestant.limited else None,
            checked=not timed.error and not timed.caught,
            error=timed.error,
        )

    def _params(self, timed: Samples) -> dict[str, Any]:
        """The contestant's own parameters, what was found beside its time, and the errors caught in a race."""
        return {**timed.contestant.params, **timed.found, **({"caught": timed.caught} if timed.caught else {})}

    def _ratio(self, timed: Samples) -> dict[str, Any]:
        """The paired ratio to the cell's reference, where both were measured."""
        reference = next((each for each in self.timed if each.contestant.name == self.cell.reference), None)
        if reference is None or reference is timed or timed.error or reference.error or not reference.seconds:
            return {}
        low, median, high = paired_ratio(timed, reference)
        return {"reference": reference.contestant.name, "ratio": median, "ratio_interval": [low, high]}

    def _buffers(self, memory: MemoryKind) -> list[Buffers]:
        if self.cell.operands is not None:
            return self.cell.operands.buffers(memory, self.cell.sets)
        return self._pattern.buffers(memory, self.cell.elements, self.cell.sets)

    def _time_rounds(self, sets: dict[str, list[Buffers]], seconds: float) -> None:
        warm = [
            self._time_sample(timed, sets[timed.contestant.memory.name][:1], check=False) or 0.0 for timed in self.timed
        ]
        fastest = min((sample for sample in warm if sample), default=SAMPLE)
        batch = max(1, min(MOST_IN_SAMPLE, int(SAMPLE / fastest)))
        batches = [
            max(1, int(LONGEST_SAMPLE / sample)) if batch * sample > LONGEST_SAMPLE else batch for sample in warm
        ]
        rotations = {name: cycle(group) for name, group in sets.items()}
        begin = time.perf_counter()
        for number in count(1):
            late = time.perf_counter() - begin >= seconds
            last = number == MOST_ROUNDS or (late and number >= max(FEWEST_ROUNDS, self.cell.min_rounds))
            self._time_round(rotations, batches, check=number == 1 or last)
            if last:
                return

    def _find_extra_params(self, sets: dict[str, list[Buffers]]) -> None:
        for timed in self.timed:
            contestant = timed.contestant
            if contestant.extra_params is None or timed.error is not None:
                continue
            try:
                timed.found = dict(contestant.extra_params(sets[contestant.memory.name][0]))
            except Exception as error:
                timed.error = f"{type(error).__name__}: {error}"

    def _time_round(self, rotations: dict[str, "cycle[Buffers]"], batches: list[int], *, check: bool) -> None:
        turns: list[tuple[Samples | None, int]] = [*zip(self.timed, batches, strict=True), (None, 0)]  # None: the limit
        self._order.shuffle(turns)
        for timed, batch in turns:
            if timed is None:
                self.limit.round()
                continue
            used = list(islice(rotations[timed.contestant.memory.name], batch))
            sample = self._time_sample(timed, used, check=check)
            if sample is not None:
                timed.seconds.append(sample)

    def _time_sample(self, timed: Samples, used: list[Buffers], *, check: bool) -> float | None:
        """Seconds of one addition; None if this contestant has failed, now or before."""
        if timed.error is not None:
            return None
        try:
            if check:
                self._reset_outputs(timed.contestant, used)
            sample = timed.contestant.time(used)
            if check:
                self._check_outputs(timed, used)
        except WrongSumError as error:
            timed.error = f"wrong result: {error}"
        except Exception as error:  # one rung's failure is a figure too, whatever it is
            timed.error = f"{type(error).__name__}: {error}"
        else:
            return sample
        return None

    def _reset_outputs(self, contestant: Contestant, used: list[Buffers]) -> None:
        for buffers in used[: self.cell.sets]:
            (contestant.memory.clear if contestant.adds else contestant.memory.poison)(buffers.out)

    def _check_outputs(self, timed: Samples, used: list[Buffers]) -> None:
        contestant = timed.contestant
        timed.checks += 1
        for index, buffers in enumerate(used[: self.cell.sets]):
            if contestant.check is not None:
                contestant.check(buffers)
                continue
            runs = len(range(index, len(used), self.cell.sets))  # of this set, where a sample goes round them
            try:
                self._pattern.check(contestant.memory, buffers, max(1, contestant.adds * runs), contestant.chain)
            except WrongSumError as error:
                if not contestant.races:
                    raise
                timed.caught = str(error)
