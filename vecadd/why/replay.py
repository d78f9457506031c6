"""The same addition again, as it was and with one thing changed, and the least time that this machine needs for it.

A replay runs in the process of the program, after its end, on arrays with the program's strides and offsets.
Each form is timed with its operands in the caches as far as they fit, by as many calls in a row as the program made,
and with the caches full of other data. What the program took tells how much of it was which.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecadd import _core, _machine
from vecadd._install import install
from vecadd.bench import probes
from vecadd.bench.operands import PINNED
from vecadd.why.layout import Layout, allocate_like, allocate_untouched
from vecadd.why.recording import Operand

ROUNDS = 7
CALLS, BLOCK = 6, 0.02  # calls at least, and seconds, of a form in a round
SECONDS = 0.5  # of an addition's replay, which its forms share
SHARE = 1 / 8  # of the memory that is free, which the arrays of a replay may take
EVICTING = 128 << 20  # bytes at most that are written to fill the caches with other data
LARGEST = 32 << 20  # bytes of an array that is probed; with larger ones a probe takes seconds


@dataclass(frozen=True)
class Form:
    """An addition to replay. ``untouched``: its sum goes to pages to which nothing was written. ``installed``: vecadd's
    loops are in numpy.add. ``via`` and ``device`` as `AdditionGroup` has them; ``pinned``: arrays in page-locked
    memory."""

    a: Operand
    b: Operand
    out: Layout
    via: str = "numpy"
    untouched: bool = False
    installed: bool = False
    device: str | None = None
    pinned: bool = False


@dataclass(frozen=True)
class ReplayTimes:
    """Seconds of a call with the operands in the caches as far as they fit, and in memory."""

    warm: float
    cold: float

    def mix(self, cold: float) -> float:
        """Where that share of the operands came from memory."""
        return (1 - cold) * self.warm + cold * self.cold


def replay(forms: Mapping[str, Form], calls: int) -> dict[str, ReplayTimes]:
    """Times of each form, in that many calls in a row. Empty where there is too little memory for that."""
    layouts = {form: tuple(x for x in (form.a, form.b, form.out) if isinstance(x, Layout)) for form in forms.values()}
    most = max(sum(x.extent[1] - x.extent[0] for x in each) for each in layouts.values())
    if 2 * most > SHARE * _machine.memory_available():
        return {}
    evict = _evict() if most < 2 * (_core.host_facts()["l3"] or EVICTING) else None
    arrays = {each: allocate_like(each) for each in set(layouts.values())}
    series = {form: _Series(form, arrays[each], calls) for form, each in layouts.items()}
    for _ in range(ROUNDS):
        for one in series.values():
            if one.spent < SECONDS / len(series):  # else a quick form had no more rounds than a slow one beside it
                one.time_round(evict)
    return {name: series[form].times() for name, form in forms.items()}


class _Series:
    """The seconds of one form's calls, round by round."""

    def __init__(self, form: Form, arrays: Sequence[NDArray[Any]], calls: int) -> None:
        self.spent = 0.0
        self._form, self._calls = form, calls
        self._add: Callable[..., Any] = partial(_core.add, device=form.device) if form.via == "add" else np.add
        given = iter([PINNED.put(x) for x in arrays] if form.pinned else arrays)
        self._a, self._b, self._out = (
            next(given) if isinstance(x, Layout) else x(0) for x in (form.a, form.b, form.out)
        )
        self._warm: list[float] = []
        self._cold: list[float] = []

    def time_round(self, evict: Callable[[], None] | None) -> None:
        """``evict`` fills the caches with other data; None where the operands do not fit in them anyway."""
        begin = time.perf_counter()
        if evict:
            evict()
        taken = self._time_block()
        if evict:
            self._cold.append(taken[0])
            self._warm.append(median(taken[1 : max(self._calls, CALLS)]))
        else:  # each call tells as much
            self._warm += taken[1:]
        self.spent += time.perf_counter() - begin

    def times(self) -> ReplayTimes:
        """The medians of the rounds."""
        warm = median(self._warm)
        return ReplayTimes(warm, max(median(self._cold), warm) if self._cold else warm)

    def _time_block(self) -> list[float]:
        """Seconds of each of CALLS calls, one after the other, or of as many as BLOCK has time for."""
        taken: list[float] = []
        end = time.perf_counter() + BLOCK
        while len(taken) < CALLS or time.perf_counter() < end:
            taken.append(self._time_call())
        return taken

    def _time_call(self) -> float:
        a, b, add = self._a, self._b, self._add
        out = allocate_untouched(self._form.out) if self._form.untouched else self._out
        within: AbstractContextManager[Any] = install() if self._form.installed else nullcontext()
        with within:
            begin = time.perf_counter()
            add(a, b, out)
            return time.perf_counter() - begin


def is_number(kind: type) -> bool:
    """Whether a number of that type can be made without code of the program's."""
    return kind in (bool, int, float, complex) or (issubclass(kind, np.generic) and np.dtype(kind).type is kind)


@cache
def _evict() -> Callable[[], None]:
    """A function that fills the caches with other additions' operands and sums."""
    nbytes = min(EVICTING, 2 * (_core.host_facts()["l3"] or EVICTING))
    a, b, out = (np.ones(nbytes // 24) for _ in range(3))

    def evict() -> None:
        np.add(a, b, out=out)

    return evict


# --- limits


@cache
def host_limit(nbytes: int) -> float:
    """The least seconds in which this machine adds three arrays of ``nbytes`` in all, again and again: all threads,
    any stores, a sum that has been written before. Of more than LARGEST bytes an array by the rate of that size."""
    words = max(1, nbytes // 3 // probes.WORD)
    probed = min(words, LARGEST // probes.WORD)
    a, b, out = (np.ones(probed, np.uint32) for _ in range(3))
    probe = _core.host_limit(a, b, out)
    return min(_core.host_limit_round(probe) for _ in range(3)) * words / probed


@cache
def link_rate(number: int) -> float | None:
    """Bytes a second of three arrays that go through that GPU and back; None without the laboratory, whose probe it
    is."""
    return 1e9 * probes.probe_link(number)["gbps"] if _core.LAB_BUILD else None


@cache
def device_rate(number: int) -> float | None:
    """Bytes a second that additions on that GPU read and write at most; None without the laboratory, whose probe it
    is."""
    if not _core.LAB_BUILD:
        return None
    facts = _core.gpu_facts()[number]
    return 1e9 * probes.probe_device(number, facts["l2"], facts["memory"])["gbps"]
