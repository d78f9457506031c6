"""vecadd.why.diagnosis: the one reason of an addition is the one that shows and whose mending gains most in a replay.

The replays' times are given here, so that no test depends on a clock.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

import vecadd
from vecadd.why import diagnosis, replay
from vecadd.why.diagnosis import AT_LIMIT, CACHE, UNKNOWN, diagnose
from vecadd.why.layout import Layout, overlap_in_part
from vecadd.why.receipt import INTERRUPTED, stop
from vecadd.why.recording import AdditionGroup, Operand, SourceLine, start
from vecadd.why.replay import Form, ReplayTimes

pytestmark = pytest.mark.no_native

SECONDS = 1e-3  # of each addition here
N = 1 << 20


def layout_of(x: np.ndarray[Any, Any]) -> Layout:
    return Layout(x.dtype, x.shape, x.strides, x.ctypes.data)


def addition(a: Any, b: Any, out: Any = None, **more: Any) -> AdditionGroup:
    """What would be recorded of 10 calls."""
    target = np.add(a, b) if out is None else out
    operands: list[Operand] = [layout_of(x) if isinstance(x, np.ndarray) else type(x) for x in (a, b, target)]
    given: dict[str, Any] = {
        "line": SourceLine("program.py", 1, "f"), "through": None, "via": "numpy", "a": operands[0], "b": operands[1],
        "out": operands[2], "new": out is None, "device": None, "other_keywords": False, "route": None, "calls": 10,
        "nbytes": 10, "seconds": 10 * SECONDS, "first_seconds": SECONDS, "first_faults": 0,
        "later_faults": 0.0, "faulted": float("later_faults" in more),
        "loops": 1, "loop_elements": float(target.size), "installed": False,
    }  # fmt: skip
    return AdditionGroup(**(given | more))


@pytest.fixture(autouse=True)
def two_threads() -> Any:
    before = vecadd.set_num_threads(2)
    yield
    vecadd.set_num_threads(before)


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Form]]:
    """replayed(**times) gives these times to forms; all others take SECONDS. Gives the forms that were asked for."""

    def give(limit: float = SECONDS, **times: float | ReplayTimes) -> dict[str, Form]:
        asked: dict[str, Form] = {}

        def replays(forms: Mapping[str, Form], calls: int) -> dict[str, ReplayTimes]:
            assert calls == 10
            asked.update(forms)
            found = {name: times.get(name.replace(" ", "_"), SECONDS) for name in forms}
            return {name: x if isinstance(x, ReplayTimes) else ReplayTimes(x, x) for name, x in found.items()}

        monkeypatch.setattr(replay, "replay", replays)
        monkeypatch.setattr(replay, "host_limit", lambda nbytes: limit)
        return asked

    return give


X, Y = np.ones(N), np.ones(N)
ROWS = np.ones((N // 4, 4))
THROUGH_GPU = {"route": "transfer", "device": 1, "memory": "ordinary"}
SHOWING: dict[str, AdditionGroup] = {
    "a pageable copy": addition(X, Y, X, via="add", device="cuda:1", route=THROUGH_GPU),
    "operands that overlap": addition(X[1:], Y[1:], X[:-1]),
    "a cast in pieces": addition(X, Y.astype("f4"), X, loops=128, loop_elements=8192.0),
    "short rows": addition(ROWS, np.ones(4), ROWS, loops=128, loop_elements=8192.0),
    "gaps between elements": addition(X[::2], Y[::2], Y[1::2]),
    "page faults of a new sum": addition(X, Y, later_faults=2048.0),
    "first use of memory": addition(X, X, Y, later_faults=2048.0),
    "one thread": addition(X, Y, X),
}
EVIDENCE = {
    "a pageable copy": "operands in ordinary memory, which the GPU's copies cannot reach",
    "operands that overlap": "the sum overlaps a part of an operand",
    "a cast in pieces": "float64 + float32: converted in 128 pieces of 8192 elements",
    "short rows": "128 calls of NumPy's loop, 8192 elements each, over rows of 4",
    "gaps between elements": "elements are 16 bytes apart",
    "page faults of a new sum": "2,048 faults a call",
    "first use of memory": "2,048 faults a call, in arrays to which nothing was written before",
    "one thread": "NumPy adds on one of 2 threads",
}


def evidence(name: str, group: AdditionGroup) -> str | None:
    (reason,) = (reason for reason in diagnosis.REASONS if reason.name == name)
    return reason.find_evidence(group)


def test_every_reason_of_the_table_is_here() -> None:
    assert [reason.name for reason in diagnosis.REASONS] == list(SHOWING) == list(EVIDENCE)


@pytest.mark.parametrize("name", SHOWING)
def test_a_reason_that_shows_is_the_one_where_its_mending_gains_most(
    name: str, replayed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed(**{name.replace(" ", "_"): SECONDS / 4, "written": SECONDS})
    monkeypatch.setattr(replay, "link_rate", {1: 3 * X.nbytes / (SECONDS / 8)}.__getitem__)
    found = diagnose(SHOWING[name])
    assert (found.reason, found.evidence, found.change and found.change.gain) == (name, EVIDENCE[name], 4)
    assert (found.replayed, found.limit) == (SECONDS, SECONDS / 8 if name == "a pageable copy" else SECONDS)


@pytest.mark.parametrize("name", SHOWING)
def test_a_reason_that_does_not_show_is_never_found(name: str) -> None:
    """Of a sum in place on one thread that has been told to take but one: nothing shows."""
    vecadd.set_num_threads(1)
    for group in (addition(X, Y, X), addition(ROWS, ROWS, ROWS), addition(X, 1.0, X)):
        assert evidence(name, group) is None


def test_page_locked_operands_are_no_pageable_copy() -> None:
    for memory, shows in (("ordinary", True), ("pinned", False)):
        group = addition(X, Y, X, via="add", route={"route": "hybrid", "memory": memory})
        assert (evidence("a pageable copy", group) is not None) is shows


def test_faults_of_operands_and_of_copies_are_not_the_sums() -> None:
    for out in (X, X[:-1]):
        group = addition(X[1:] if out is not X else X, Y[: out.size], out, later_faults=2048.0)
        assert evidence("first use of memory", group) is None


def test_the_largest_gain_is_the_reason_and_the_others_are_told(replayed: Any) -> None:
    replayed(page_faults_of_a_new_sum=SECONDS / 2, one_thread=SECONDS / 3)
    found = diagnose(SHOWING["page faults of a new sum"])
    assert [(change.reason, round(change.gain or 0, 6)) for change in found.changes] == [
        ("one thread", 3),
        ("page faults of a new sum", 2),
    ]
    assert found.change is found.changes[0]


def test_a_gain_that_could_be_noise_does_not_count(replayed: Any) -> None:
    replayed(one_thread=SECONDS / 1.04)
    assert diagnose(SHOWING["one thread"]).changes == ()


def test_without_a_gain_an_addition_near_the_limit_is_at_it(replayed: Any) -> None:
    replayed(limit=SECONDS / 1.1)
    assert diagnose(SHOWING["one thread"]).reason == AT_LIMIT
    replayed(limit=SECONDS / 3)
    found = diagnose(SHOWING["one thread"])
    assert (found.reason, found.change) == (UNKNOWN, None)
    replayed(limit=SECONDS * 2)
    assert diagnose(SHOWING["one thread"]).limit == SECONDS  # the replay itself was faster than the probe


def test_what_vecadd_added_is_replayed_with_vecadd(replayed: Any) -> None:
    asked = replayed()
    diagnose(addition(X, Y, X, installed=True))
    assert list(asked) == ["was", "written"]
    assert asked["was"].installed


@pytest.mark.parametrize("times", [0.4, 2.5])
def test_what_the_replay_does_not_repeat_is_not_explained(times: float, replayed: Any) -> None:
    replayed(was=SECONDS * times, written=SECONDS * times, one_thread=SECONDS * times / 2)
    found = diagnose(SHOWING["one thread"])
    assert (found.reason, found.change) == (UNKNOWN, None)
    assert f"took {times:.2f} x the time" in found.evidence
    assert found.changes[0].gain == 2  # what the replays say is told all the same


def test_operands_evicted_from_the_cache_are_told_by_the_time_between_cache_and_memory(replayed: Any) -> None:
    between = ReplayTimes(SECONDS / 2, SECONDS * 3 / 2)
    replayed(was=between, written=between, one_thread=between)
    found = diagnose(SHOWING["one thread"])
    assert (found.reason, found.cold, found.change and found.change.gain) == (CACHE, 0.5, 2)


def test_changes_are_replayed_with_the_operands_where_they_were(replayed: Any) -> None:
    was, mended = ReplayTimes(SECONDS / 4, SECONDS), ReplayTimes(SECONDS / 5, SECONDS / 8)
    replayed(was=was, written=was, one_thread=mended)
    found = diagnose(SHOWING["one thread"])
    assert found.cold == 1
    assert [(change.reason, change.gain) for change in found.changes] == [("one thread", 8), (CACHE, 4)]


def test_where_memory_is_no_slower_the_operands_count_as_in_the_caches(replayed: Any) -> None:
    """Of an addition that does not wait for memory, the time says nothing of where its operands were."""
    was = ReplayTimes(SECONDS * 0.9, SECONDS * 1.1)
    replayed(was=was, written=was, one_thread=ReplayTimes(SECONDS * 0.3, SECONDS * 1.1))
    found = diagnose(SHOWING["one thread"])
    assert (found.cold, found.change and round(found.change.gain or 0, 6)) == (0, 3)


def test_faults_in_a_part_of_the_calls_cost_that_part(replayed: Any) -> None:
    group = replace(SHOWING["page faults of a new sum"], later_faults=1024.0, faulted=0.5)
    asked = replayed(was=SECONDS * 3 / 2, page_faults_of_a_new_sum=SECONDS / 2, written=SECONDS / 2)
    found = diagnose(group)
    assert (asked["was"].untouched, asked["written"].untouched) == (True, False)
    assert (found.replayed, found.change and found.change.gain) == (SECONDS, 2)
    assert evidence("page faults of a new sum", replace(group, faulted=0.09)) is None


def test_changes_keep_what_is_the_same_and_part_what_is_not(replayed: Any) -> None:
    asked = replayed()
    diagnose(SHOWING["short rows"])
    turned = asked["short rows"]
    assert isinstance(turned.a, Layout)
    assert isinstance(turned.b, Layout)
    assert (turned.a, turned.a.shape, turned.b.shape) == (turned.out, (4, N // 4), (4, 1))
    assert turned.a.dtype is turned.out.dtype  # or NumPy copies an operand
    diagnose(SHOWING["operands that overlap"])
    apart = asked["operands that overlap"]
    assert isinstance(apart.a, Layout)
    assert overlap_in_part(asked["was"].a, asked["was"].out)  # type: ignore[arg-type]
    assert not overlap_in_part(apart.a, apart.out)
    diagnose(SHOWING["a cast in pieces"])
    kept = asked["a cast in pieces"]
    assert isinstance(kept.b, Layout)
    assert (kept.a, kept.b.dtype) == (kept.out, np.dtype("float64"))
    diagnose(addition(X.astype(">f8"), Y, X, loops=128, loop_elements=8192.0))
    mended = asked["a cast in pieces"].a
    assert isinstance(mended, Layout)
    assert mended.dtype is np.dtype("float64")
    diagnose(addition(X[::-2], Y[::-2], np.ones(N)[::-2]))
    close = asked["gaps between elements"]
    assert isinstance(close.a, Layout)
    assert (close.a.strides, close.out.strides) == ((8,), (8,))
    diagnose(SHOWING["a pageable copy"])
    assert asked["a pageable copy"] == replace(asked["was"], pinned=True)


class Small(IntEnum):
    ONE = 1


class Own(np.float32):
    def __new__(cls, *given: Any) -> "Own":
        raise AssertionError("code of the program's runs")


@pytest.mark.parametrize(
    ("group", "why"),
    [
        (addition(X, Y, X, other_keywords=True), "another keyword"),
        (addition(X, Y, via="add_many"), "pairs of add_many"),
        (addition(X.astype(object), X.astype(object)), "arrays of object"),
        (addition(X[:0], Y[:0]), "an operand is empty"),
        (replace(addition(X, Y), out=list), "not a NumPy array"),
        (replace(addition(X, Y), b=list), "type list"),
        (replace(addition(X, Y), b=Small), "type Small"),
        (replace(addition(X, Y), a=Own), "type Own"),
    ],
)
def test_what_cannot_be_made_again_is_not_known(group: AdditionGroup, why: str, replayed: Any) -> None:
    replayed(one_thread=SECONDS / 9)
    found = diagnose(group)
    assert (found.reason, found.changes) == (UNKNOWN, ())
    assert why in found.evidence


class Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, *given: Any) -> Any:
        raise self.error


@pytest.mark.parametrize("error", [OSError("no memory"), MemoryError("no memory"), ValueError("no memory")])
def test_a_replay_that_fails_leaves_the_reason_unknown(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "replay", Raises(error))
    found = diagnose(addition(X, Y))
    assert (found.reason, found.evidence) == (UNKNOWN, "it could not be replayed: no memory")


def test_an_interrupt_ends_the_replays_and_keeps_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "replay", Raises(KeyboardInterrupt()))
    start()
    X + Y
    X - X + Y  # another line
    receipt = stop()
    assert [line.diagnosis.evidence for line in receipt.lines] == [INTERRUPTED] * 2


def test_without_memory_for_it_nothing_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vecadd._machine.memory_available", lambda: 1 << 20)
    found = diagnose(SHOWING["one thread"])
    assert (found.reason, found.evidence) == (UNKNOWN, "there was too little memory to replay it")
