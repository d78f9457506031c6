"""The order of a judgement: what is asked of the child, call by call, and drawn at random here, out of its reach."""

import random
from collections.abc import Iterable, Sequence
from typing import Any

from vecadd.judge import findings
from vecadd.judge.findings import Finding
from vecadd.judge.places import Room
from vecadd.judge.process import Child
from vecadd.tables import show_size

VERSIONS = 3  # of the operands, that follow each other from call to call; the child has as many
CALLS = 5  # at each size and alignment that is checked
POKES = 4  # elements that are others in each call, so that no few elements tell which operands are given

AWKWARD = ((1, 2), (2, 32), (33, 1024), (1025, 5000))  # a size is drawn from each of these ranges
NEAR = 64  # sizes near an asked one are up to 1/NEAR of it smaller
CHECKED = 1 << 22  # elements of the largest size that is checked without being timed
STEP = 128  # elements: timed sizes are multiples of it, so that no kernel has a tail to add by itself

DELAY = 100e-6  # seconds that the GPU waits for the host beyond the time that the contestant takes to queue its work
LONGEST_DELAY = 5e-3

HELD = 2  # of CALLS, the last ones: what is loaded or compiled at a first call may wait for the whole GPU
HOLD = 10e-3  # seconds that no kernel can run from a held call on, beyond those that the contestant takes to queue it


class FoundError(Exception):
    """The contestant does something that rejects it."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


class Session:
    """A child with a contestant, its GPU's facts, and the questions to it. Raises FoundError for an answer that shows
    what rejects it."""

    def __init__(self, child: Child, gpu: dict[str, Any], itemsize: int, timeout: float, persisting: int = 0) -> None:
        self.child, self.gpu, self.itemsize, self.timeout = child, gpu, itemsize, timeout
        self._persisting = persisting
        self.random = random.SystemRandom()
        self._delay = 0.0
        self._calls = 0

    def stage(self, n: int, name: str = "stage") -> Room:
        """Memory for calls of n elements."""
        room = Room(n, self.itemsize)
        self._ask(ask="stage", stage=name, memory=room.elements, n=n)
        return room

    def drop(self) -> None:
        """Frees the memory of all stages."""
        self._ask(ask="drop")

    def call(
        self,
        room: Room,
        start: Sequence[int],
        where: str,
        *,
        rung: str | None = None,
        flush: bool = False,
        bare: bool = False,
        version: int | None = None,
        stage: str = "stage",
        held: bool = False,
    ) -> float:
        """Seconds of one call of the contestant, or of a rung, on operands that were not there before. ``held``: while
        no kernel can run, which shows whether work behind the call waits for those of the call."""
        self._calls += 1
        now = self._calls % VERSIONS if version is None else version
        how: dict[str, Any] = {"now": now, "delay": self._cycles(DELAY), "bare": bare}
        if held:
            how["hold"] = self._cycles(HOLD)
        if not bare:
            pokes = tuple(self.random.randrange(room.n) for _ in range(POKES))
            other = (now + 1) % VERSIONS
            how |= {"before": other, "last": (now - 1) % VERSIONS, "donor": other, "pokes": pokes}
        answer = self._ask(ask="call", stage=stage, start=tuple(start), rung=rung, flush=flush, how=how)
        finding = findings.of_answer(answer, room.n, where, self._persisting)
        if finding is not None:
            raise FoundError(finding)
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

    def seconds(self, room: Room, where: str, *, rung: str | None = None) -> float:
        """One timed call: aligned, behind an addition that fills the L2 where the bench's rotation would too."""
        flush = 16 * 3 * room.n * room.itemsize >= self.gpu["l2"]
        return self.call(room, room.aligned(self.random.randrange), where, rung=rung, flush=flush)

    def check_functions(self) -> None:
        """Raises FoundError where functions of the clocks or the checkers are replaced by now."""
        names = self._ask(ask="replaced")["replaced"]
        if names:
            raise FoundError(Finding("replaces functions", ", ".join(names[:5])))

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
                self.call(room, start, where, held=index >= CALLS - HELD)
        except FoundError as found:
            finding = found.finding
            if finding.kind not in ("wrong sum", "nothing written") or not self._right_at(asked):
                raise
            words = f"{finding.words}; right at {_list(asked)}"
            round_ones = [self._as_round(n, asked) for n in asked]
            if not self._right_at(round_ones):
                raise FoundError(Finding("knows the sizes", words)) from None
            words += f" and at {_list(round_ones)}, which are as round: look at the tail behind the last whole block"
            raise FoundError(Finding(finding.kind, words)) from None

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
        except FoundError:
            return False
        return bool(sizes)

    def _cycles(self, seconds: float) -> int:
        return int((seconds + 1.5 * self._delay) * 1e3 * self.gpu["clock_khz"])

    def _ask(self, **question: Any) -> dict[str, Any]:
        return self.child.ask(self.timeout, **question)


def _list(sizes: Sequence[int]) -> str:
    return ", ".join(map(show_size, sizes))
