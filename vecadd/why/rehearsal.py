"""The same addition again, as it was and with one thing changed.

A rehearsal runs in the program's process, behind its end, on arrays that lie as the program's did. Each form is timed
with its operands in the caches as far as they fit (back to back), with as many arrays in turns as the program had, and
with the caches full of other data. What the program took says how much of it was which.
"""

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecadd import _core, _host
from vecadd._install import install
from vecadd.bench.limits import WORD
from vecadd.why.layout import Layout, fresh, made
from vecadd.why.noted import Operand

ROUNDS = 7
CALLS, BLOCK = 6, 0.02  # calls at least, and seconds, of a form in a round; the first half fills the caches
SECONDS = 0.5  # of an addition's rehearsal
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


def rehearse(forms: Mapping[str, Form]) -> dict[str, Times]:
    """Times of each form. Empty where there is too little memory for that."""
    most = max(sum(layout.extent[1] - layout.extent[0] for layout in _layouts(form)) for form in forms.values())
    if 2 * most > SHARE * _host.memory_available():
        return {}
    cache = _core.host_facts()["l3"] or EVICTING
    sets = min(max(max(form.turns) for form in forms.values()), 1 + 2 * cache // most)
    while sets > 1 and 2 * sets * most > SHARE * _host.memory_available():
        sets -= 1
    arrays = {layouts: [made(layouts) for _ in range(sets)] for layouts in map(_layouts, forms.values())}
    calls = {name: _Call(form, arrays[_layouts(form)]) for name, form in forms.items()}
    evict = _evict() if most < 2 * cache else None
    warm: dict[str, list[float]] = {name: [] for name in forms}
    turned: dict[str, list[float]] = {name: [] for name in forms}
    cold: dict[str, list[float]] = {name: [] for name in forms}
    end = time.perf_counter() + SECONDS
    for _ in range(ROUNDS):
        for name, call in calls.items():
            warm[name] += _block(call.once)
            if sets > 1:
                turned[name] += _block(call.in_turn, 2 * sets)
        if evict:
            for name, call in calls.items():
                evict()
                cold[name].append(call.once())
        if time.perf_counter() > end:
            break
    overhead = _overhead()
    seconds = {name: max(median(taken) - overhead, 1e-9) for name, taken in warm.items()}
    return {
        name: Times(
            seconds[name],
            max(median(cold[name]) - overhead, seconds[name]) if evict else seconds[name],
            calls[name].faults,
            max(median(turned[name]) - overhead, 0.0) if turned[name] else 0.0,
        )
        for name in forms
    }


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
    """Seconds of the second half of some calls, one after the other: the caches then hold what they can."""
    taken: list[float] = []
    end = time.perf_counter() + BLOCK
    while len(taken) < calls or time.perf_counter() < end:
        taken.append(once())
    return taken[len(taken) // 2 :]


class _Call:
    def __init__(self, form: Form, sets: Sequence[Sequence[NDArray[Any]]]) -> None:
        self.form = form
        self._add: Callable[..., Any] = partial(_core.add, device=form.device) if form.via == "add" else np.add
        of_sets = [_operands(form, arrays) for arrays in sets]
        self._turns = [
            tuple(of_sets[turn % turns][number] for number, turns in enumerate(form.turns)) for turn in range(len(sets))
        ]
        self._next = 0
        self.faults = 0.0

    def in_turn(self) -> float:
        """Seconds of one addition, of the next arrays."""
        self._next = (self._next + 1) % len(self._turns)
        return self.once(self._next)

    def once(self, turn: int = 0) -> float:
        """Seconds of one addition."""
        a, b, written = self._turns[turn]
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


__all__: Sequence[str] = ["Form", "Times", "limit", "rehearse", "written"]
