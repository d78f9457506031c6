"""That additions report the floating-point flags of their sums, and no others.

Sums that raise nothing are added together, in large calls that have to be silent: no pair raises what it should not.
Each sum that overflows is added in a call of its own, at one place or another of a vector of zeros: none stays silent.
Infinities of unlike signs and signalling NaNs, which are many, are added a few at a time. Where a call is dear, on the
way through a GPU, so are the others.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.proof import exact
from benchmarks.proof.cases import Block, bits_of
from benchmarks.proof.exact import INVALID, NAMES, OVERFLOW, Array

Counts = dict[str, Any]

SAID = {OVERFLOW: "overflow", INVALID: "invalid value"}  # by NumPy, to an errstate's call


@dataclass(frozen=True)
class Flagged:
    """``add(a, b, out)`` for vectors. ``lanes``: the length of vectors in which one sum overflows; 0 if calls are
    expensive. ``few``: how many other sums that raise a flag are added at a time."""

    add: Callable[[Array, Array, Array], Any]
    lanes: int = 64
    few: int = 32


@contextmanager
def heard() -> Iterator[list[str]]:
    """The flags that are reported to NumPy meanwhile, "overflow" or "invalid value"."""
    found: list[str] = []
    with np.errstate(all="call", call=lambda kind, _flags: found.append(kind)):
        yield found


def none_yet() -> Counts:
    """Counts, zero at first, of checked calls, and of checked sums by the flag that they raise; ``wrong`` calls
    reported other flags."""
    return {"calls": 0, "silent": 0, "overflow": 0, "invalid": 0, "wrong": 0, "first": None}


def check_block(counts: Counts, found: set[str], due: int) -> None:
    """Compares what a call of whole blocks reported with the flags that its sums raise."""
    counts["calls"] += 1
    if found != {SAID[flag] for flag in SAID if due & flag}:
        _wrong(counts, "a block", found)


def check(counts: Counts, way: Flagged, block: Block) -> None:
    """Adds the block's sums again, apart by what they raise."""
    a, b, out = _room(block.due.size)
    for flag in (0, *SAID):
        n = exact.select(flag, block.flags, block.lefts.start, (a, b))
        counts[NAMES.get(flag, "silent")] += n
        operands, size = [a[:n], b[:n], out[:n]], way.few if flag else max(n, 1)
        if flag == OVERFLOW and way.lanes:
            operands, size = _among_zeros(operands, way.lanes), way.lanes
        _check_calls(counts, way, flag, [array.view(block.case.a) for array in operands], size)


def _among_zeros(operands: list[Array], lanes: int) -> list[Array]:
    """Each element in a vector of its own, at every place in turn."""
    n = operands[0].size
    spread = np.zeros((3, n, lanes), np.uint16)
    for whole, part in zip(spread, operands, strict=True):
        whole[np.arange(n), np.arange(n) % lanes] = part
    return [whole.reshape(-1) for whole in spread]


def _check_calls(counts: Counts, way: Flagged, flag: int, operands: list[Array], size: int) -> None:
    """Adds ``size`` at a time; each call reports the flag, or nothing for 0."""
    a, b, out = operands
    due = [SAID[flag]] if flag else []
    starts = range(0, a.size, size)
    with heard() as found:
        for k in starts:
            way.add(a[k : k + size], b[k : k + size], out[k : k + size])
    counts["calls"] += len(starts)
    if found == due * len(starts):
        return
    for k in starts:  # again one by one, to tell which
        with heard() as found:
            way.add(a[k : k + size], b[k : k + size], out[k : k + size])
        if found != due:
            at = k + int(np.argmax((a[k : k + size].view("u2") | b[k : k + size].view("u2")) != 0))
            _wrong(counts, f"{bits_of(a[at:])} + {bits_of(b[at:])} in a call of {min(size, a.size - k)}", set(found))


def _wrong(counts: Counts, where: str, found: set[str]) -> None:
    counts["wrong"] += 1
    if counts["first"] is None:
        counts["first"] = f"{where}: {', '.join(sorted(found)) or 'nothing'}"


@cache
def _room(n: int) -> tuple[Array, Array, Array]:
    """Room for the operands and the sums of one call, used again by the next."""
    a, b, out = np.empty((3, n + 1), np.uint16)
    return a, b, out
