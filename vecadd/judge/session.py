"""The order of a judgement: what is asked of the child, call by call, and drawn at random here, out of its reach."""

import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vecadd.judge.process import Child
from vecadd.tables import show_size

# What a contestant can be found to do wrong: each kind by its name, and which of them an answer of the child shows.

# In words for the documents and the tables; docs/judge.md has the same list.
KINDS: Mapping[str, str] = {
    "wrong sum": "an element of out is not the sum",
    "nothing written": "out is as it was before the call",
    "read too early": "the sum of what a and b contained before they were ready: another stream than the current one",
    "kept result": "the sum of the call before: a and b have changed since",
    "side stream": "the sum comes, but on a stream that nothing orders before what is queued after the call",
    "returned early": "work goes on after the call has returned, or after the events that time it",
    "writes outside": "memory in front of, between or after the arrays has changed",
    "changes operands": "a or b has changed",
    "knows the sizes": "right at the sizes that were asked for, and wrong at others that are as round",
    "L2 set aside": "a part of the L2 is set aside for memory that persists there",
    "L2 warmed": "faster on operands that it can foresee than on others: it brings them into the L2 ahead",
    "replaces functions": "functions of the clocks or the checkers were replaced",
    "does not compile": "the compiler refuses the .cu file",
    "raises": "it raised an exception",
    "GPU fault": "the GPU stopped with an error",
    "crash": "its process ended",
    "hang": "it did not return in time",
}

REGIONS = ("in front of a", "a", "between a and b", "b", "between b and out", "out", "after out")
OPERANDS, OUT = (1, 3), 5


class RejectedError(Exception):
    """Why a contestant is rejected: the kind, a key of KINDS, and what was seen, in words."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(f"{kind}: {words}")
        self.kind, self.words = kind, words


@dataclass(frozen=True)
class Count:
    """How many elements of a region were wrong, the first of them, and what was in the wrong ones."""

    wrong: int
    first: int
    unwritten: int
    before: int
    last: int


def find_fault(answer: Mapping[str, Any], n: int, where: str, persisting: int = 0) -> RejectedError | None:
    """What an answer to a call of n elements shows, at ``where`` in words; None where all is right. ``persisting``
    bytes of the L2 were set aside before."""
    if "raised" in answer:
        return RejectedError("raises", f"{answer['raised']} ({where})")
    if "lost" in answer:
        return RejectedError("GPU fault", f"{answer['lost']} ({where})")
    regions = [Count(*counts) for counts in answer["regions"]]
    for index, count in enumerate(regions):
        if count.wrong and index in OPERANDS:
            return RejectedError("changes operands", f"{_show_elements(count, n)} of {REGIONS[index]} ({where})")
        if count.wrong and index != OUT:
            region = f"{_count_elements(count.wrong)} {REGIONS[index]}"
            words = f"{region}, the first one {count.first} elements into it ({where})"
            return RejectedError("writes outside", words)
    if answer["persisting"] > persisting:
        return RejectedError("L2 set aside", f"{answer['persisting']} bytes of the L2 ({where})")
    if not regions[OUT].wrong:
        if answer["unordered"]:
            words = f"what was queued after the call was over before any kernel of the call could run ({where})"
            return RejectedError("side stream", words)
        return None
    return _judge_out(regions[OUT], Count(*answer["at_rest"]), Count(*answer["later"]), n, where)


def _judge_out(at_once: Count, at_rest: Count, later: Count, n: int, where: str) -> RejectedError:
    what = f"{_show_elements(at_once, n)} of out, the first {at_once.first} ({where})"
    # Before the sums of other operands: those may be what a call leaves that comes late.
    if not at_rest.wrong:
        return RejectedError("side stream", f"{what}; right when the GPU had come to rest")
    if not later.wrong:
        return RejectedError("returned early", f"{what}; right a while after")
    # What is in it in the end. A sum of one byte equals another now and then: most of the wrong ones decide.
    most = 0.5 * later.wrong
    kinds: Sequence[tuple[str, int]] = (
        ("read too early", later.before),
        ("kept result", later.last),
        ("nothing written", later.unwritten if later.wrong >= n else 0),
    )
    return RejectedError(next((kind for kind, count in kinds if count > most), "wrong sum"), what)


def _show_elements(count: Count, n: int) -> str:
    return "all elements" if count.wrong >= n else _count_elements(count.wrong)


def _count_elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"


# Where a call's arrays are in memory: drawn at random for each call, with poison around them.

# Bytes in front of, between and after the arrays: a block of 1024 threads of 16 bytes runs over 16 KiB.
GUARD = 64 << 10
LINE = 256  # bytes: the alignment of memory that CUDA allocates
SLACK = 64  # lines that each array may be shifted by

Draw = Callable[[int], int]  # a random whole number from 0 up to, and without, this one


@dataclass(frozen=True)
class GuardedArrays:
    """Memory for arrays of n elements of that many bytes each."""

    n: int
    itemsize: int

    @property
    def elements(self) -> int:
        """Of the memory, which has room for the arrays at every place that can be drawn."""
        return self._begin(3) + self._guard

    def aligned(self, draw: Draw) -> tuple[int, int, int]:
        """The elements at which a, b and out begin: all on whole lines."""
        return self._starts(draw, lambda: 0)

    def misaligned(self, draw: Draw, alignment: int) -> tuple[int, int, int]:
        """As above, aligned to ``alignment`` bytes and, as far as that leaves a choice, to no more."""
        step = max(1, alignment // self.itemsize)
        return self._starts(draw, lambda: step * draw(max(1, LINE // self.itemsize // step)))

    @property
    def _guard(self) -> int:
        return GUARD // self.itemsize

    def _begin(self, array: int) -> int:
        """Of the space that an array is shifted in: on a whole line."""
        line = LINE // self.itemsize
        space = -(-self.n // line) * line + (SLACK + 1) * line + self._guard
        return array * space + self._guard

    def _starts(self, draw: Draw, offset: Callable[[], int]) -> tuple[int, int, int]:
        line = LINE // self.itemsize
        a, b, out = (self._begin(array) + line * draw(SLACK) + offset() for array in range(3))
        return a, b, out


VERSIONS = 3  # of the operands, that follow each other from call to call; the child has as many
CALLS = 5  # at each size and alignment that is checked
POKES = 4  # elements that are others in each call, so that no few elements tell which operands are given

AWKWARD = ((1, 2), (2, 32), (33, 1024), (1025, 5000))  # a size is drawn from each of these ranges
NEAR = 64  # sizes near an asked one are up to 1/NEAR of it smaller
CHECKED = 1 << 22  # elements of the largest size that is checked without being timed
STEP = 128  # elements: timed sizes are multiples of it, so that no kernel has a tail to add by itself

DELAY = 100e-6  # seconds that the GPU waits for the host beyond the time that the contestant takes to queue its work
LONGEST_DELAY = 5e-3

BLOCKADED = 2  # of CALLS, the last ones: what is loaded or compiled at a first call may wait for the whole GPU
BLOCKADE = 10e-3  # seconds from such a call on in which no kernel can run, beyond those in which it is queued


class Session:
    """A child with a contestant, its GPU's facts, and the questions to it. Raises RejectedError for an answer that
    shows what rejects it."""

    def __init__(self, child: Child, gpu: dict[str, Any], itemsize: int, timeout: float, persisting: int = 0) -> None:
        self.child, self.gpu, self.itemsize, self.timeout = child, gpu, itemsize, timeout
        self._persisting = persisting
        self.random = random.SystemRandom()
        self._delay = 0.0
        self._calls = 0

    def stage(self, n: int, name: str = "stage") -> GuardedArrays:
        """Memory for calls of n elements."""
        room = GuardedArrays(n, self.itemsize)
        self._ask(ask="stage", stage=name, memory=room.elements, n=n)
        return room

    def drop(self) -> None:
        """Frees the memory of all stages."""
        self._ask(ask="drop")

    def call(
        self,
        room: GuardedArrays,
        start: Sequence[int],
        where: str,
        *,
        rung: str | None = None,
        flush: bool = False,
        bare: bool = False,
        version: int | None = None,
        stage: str = "stage",
        blockaded: bool = False,
    ) -> float:
        """Seconds of one call of the contestant, or of a rung, on operands that were not there before. ``blockaded``:
        no kernel can run meanwhile, which shows whether work after the call waits for the call's kernels."""
        self._calls += 1
        now = self._calls % VERSIONS if version is None else version
        how: dict[str, Any] = {"now": now, "delay": self._cycles(DELAY), "bare": bare}
        if blockaded:
            how["blockade"] = self._cycles(BLOCKADE)
        if not bare:
            pokes = tuple(self.random.randrange(room.n) for _ in range(POKES))
            other = (now + 1) % VERSIONS
            how |= {"before": other, "last": (now - 1) % VERSIONS, "donor": other, "pokes": pokes}
        answer = self._ask(ask="call", stage=stage, start=tuple(start), rung=rung, flush=flush, how=how)
        if fault := find_fault(answer, room.n, where, self._persisting):
            raise fault
        if rung is None:
            self._delay = min(LONGEST_DELAY, answer["host"])
        seconds: float = answer["seconds"]
        return seconds

    def check(self, sizes: Iterable[int], alignment: int) -> list[str]:
        """Calls at awkward sizes and alignments and near the asked sizes; gives a line for each size."""
        told = []
        asked = [min(n, CHECKED) for n in sizes]
        awkward = [self.random.randrange(low, high) for low, high in AWKWARD]
        near = [n - 1 - self.random.randrange(max(1, n // NEAR)) for n in asked if n > AWKWARD[-1][1]]
        for n in dict.fromkeys((*near, *reversed(awkward))):
            self._check(n, alignment, asked)
            told.append(f"{n} elements: {CALLS} calls, aligned to {alignment} bytes")
        self.check_functions()
        return told

    def seconds(self, room: GuardedArrays, where: str, *, rung: str | None = None) -> float:
        """One timed call: aligned, after an addition that fills the L2 where the bench's rotation would too."""
        flush = 16 * 3 * room.n * room.itemsize >= self.gpu["l2"]
        return self.call(room, room.aligned(self.random.randrange), where, rung=rung, flush=flush)

    def check_functions(self) -> None:
        """Raises RejectedError where functions of the clocks or the checkers are replaced by now."""
        names = self._ask(ask="replaced")["replaced"]
        if names:
            raise RejectedError("replaces functions", ", ".join(names[:5]))

    def near(self, n: int) -> int:
        """A size to time in the place of n: at most 1/NEAR smaller."""
        if n <= NEAR * STEP:
            return max(1, n - self.random.randrange(max(1, n // NEAR)))
        return (n - self.random.randrange(n // NEAR)) // STEP * STEP

    def _check(self, n: int, alignment: int, asked: Sequence[int]) -> None:
        room = self.stage(n)
        where = f"{n} elements aligned to {alignment} bytes"
        try:
            for index in range(CALLS):
                start = room.misaligned(self.random.randrange, alignment)
                self.call(room, start, where, blockaded=index >= CALLS - BLOCKADED)
        except RejectedError as found:
            if found.kind not in ("wrong sum", "nothing written") or not self._right_at(asked):
                raise
            words = f"{found.words}; right at {_list(asked)}"
            round_ones = [self._as_round(n, asked) for n in asked]
            if not self._right_at(round_ones):
                raise RejectedError("knows the sizes", words) from None
            words += f" and at {_list(round_ones)}, which are as round: look at the tail after the last whole block"
            raise RejectedError(found.kind, words) from None

    def _as_round(self, n: int, asked: Sequence[int]) -> int:
        """A size that is not asked for, with the same power of two as a factor."""
        factor = n & -n
        times = 1 if n >= CHECKED else self.random.randrange(1, 4)
        while n + 2 * times * factor in asked:
            times += 1
        return n + 2 * times * factor

    def _right_at(self, sizes: Sequence[int]) -> bool:
        """Whether it is right at these sizes themselves, aligned as memory usually is."""
        try:
            for n in sizes:
                room = self.stage(n)
                for _ in range(CALLS):
                    self.call(room, room.aligned(self.random.randrange), show_size(n))
        except RejectedError:
            return False
        return bool(sizes)

    def _cycles(self, seconds: float) -> int:
        return int((seconds + 1.5 * self._delay) * 1e3 * self.gpu["clock_khz"])

    def _ask(self, **question: Any) -> dict[str, Any]:
        return self.child.ask(self.timeout, **question)


def _list(sizes: Sequence[int]) -> str:
    return ", ".join(map(show_size, sizes))


# Whether a contestant is faster on operands that it can foresee, because it reads those of the next call ahead.
#
# Sets of arrays, each twice the L2, are given in a fixed order, with nothing else read in between and a pause after
# each call; then in an order in which no set follows the one that it followed last. All else is the same in both: what
# a call leaves in the L2, and what is still to be written back.

SETS = 6
LAPS = 4  # in the fixed order; the first teaches it
ROUNDS = 2
MORE = 1.1  # times as fast: as by a tenth of the bytes from the L2

Place = tuple[str, GuardedArrays, tuple[int, int, int]]


def check_foresight(session: Session) -> str:
    """Raises RejectedError for a contestant that is; else gives a line on what was compared."""
    n = 2 * session.gpu["l2"] // (3 * session.itemsize)
    places: list[Place] = []
    for index in range(SETS):
        room = session.stage(n, f"set {index}")
        places.append((f"set {index}", room, room.aligned(session.random.randrange)))
        _call_bare(session, places, index, bare=False)  # its operands stay there
    known, others = [], []
    for _ in range(ROUNDS):
        laps = [[_call_bare(session, places, index) for index in range(SETS)] for _ in range(LAPS)]
        known += [seconds for lap in laps[1:] for seconds in lap]
        others += [_call_bare(session, places, index) for index in _draw_order(session, (LAPS - 1) * SETS)]
    session.drop()
    more = statistics.median(others) / statistics.median(known)
    if more > MORE:
        words = f"{more:.2f} times as fast at {n} elements where it could know the next ones"
        raise RejectedError("L2 warmed", words)
    return f"{n} elements: {SETS} sets in a known order, and in orders that nothing tells"


def _draw_order(session: Session, count: int) -> list[int]:
    """Sets, each other than the two before it and than the one that came after the same set last."""
    follower = {index: (index + 1) % SETS for index in range(SETS)}
    order = [SETS - 2, SETS - 1]  # of the laps
    while len(order) < count + 2:
        left_out = {*order[-2:], follower[order[-1]]}
        drawn = session.random.choice([index for index in range(SETS) if index not in left_out])
        follower[order[-1]] = drawn
        order.append(drawn)
    return order[2:]


def _call_bare(session: Session, places: list[Place], index: int, *, bare: bool = True) -> float:
    name, room, start = places[index]
    return session.call(room, start, f"{room.n} elements", bare=bare, version=index % 3, stage=name)
