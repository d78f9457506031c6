"""What a judgement came to: the contestant's times, and the verdict for a terminal, a notebook, a file and a test."""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vecadd import _core
from vecadd.bench.timing import interval, paired_interval
from vecadd.judge.session import GuardedArrays, RejectedError, Session
from vecadd.model.theory import bytes_moved
from vecadd.tables import Pair, ShownAsPairs, Table, columns, show_rate, show_seconds, show_size

# The verdict clock: rounds in which the contestant, tuned and the nearest rung are timed one after the other.

TUNED = "tuned"
LOOKS = 3  # calls of each rung before the rounds, to find the nearest
ROUNDS = 40


Interval = tuple[float, float, float]  # low, median, high


@dataclass(frozen=True)
class Size:
    """A contestant's time at n elements, drawn near the ``asked`` number, in seconds: the median with its 95 %
    interval, beside ``tuned``, the nearest rung and the limit, which is None where the arrays fit in the L2.
    ``over_tuned`` and ``over_rung`` are its times as a multiple of theirs, by rounds. ``advice`` says what to try
    next."""

    asked: int
    n: int
    bytes: int
    seconds: Interval
    tuned: float
    over_tuned: Interval
    rung: str
    rung_seconds: float
    over_rung: Interval
    limit: float | None = None
    advice: tuple[str, ...] = ()

    @property
    def gbps(self) -> float:
        """GB/s of all three arrays, at the median."""
        return self.bytes / self.seconds[1] / 1e9

    @property
    def share(self) -> float | None:
        """Of the limit; None without one."""
        return None if self.limit is None else self.limit / self.seconds[1]

    @property
    def placed(self) -> str:
        """Its place on the ladder, in words: "as float4", "0.91 (0.9 to 0.92) x float4's time"."""
        low, _, high = self.over_rung
        return f"as {self.rung}" if low <= 1 <= high else f"{_ratio(self.over_rung)} x {self.rung}'s time"


def find_candidates(dtype: str, capability: int) -> list[dict[str, Any]]:
    """The rungs that a contestant is placed among: those that fill the GPU and write the sum of that dtype."""
    return [
        rung
        for rung in _core.rungs()
        if rung["kind"] == "device"
        and dtype in rung["dtypes"]
        and rung["sum"] == "written"
        and not rung["blocks"]
        and rung["min_cc"] <= capability
    ]


def time_size(session: Session, n: int, candidates: Sequence[Mapping[str, Any]], rounds: int) -> Size:
    """Times one size, near n; the limit and the advice are for the caller to add."""
    near = session.near(n)
    room = session.stage(near)
    where = f"{near} elements, timed"
    for _ in range(LOOKS):  # the first loads or compiles what is called
        own = session.seconds(room, where)
    looked = {name: min(found) for name, found in _time_candidates(session, room, candidates) if found}
    nearest = min(looked, key=lambda name: abs(math.log(looked[name] / own)))
    names = dict.fromkeys((None, TUNED, nearest))
    samples: dict[str | None, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        order = list(names)
        session.random.shuffle(order)
        for name in order:
            samples[name].append(session.seconds(room, where, rung=name))
    session.drop()
    return Size(
        asked=n,
        n=near,
        bytes=bytes_moved(near, session.itemsize),
        seconds=interval(samples[None]),
        tuned=statistics.median(samples[TUNED]),
        over_tuned=paired_interval(samples[None], samples[TUNED]),
        rung=nearest,
        rung_seconds=statistics.median(samples[nearest]),
        over_rung=paired_interval(samples[None], samples[nearest]),
    )


def _time_candidates(
    session: Session, room: GuardedArrays, candidates: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, list[float]]]:
    """Seconds of a few calls of each rung; none of one that refuses this size."""
    for rung in candidates:
        name = rung["name"]
        try:
            yield name, [session.seconds(room, name, rung=name) for _ in range(LOOKS)]
        except RejectedError as found:
            if found.kind != "raises":
                raise
            yield name, []


# What a judgement came to: for a terminal, a notebook, a file and a test.

METHOD = (
    "each call on operands that are new and become ready only when the GPU comes to it, at a place drawn at random; "
    "out, both operands and the memory around them compared bit for bit right after it, in the order of its stream; "
    "times by CUDA events, after an addition of other arrays that fills the L2 where the operands are not small, "
    "medians of interleaved rounds with their 95 % interval; limits from probes in a process of their own"
)


@dataclass(frozen=True)
class Verdict(ShownAsPairs):
    """Accepted, or why not: ``kind`` is one of `vecadd.judge.session.KINDS`, ``words`` what was seen; both are empty
    where it is accepted. ``checked`` says what was checked, ``sizes`` has its times where it was accepted."""

    name: str
    dtype: str
    arrays: str
    gpu: str
    kind: str
    words: str
    checked: tuple[str, ...]
    sizes: tuple[Size, ...]

    @property
    def accepted(self) -> bool:
        """Whether nothing was found that rejects it."""
        return not self.kind

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings."""
        sizes = [asdict(size) | {"gbps": size.gbps, "share": size.share, "placed": size.placed} for size in self.sizes]
        return asdict(self) | {"accepted": self.accepted, "sizes": sizes}

    def table(self) -> Table:
        """A line for each size that was timed."""
        shown = Table(
            f"{self.name}, {self.dtype}",
            columns("asked", "n", "seconds", "95 %", "GB/s", "% limit", "tuned", "time / tuned", "on the ladder"),
            optional_columns=("95 %", "tuned"),
        )
        for size in self.sizes:
            low, middle, high = size.seconds
            shown.add(
                show_size(size.asked),
                str(size.n),
                show_seconds(middle),
                f"{show_seconds(low)} to {show_seconds(high)}",
                show_rate(size.gbps),
                "-" if size.share is None else f"{100 * size.share:.0f}",
                show_seconds(size.tuned),
                _ratio(size.over_tuned),
                size.placed,
            )
        return shown

    def sentences(self) -> list[str]:
        """The verdict, and what to try next at each size."""
        if not self.accepted:
            return [f"rejected: {self.kind}: {self.words}"]
        advice = [f"{show_size(size.asked)}: {' '.join(size.advice)}" for size in self.sizes if size.advice]
        return [*advice, "accepted"]

    def _rows(self) -> list[Pair]:
        rows: list[Pair] = [
            ("contestant", [f"{self.name}, {self.dtype}, {self.arrays} arrays, on {self.gpu}"]),
            ("verdict", ["accepted"] if self.accepted else [f"rejected: {self.kind}", self.words]),
            ("checked", self.checked or ["nothing"]),
        ]
        return [*rows, *((show_size(size.asked), _lines(size)) for size in self.sizes)]


def _ratio(interval: Interval) -> str:
    low, middle, high = interval
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"


def _lines(size: Size) -> list[str]:
    low, middle, high = size.seconds
    share = "" if size.share is None else f", {100 * size.share:.0f} % of the limit"
    return [
        f"{size.n} elements",
        f"{show_seconds(middle)} ({show_seconds(low)} to {show_seconds(high)}), {show_rate(size.gbps)} GB/s{share}",
        f"{_ratio(size.over_tuned)} x tuned's {show_seconds(size.tuned)}",
        f"on the ladder {size.placed}",
        *size.advice,
    ]


def make_verdict(spec: Mapping[str, Any], dtype: str, gpu: str, **found: Any) -> Verdict:
    """A verdict on that contestant."""
    given = {"kind": "", "words": "", "checked": (), "sizes": ()} | found
    return Verdict(spec["name"], dtype, "pointers" if spec["path"].endswith(".cu") else spec["arrays"], gpu, **given)
