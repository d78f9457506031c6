"""The clocks that several stages time their peers by."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

import vecadd
from benchmarks.peers import libraries
from benchmarks.peers.libraries import Add
from vecadd.bench.operands import Buffers

WARM = 400e-6  # seconds of untimed calls: our workers wake after 200 us of calls in a row
ENOUGH = 300e-6  # seconds of calls that are timed after them
MOST_CALLS = 2048
LOOK = 5e-3  # seconds of sleep in which a resting process uses no processor: longer than the kernel's tick of 4 ms
RESTING = 0.05  # of that time, at most
LONGEST_REST = 0.4  # seconds: on 16 cores libgomp's workers spin for 7 ms, libiomp's by default for 200

TRIED = 5  # rounds in which a library's settings meet before the clock of the cell runs

Timer = Callable[[Sequence[Buffers]], float]


class Fastest:
    """Times by the fastest of a library's settings. The first call finds it, and so do calls of another size or of more
    sets: the warm-up's one set is in the L2, later rounds' sets are not."""

    def __init__(self, timers: Mapping[str, Timer]) -> None:
        self.setting = next(iter(timers))
        self._timers = timers
        self._tried = (0, 0)  # the operands' elements and the sets that the settings met at

    def __call__(self, sets: Sequence[Buffers]) -> float:
        n, tried = len(sets[0].out), self._tried
        if len(self._timers) > 1 and (n != tried[0] or len(sets) > tried[1]):
            self.setting, self._tried = self._meet(sets), (n, len(sets))
        return self._timers[self.setting](sets)

    def _meet(self, sets: Sequence[Buffers]) -> str:
        for time in self._timers.values():
            time(sets)  # compiles
        rounds = [{name: time(sets) for name, time in self._timers.items()} for _ in range(TRIED)]
        return min(self._timers, key=lambda name: float(np.median([taken[name] for taken in rounds])))

    def facts(self, used: Buffers) -> dict[str, str]:
        """Which setting was the fastest, where there are several."""
        del used
        return {"setting": self.setting} if len(self._timers) > 1 else {}


def by_calls(add: Add, calls: int) -> Timer:
    """``calls`` queued calls by the host's clock, the queue empty before and drained after."""
    torch = libraries.module("torch")

    def time(sets: Sequence[Buffers]) -> float:
        a, b, out, _ = sets[0]
        torch.cuda.synchronize()
        begin = perf_counter()
        for _ in range(calls):
            add(a, b, out=out)
        seconds = perf_counter() - begin
        torch.cuda.synchronize()
        return seconds / calls

    return time


def planned() -> Callable[[Buffers], Any]:
    """Gives the plan of a set, made when the set is met: all samples of a cell have the same one."""
    kept: dict[int, Any] = {}

    def plan(used: Buffers) -> Any:
        if id(used.out) not in kept:
            kept.clear()
            kept[id(used.out)] = vecadd.plan(used.a, used.b, used.out)
        return kept[id(used.out)]

    return plan


def mean_in_a_row(call: Callable[[], object]) -> float:
    """Seconds of a call among others that follow each other: the workers are awake, and the caches have what fits.
    A long call is timed once, after one untimed call."""
    begin, warm = perf_counter(), 0
    while not warm or perf_counter() - begin < WARM:
        call()
        warm += 1
    begin = perf_counter()
    call()
    once = perf_counter() - begin
    if once >= ENOUGH:
        return once
    calls = min(MOST_CALLS, int(ENOUGH / once))
    begin = perf_counter()
    for _ in range(calls):
        call()
    return (perf_counter() - begin) / calls


def then_resting(timer: Timer) -> Timer:
    """The timer for a library whose workers spin on after its call: waits until they free their processors for the
    next."""

    def timed(sets: Sequence[Buffers]) -> float:
        seconds = timer(sets)
        rest()
        return seconds

    return timed


def rest() -> None:
    """Sleeps until no thread of this process runs any more."""
    end = perf_counter() + LONGEST_REST
    while perf_counter() < end:
        used = process_time()
        sleep(LOOK)
        if process_time() - used <= RESTING * LOOK:
            return
