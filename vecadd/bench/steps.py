"""The steps of a transfer, and how long each was at work.

A step's time runs from its place in its stream, and so includes what it waited for others: a link carries one copy a
direction at a time, and kernels share the GPU. Four uploads queued at once take four times as long by their own clocks
as the link was busy. Each kind of step has one engine here, which serves them in the order in which they ended.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from vecadd.figures import Figure

KINDS = ("to_device", "kernel", "to_host")


class Step(NamedTuple):
    """One copy, kernel or allocation; ``stream`` is -1 where the host's clock timed it."""

    what: str
    stream: int
    chunk: int
    begin: float  # seconds
    end: float


def steps(timeline: Iterable[Sequence[Any]]) -> list[Step]:
    """The steps of ``_core.timeline``, or of a row's "timeline"."""
    return [Step(*step) for step in timeline]


def at_work(found: Sequence[Step]) -> list[Step]:
    """The same steps, each from when its engine was free."""
    free: dict[str, float] = {}
    begins: dict[int, float] = {}
    for place in sorted(range(len(found)), key=lambda place: found[place].end):
        step = found[place]
        begins[place] = min(step.end, max(step.begin, free.get(step.what, step.begin)))
        free[step.what] = step.end
    return [step._replace(begin=begins[place]) for place, step in enumerate(found)]


def stages(found: Sequence[Step]) -> dict[str, float]:
    """Seconds in which each kind of step was at work."""
    working = at_work(found)
    return {kind: sum(step.end - step.begin for step in working if step.what == kind) for kind in KINDS}


def stages_of(row: Figure) -> Mapping[str, float] | None:
    """The stages of a row; None where it has none."""
    found: Mapping[str, float] | None = row.params.get("stages")
    return found
