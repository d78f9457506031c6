"""The same addition again, as it was and with one thing changed.

A rehearsal runs in the program's process, behind its end, on arrays that lie as the program's did. Each form is timed
with its operands in the caches as far as they fit (as many calls in a row as the program made), with as many arrays in
turns as the program had, and with the caches full of other data. What the program took says how much of it was which.
Where the program's arrays began in different places of a cache line, so do these: NumPy took 4.2 us to add into a sum
of 256 KiB at its beginning, and 5 to 6 into one 16 bytes behind it.
"""

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecadd import _core, _machine
from vecadd._install import install
from vecadd.bench.probes import WORD
from vecadd.why.layout import Layout, fresh, made
from vecadd.why.noted import MANY, Operand

ROUNDS = 7
CALLS, BLOCK = 6, 0.02  # calls at least, and seconds, of a form in a round
SECONDS = 0.5  # of an addition's rehearsal, which its forms share
SHARE = 1 / 8  # of the memory that is free, which the arrays of a rehearsal may take
EVICTING = 128 << 20  # bytes at most that are written to fill the caches with other data
LARGEST = 32 << 20  # bytes of an array that is probed; with larger ones a probe takes seconds
PAGE = resource.getpagesize()


@dataclass(frozen=True)
class Form:
    """An addition to rehearse. ``fresh``: its sum goes to pages that were never written, "small" or "huge" ones.
    ``installed``: by vecadd's loops of numpy.add. ``via`` and ``device`` as `Noted` has them; ``pinned``: arrays in
    page-locked memory. ``turns``: how many arrays take turns as a, b and sum."""

    a: Operand
    b: Operand
    out: Layout
    via: str = "numpy"
    fresh: str = ""
    installed: bool = False
    device: str | None = None
    pinned: bool = False
    turns: tuple[int, ...] = (1, 1, 1)


@dataclass(frozen=True)
class Times:
    """Seconds with the operands in the caches as far as they fit, and in memory; page faults of a call; seconds with
    the program's arrays in turns."""

    warm: float
    cold: float
    faults: float
    turned: float = 0.0

    def mixed(self, cold: float) -> float:
        """Where such a share of the operands came from memory; not less than with the program's arrays in turns."""
        return max(self.turned, (1 - cold) * self.warm + cold * self.cold)


def rehearse(forms: Mapping[str, Form], calls: int = MANY) -> dict[str, Times]:
    """Times of each form, in the mean of so many calls. Empty where there is too little memory for that."""
    most = max(sum(layout.extent[1] - layout.extent[0] for layout in _layouts(form)) for form in forms.values())
    if 2 * most > SHARE * _machine.memory_available():
        return {}
    cache = _core.host_facts()["l3"] or EVICTING
    sets = min(max(max(form.turns) for form in forms.values()), 1 + 2 * cache // most)
    fit = most < 2 * cache
    of_one = {form: _differing(form) if fit else 1 for form in forms.values()}
    in_turns, sets = sets, max(sets, *of_one.values())
    while sets > 1 and 2 * sets * most > SHARE * _machine.memory_available():
        sets -= 1
    arrays = {layouts: [made(layouts, at) for at in range(sets)] for layouts in map(_layouts, forms.values())}
    rehearsed = {
        form: _Rehearsed(_Call(form, arrays[_layouts(form)], min(in_turns, sets)), calls, min(one, sets))
        for form, one in of_one.items()
    }
    evict = _evict() if fit else None
    for _ in range(ROUNDS):
        for one in rehearsed.values():
            if one.spent < SECONDS / len(rehearsed):  # else a quick form had no more rounds than a slow one beside it
                one.round(evict)
    return {name: rehearsed[form].times() for name, form in forms.items()}


def _differing(form: Form) -> int:
    """How many sets of arrays it takes to lie in every place of a cache line where the program's lay."""
    return max(len(layout.starts) if len(set(layout.starts)) > 1 else 1 for layout in _layouts(form))


class _Rehearsed:
    """One form, and the seconds of a call in each round. Each of the first `alone` sets of arrays is added again and
    again, and those of the call that take turns in turn."""

    def __init__(self, call: "_Call", calls: int, alone: int) -> None:
        self.spent = 0.0
        self._call, self._calls, self._alone = call, calls, alone
        self._warm: list[float] = []
        self._turned: list[float] = []
        self._cold: list[float] = []

    def round(self, evict: Callable[[], None] | None) -> None:
        """``evict`` fills the caches with other data; None where they hold none of the operands anyway."""
        begun = time.perf_counter()
        rows = [self._row(partial(self._call.alone, number), CALLS, evict) for number in range(self._alone)]
        self._warm += map(fmean, zip(*rows, strict=False))
        if self._call.turns > 1:
            self._turned += self._row(self._call.in_turn, max(CALLS, 2 * self._call.turns), evict)
        self.spent += time.perf_counter() - begun

    def _row(self, once: Callable[[], float], calls: int, evict: Callable[[], None] | None) -> list[float]:
        if not evict:  # there are no caches to fill: each call tells as much
            return _block(once, calls)[1:]
        evict()
        taken = _block(once, calls)
        self._cold.append(taken[0])
        return [in_a_row(taken, self._calls)]

    def times(self) -> Times:
        """The medians of the rounds."""
        overhead = _overhead()
        warm = max(median(self._warm) - overhead, 1e-9)
        cold = max(median(self._cold) - overhead, warm) if self._cold else warm
        turned = max(median(self._turned) - overhead, 0.0) if self._turned else 0.0
        return Times(warm, cold, self._call.faults, turned)


def in_a_row(taken: Sequence[float], calls: int) -> float:
    """Seconds of a call, in the mean of those behind the first of so many in a row, or of CALLS, as `Noted.typical` is.

    The first half of those that were timed also fills the caches: what it took counts as often as the program did it.
    """
    calls = max(calls, CALLS)
    if len(taken) >= calls:
        return fmean(taken[1:calls])
    half = len(taken) // 2
    return (sum(taken[1:half]) + (calls - half) * median(taken[half:])) / (calls - 1)


@cache
def limit(nbytes: int) -> float:
    """The least seconds in which this machine adds three arrays of so many bytes in all, again and again: all threads,
    any stores, a sum that has been written before. Of more than LARGEST bytes an array by the rate of that size."""
    words = max(1, nbytes // 3 // WORD)
    probed = min(words, LARGEST // WORD)
    a, b, out = (np.ones(probed, np.uint32) for _ in range(3))
    probe = _core.HostLimit(a, b, out)
    return min(probe.round() for _ in range(3)) * words / probed


def _block(once: Callable[[], float], calls: int = CALLS) -> list[float]:
    """Seconds of so many calls, one after the other, or of as many as BLOCK has time for."""
    taken: list[float] = []
    end = time.perf_counter() + BLOCK
    while len(taken) < calls or time.perf_counter() < end:
        taken.append(once())
    return taken


class _Call:
    def __init__(self, form: Form, sets: Sequence[Sequence[NDArray[Any]]], turns: int) -> None:
        self.form, self.turns = form, turns
        self._add: Callable[..., Any] = partial(_core.add, device=form.device) if form.via == "add" else np.add
        self._sets = [_operands(form, arrays) for arrays in sets]
        self._turns = [
            tuple(self._sets[turn % turns][number] for number, turns in enumerate(form.turns)) for turn in range(turns)
        ]
        self._next = 0
        self.faults = 0.0

    def in_turn(self) -> float:
        """Seconds of one addition, of the next arrays."""
        self._next = (self._next + 1) % len(self._turns)
        return self._once(*self._turns[self._next])

    def alone(self, number: int) -> float:
        """Seconds of one addition, of the set of that number."""
        return self._once(*self._sets[number])

    def _once(self, a: Any, b: Any, written: Any) -> float:
        out = fresh(self.form.out, self.form.fresh == "huge") if self.form.fresh else written
        within: AbstractContextManager[Any] = install() if self.form.installed else nullcontext()
        add = self._add
        with within:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            begun = time.perf_counter()
            add(a, b, out)
            taken = time.perf_counter() - begun
        self.faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        return taken


def _pinned(x: NDArray[Any]) -> NDArray[Any]:
    copy = _core.empty_pinned(x.shape, x.dtype)
    copy[...] = x
    return copy


def _operands(form: Form, arrays: Sequence[NDArray[Any]]) -> tuple[Any, Any, Any]:
    """a, b and the sum."""
    *inputs, out = [_pinned(x) for x in arrays] if form.pinned else arrays
    given = iter(inputs)
    a, b = (next(given) if isinstance(x, Layout) else _zero(x) for x in (form.a, form.b))
    return a, b, out


def _layouts(form: Form) -> tuple[Layout, ...]:
    return tuple(x for x in (form.a, form.b, form.out) if isinstance(x, Layout))


def is_number(kind: type) -> bool:
    """Whether a number of that type can be made without code of the program's."""
    return kind in (bool, int, float, complex) or (issubclass(kind, np.generic) and np.dtype(kind).type is kind)


def _zero(kind: Any) -> Any:
    return kind(0) if isinstance(kind, type) else 0


@cache
def _overhead() -> float:
    """Seconds that the clock adds to a call."""
    taken = []
    for _ in range(100):
        begun = time.perf_counter()
        _zero(None)
        taken.append(time.perf_counter() - begun)
    return median(taken)


def _evict() -> Callable[[], None]:
    """A function that fills the caches with other additions' operands and sums."""
    a, b, out = _others(min(EVICTING, 2 * (_core.host_facts()["l3"] or EVICTING)))

    def evict() -> None:
        np.add(a, b, out=out)

    return evict


@cache
def _others(nbytes: int) -> list[NDArray[Any]]:
    return [np.ones(nbytes // 24) for _ in range(3)]


def written(form: Form) -> Form:
    """Its sum goes where a sum has been written before."""
    return replace(form, fresh="")


__all__: Sequence[str] = ["Form", "Times", "is_number", "limit", "rehearse", "written"]
