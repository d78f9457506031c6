"""The verdict clock: rounds in which the contestant, tuned and the nearest rung are timed one after the other."""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vecadd import _core
from vecadd.bench.timing import interval, paired_interval
from vecadd.judge.places import Room
from vecadd.judge.session import FoundError, Session

TUNED = "tuned"
LOOKS = 3  # calls of each rung before the rounds, to find the nearest
ROUNDS = 40


@dataclass(frozen=True)
class Timed:
    """Seconds at a size drawn near the asked one: the contestant's median with its 95 % interval, tuned's and the
    nearest rung's medians, and how many times as long as each of both the contestant takes: low, median, high."""

    asked: int
    n: int
    seconds: tuple[float, float, float]
    tuned: float
    over_tuned: tuple[float, float, float]
    rung: str
    rung_seconds: float
    over_rung: tuple[float, float, float]


def rungs(dtype: str, capability: int) -> list[dict[str, Any]]:
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


def time(session: Session, n: int, candidates: Sequence[Mapping[str, Any]], rounds: int) -> Timed:
    """Times one size, near n."""
    near = session.near(n)
    room = session.stage(near)
    where = f"{near} elements, timed"
    for _ in range(LOOKS):  # the first loads or compiles what is called
        own = session.seconds(room, where)
    looked = {name: min(found) for name, found in _looks(session, room, candidates) if found}
    nearest = min(looked, key=lambda name: abs(math.log(looked[name] / own)))
    names = dict.fromkeys((None, TUNED, nearest))
    samples: dict[str | None, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        order = list(names)
        session.random.shuffle(order)
        for name in order:
            samples[name].append(session.seconds(room, where, rung=name))
    session.drop()
    return Timed(
        n,
        near,
        interval(samples[None]),
        statistics.median(samples[TUNED]),
        paired_interval(samples[None], samples[TUNED]),
        nearest,
        statistics.median(samples[nearest]),
        paired_interval(samples[None], samples[nearest]),
    )


def _looks(session: Session, room: Room, candidates: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, list[float]]]:
    """Seconds of a few calls of each rung; none of one that refuses this size."""
    for rung in candidates:
        name = rung["name"]
        try:
            yield name, [session.seconds(room, name, rung=name) for _ in range(LOOKS)]
        except FoundError as found:
            if found.finding.kind != "raises":
                raise
            yield name, []
