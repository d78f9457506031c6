"""The shares of copies and kernels in a transfer rung's time, and the rates that the copies reach on the link.

They come from the rung's own events around each copy and kernel, and the host's clock around each allocation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from vecadd import _core
from vecadd.bench.operands import Buffers, WrongSumError
from vecadd.bench.options import find_dtype
from vecadd.bench.steps import Step, at_work, steps
from vecadd.profile import child
from vecadd.profile.ncu import ProfilerError
from vecadd.profile.spec import Spec

ARRAYS: Mapping[str, int] = {"to_device": 2, "to_host": 1}  # that cross the link each way
TITLES: Mapping[str, str] = {
    "to_device": "copies to the device",
    "kernel": "kernels",
    "to_host": "copies to the host",
    "allocate": "allocation",
    "free": "release",
}


@dataclass(frozen=True)
class Part:
    """All copies of one direction, or all kernels: seconds in which they were at work, beside other parts or not, and
    those of one of them."""

    what: str
    count: int
    seconds: float
    bytes: float | None
    median: float
    least: float
    most: float

    @property
    def gbps(self) -> float | None:
        """GB/s while it copies; None for kernels."""
        return self.bytes / self.seconds / 1e9 if self.bytes and self.seconds else None


@dataclass(frozen=True)
class Transfer:
    """One run of a rung. ``seconds`` from the first step's begin to the last one's end, None where it has no step."""

    parts: tuple[Part, ...]
    seconds: float | None

    def share(self, part: Part) -> float:
        """The part's share of the seconds of all parts, added up."""
        return part.seconds / total if (total := sum(each.seconds for each in self.parts)) else 0.0

    def as_dict(self) -> dict[str, Any]:
        """This run as plain dicts, lists, numbers and strings."""
        return {"parts": [asdict(part) | {"share": self.share(part), "gbps": part.gbps} for part in self.parts]}


@dataclass(frozen=True)
class Link:
    """The link's rates to compare copies with, GB/s: of probes in each direction, and in theory."""

    to_device: float | None
    to_host: float | None
    theory: float | None
    name: str


def profile(spec: Spec) -> Transfer:
    """One run of the rung; raises ProfilerError where its steps cannot be timed."""
    return of_events(spec, _timeline(spec))


def of_events(spec: Spec, events: Sequence[Step]) -> Transfer:
    """The run from the rung's own timeline."""
    array = spec.n * find_dtype(spec.dtype).itemsize
    shared = any(rung["name"] == spec.rung and rung["stages"] == "shared" for rung in _core.rungs())
    parts = []
    for what in dict.fromkeys(event.what for event in events):
        durations = [event.end - event.begin for event in at_work(events) if event.what == what]
        crossing = ARRAYS[what] * array if what in ARRAYS and not shared else None
        parts.append(
            Part(what, len(durations), sum(durations), crossing, median(durations), min(durations), max(durations))
        )
    return Transfer(tuple(parts), max((event.end for event in events), default=None))


def _timeline(spec: Spec) -> list[Step]:
    events: list[Step] = []

    def watched(used: Buffers) -> None:
        events.extend(steps(_core.timeline(spec.rung, used.a, used.b, used.out, params=dict(spec.params))))

    try:
        child.run(spec, watched)
    except (MemoryError, RuntimeError, TypeError, ValueError, WrongSumError) as error:
        raise ProfilerError(f"{type(error).__name__}: {error}") from error
    return events
