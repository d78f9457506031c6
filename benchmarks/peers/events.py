"""The clocks of additions on a GPU: CUDA events, between which there is no caller's time."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from time import perf_counter
from typing import Any

from benchmarks.peers import libraries
from benchmarks.peers.clocks import Timer
from benchmarks.peers.libraries import Add
from vecadd.bench.operands import Buffers

IN_A_ROW = 16  # additions, each ready to begin when the one before it ends

# Seconds that the GPU sleeps for each queued addition: SPARE times as long as the caller took to queue the last ones.
# Where it always slept LEAST, 36 of 230 rows of torch.compile, Triton, Helion and Numba on an H100 included a part of
# the caller's time. First calls compile, for longer than MOST: those are queued again.
LEAST, MOST, SPARE = 1e-4, 1e-2, 3
TRIES = 5  # in a row in which the GPU woke too soon
CLOCK = 2e9  # cycles a second of a GPU

Pairs = Sequence[tuple[Any, Any]]  # of events, before and after what is timed


class Nap:
    """Lets the GPU sleep while additions are queued, or the caller's time would be between the events that time them.
    ``least`` is its shortest sleep, in seconds an addition."""

    def __init__(self, least: float = LEAST) -> None:
        self._least = self._each = least

    def through(self, additions: int, queue: Callable[[], Pairs], before: Callable[[], object] = bool) -> float:
        """Seconds between the events of all pairs that ``queue`` queues. Where the GPU wakes before all are queued they
        are queued again; ``before`` comes before each try."""
        torch = libraries.module("torch")
        for _ in range(TRIES):
            before()
            torch.cuda.synchronize()
            torch.cuda._sleep(int(self._each * CLOCK) * additions)
            begun = perf_counter()
            pairs = queue()
            woke = pairs[0][0].query()
            self._each = min(MOST, max(self._least, SPARE * (perf_counter() - begun) / additions))
            torch.cuda.synchronize()
            if not woke:
                milliseconds: float = sum(begin.elapsed_time(end) for begin, end in pairs)
                return milliseconds / 1e3
        raise RuntimeError(f"{TRIES} times the GPU woke before the additions were queued")


def by_events(add: Add, least: float = LEAST, before: Callable[[Sequence[Buffers]], object] = bool) -> Timer:
    """Events around each addition; ``least`` and ``before`` are Nap's."""
    nap = Nap(least)

    def time(sets: Sequence[Buffers]) -> float:
        def queue() -> Pairs:
            pairs = [_pair() for _ in sets]
            for (begin, end), (a, b, out, _) in zip(pairs, sets, strict=True):
                begin.record()
                add(a, b, out=out)
                end.record()
            return pairs

        return nap.through(len(sets), queue, partial(before, sets)) / len(sets)

    return time


def by_events_in_a_row(add: Add) -> Timer:
    """Events around IN_A_ROW additions at a time: the mean from one addition to the next."""
    nap = Nap()

    def time(sets: Sequence[Buffers]) -> float:
        rows = -(-len(sets) // IN_A_ROW)
        additions = rows * IN_A_ROW

        def queue() -> Pairs:
            used, pairs = islice(cycle(sets), additions), [_pair() for _ in range(rows)]
            for begin, end in pairs:
                begin.record()
                for a, b, out, _ in islice(used, IN_A_ROW):
                    add(a, b, out=out)
                end.record()
            return pairs

        return nap.through(additions, queue) / additions

    return time


def _pair() -> tuple[Any, Any]:
    begin, end = (libraries.module("torch").cuda.Event(enable_timing=True) for _ in range(2))
    return begin, end
