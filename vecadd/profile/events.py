"""Profiles without Nsight Compute: kernels and transfers by CUDA events, and what CUDA knows of a kernel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from statistics import median
from typing import Any

from vecadd import _core
from vecadd.bench.operands import DEVICE, Buffers, WrongSumError
from vecadd.bench.options import find_dtype
from vecadd.bench.steps import Step, at_work, steps
from vecadd.profile import child
from vecadd.profile.child import ProfiledRung
from vecadd.profile.ncu import Launch, ProfilerError

# A launch without Nsight Compute: its time by CUDA events, and what the CUDA runtime knows of its kernel. It reads no
# counter of the GPU.

RUNS = 9  # timed; the median counts

Raw = Mapping[str, tuple[float, str]]


def profile_kernel(spec: ProfiledRung, theory: float | None, why: str) -> Launch:
    """A launch of a device rung, with the names of Nsight Compute's metrics; ``theory`` is the DRAM's rate in theory,
    bytes a second, and ``why`` says why it has no counters.

    Raises ProfilerError where the rung fails."""
    seconds: list[float] = []
    facts: dict[str, Any] = {}

    def watched(used: Buffers) -> None:
        facts.update(_core.rung_facts(spec.rung, spec.dtype, spec.n, block=spec.block, params=dict(spec.params)))
        for _ in range(RUNS):
            if spec.facts["sum"] != "written":
                DEVICE.clear(used.out)
            seconds.append(
                _core.run_rung(spec.rung, used.a, used.b, used.out, block=spec.block, params=dict(spec.params))
            )

    _run(spec, watched)
    duration = median(seconds)
    return Launch(spec.rung, {**_of_time(spec, duration, theory), **_of_launch(facts)}, why=why)


def bytes_moved(spec: ProfiledRung) -> int:
    """Bytes that the rung has to move: of its operands and its sum, each once."""
    words = spec.facts["bytes_per_element"] // 4 or 3  # a transfer's row does not say
    return spec.n * words * find_dtype(spec.dtype).itemsize


def _of_time(spec: ProfiledRung, duration: float, theory: float | None) -> Raw:
    share = {"vecadd__needed.pct": (100 * bytes_moved(spec) / duration / theory, "%")} if theory and duration else {}
    return {"gpu__time_duration.sum": (duration, "s"), **share}


def _of_launch(facts: Mapping[str, Any]) -> Raw:
    block, grid = prod(facts["block"]), prod(facts["grid"])
    plain = {
        "sm__maximum_warps_per_active_cycle_pct": 100 * facts["occupancy"],
        "launch__registers_per_thread": facts["registers"],
        "launch__shared_mem_per_block_static": facts["static_shared"],
        "launch__shared_mem_per_block_dynamic": facts["dynamic_shared"],
        "launch__block_size": block,
        "launch__grid_size": grid,
        "launch__thread_count": block * grid,
        "launch__waves_per_multiprocessor": facts["waves"],
    }
    return {name: (float(value), "") for name, value in plain.items()}


# The shares of copies and kernels in a transfer rung's time, and the rates that the copies reach on the link.
#
# They come from the rung's own events around each copy and kernel, and the host's clock around each allocation.

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


def profile_transfer(spec: ProfiledRung) -> Transfer:
    """One run of the rung; raises ProfilerError where its steps cannot be timed."""
    events: list[Step] = []

    def watched(used: Buffers) -> None:
        events.extend(steps(_core.timeline(spec.rung, used.a, used.b, used.out, params=dict(spec.params))))

    _run(spec, watched)
    return transfer_of_events(spec, events)


def transfer_of_events(spec: ProfiledRung, events: Sequence[Step]) -> Transfer:
    """The run from the rung's own timeline."""
    array = spec.n * find_dtype(spec.dtype).itemsize
    shared = spec.facts["stages"] == "shared"
    parts = []
    for what in dict.fromkeys(event.what for event in events):
        durations = [event.end - event.begin for event in at_work(events) if event.what == what]
        crossing = ARRAYS[what] * array if what in ARRAYS and not shared else None
        parts.append(
            Part(what, len(durations), sum(durations), crossing, median(durations), min(durations), max(durations))
        )
    return Transfer(tuple(parts), max((event.end for event in events), default=None))


def _run(spec: ProfiledRung, watched: Callable[[Buffers], None]) -> None:
    try:
        child.run_rung(spec, watched)
    except (MemoryError, RuntimeError, TypeError, ValueError, WrongSumError) as error:
        raise ProfilerError(f"{type(error).__name__}: {error}") from error
