"""vecadd.why.reasons: the one reason of an addition is the one that shows and whose mending gains most in a rehearsal.

The rehearsals' times are given here, so that no test depends on a clock.
"""

import mmap
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vecadd
from vecadd.why import device, layout, reasons, rehearsal
from vecadd.why.layout import Layout, compact, elsewhere, fresh, share
from vecadd.why.noted import Noted, Operand, Place, start
from vecadd.why.reasons import AT_LIMIT, CACHE, UNKNOWN
from vecadd.why.receipt import INTERRUPTED, stop
from vecadd.why.rehearsal import Form, Times

pytestmark = pytest.mark.no_native

SECONDS = 1e-3  # of each addition here
N = 1 << 20


def lies(x: np.ndarray[Any, Any]) -> Layout:
    return Layout(x.dtype, x.shape, x.strides, x.ctypes.data)


def addition(a: Any, b: Any, out: Any = None, **more: Any) -> Noted:
    """What would be noted of 10 calls."""
    target = np.add(a, b) if out is None else out
    operands: list[Operand] = [lies(x) if isinstance(x, np.ndarray) else type(x) for x in (a, b, target)]
    given: dict[str, Any] = {
        "place": Place("program.py", 1, "f"), "through": None, "via": "numpy", "a": operands[0], "b": operands[1],
        "out": operands[2], "new": out is None, "device": None, "others": False, "pairs": 1, "route": None, "calls": 10,
        "nbytes": 1, "seconds": 10 * SECONDS, "estimated": False, "first_seconds": SECONDS, "first_faults": 0,
        "later_faults": 0.0, "faulted": float("later_faults" in more),
        "loops": 1.0, "elements": float(target.size), "installed": False,
    }  # fmt: skip
    return Noted(**(given | more))


@pytest.fixture(autouse=True)
def two_threads() -> Any:
    before = vecadd.set_num_threads(2)
    yield
    vecadd.set_num_threads(before)


@pytest.fixture
def rehearsed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Form]]:
    """rehearsed(**times) gives these times to forms; all others take SECONDS. Gives the forms that were asked for."""

    def give(limit: float = SECONDS, memory: bool = True, **times: float | Times) -> dict[str, Form]:
        asked: dict[str, Form] = {}

        def rehearse(forms: Mapping[str, Form], calls: int) -> dict[str, Times]:
            asked.update(forms)
            found = {name: times.get(name.replace(" ", "_"), SECONDS) for name in forms}
            every = {name: x if isinstance(x, Times) else Times(x, x, 4) for name, x in found.items()}
            return every if memory else {}

        monkeypatch.setattr(rehearsal, "rehearse", rehearse)
        monkeypatch.setattr(rehearsal, "limit", lambda nbytes: limit)
        monkeypatch.setattr(device, "link_limit", lambda nbytes: limit)
        return asked

    return give


X, Y = np.ones(N), np.ones(N)
ROWS = np.ones((N // 4, 4))
SHOWING: dict[str, Noted] = {
    "a pageable copy": addition(X, Y, X, via="add", device="cpu", route={"route": "transfer", "memory": "ordinary"}),
    "operands that overlap": addition(X[1:], Y[1:], X[:-1]),
    "a cast in pieces": addition(X, Y.astype("f4"), X, loops=128.0, elements=8192.0),
    "short rows": addition(ROWS, np.ones(4), ROWS, loops=128.0, elements=8192.0),
    "gaps between elements": addition(X[::2], Y[::2], Y[1::2]),
    "page faults of a new sum": addition(X, Y, later_faults=2048.0),
    "first use of memory": addition(X, X, Y, later_faults=2048.0),
    "one thread": addition(X, Y, X),
}


def test_every_reason_of_the_table_is_here() -> None:
    assert [reason.name for reason in reasons.REASONS] == list(SHOWING)


@pytest.mark.parametrize("name", SHOWING)
def test_a_reason_that_shows_is_the_one_where_its_mending_gains_most(name: str, rehearsed: Any) -> None:
    noted = SHOWING[name]
    rehearsed(**{name.replace(" ", "_"): SECONDS / 4, "written": SECONDS})
    found = reasons.find(noted)
    assert (found.reason, found.change and found.change.gain) == (name, 4)
    assert found.evidence
    assert found.rehearsed == SECONDS


@pytest.mark.parametrize("name", SHOWING)
def test_a_reason_that_does_not_show_is_never_found(name: str) -> None:
    """Of a sum in place on one thread that has been told to take but one: nothing shows."""
    vecadd.set_num_threads(1)
    (reason,) = (reason for reason in reasons.REASONS if reason.name == name)
    assert reason.shows(addition(X, Y, X)) is None
    assert reason.shows(addition(ROWS, ROWS, ROWS)) is None
    assert reason.shows(addition(X, 1.0, X)) is None


def test_elements_that_lie_apart_backwards_have_gaps_too(rehearsed: Any) -> None:
    rehearsed(gaps_between_elements=SECONDS / 4)
    found = reasons.find(addition(X[::-2], Y[::-2], np.ones(N)[::-2]))
    assert (found.reason, found.evidence) == ("gaps between elements", "elements lie 16 bytes apart")


def test_page_locked_operands_are_no_pageable_copy() -> None:
    (pageable,) = (reason for reason in reasons.REASONS if reason.name == "a pageable copy")
    for memory, shows in (("ordinary", True), ("pinned", False)):
        found = addition(X, Y, X, via="add", route={"route": "hybrid", "memory": memory})
        assert (pageable.shows(found) is not None) is shows


def test_the_largest_gain_is_the_reason_and_the_others_are_told(rehearsed: Any) -> None:
    noted = replace(SHOWING["page faults of a new sum"], later_faults=2048.0)
    rehearsed(page_faults_of_a_new_sum=SECONDS / 2, one_thread=SECONDS / 3)
    found = reasons.find(noted)
    assert [(change.reason, round(change.gain, 6)) for change in found.changes] == [
        ("one thread", 3),
        ("page faults of a new sum", 2),
    ]
    assert found.change is found.changes[0]


def test_a_gain_that_could_be_noise_is_none(rehearsed: Any) -> None:
    rehearsed(one_thread=SECONDS / 1.04)
    assert reasons.find(SHOWING["one thread"]).changes == ()


def test_without_a_gain_an_addition_near_the_limit_is_at_it(rehearsed: Any) -> None:
    rehearsed(limit=SECONDS / 1.1)
    assert reasons.find(SHOWING["one thread"]).reason == AT_LIMIT
    rehearsed(limit=SECONDS / 3)
    found = reasons.find(SHOWING["one thread"])
    assert (found.reason, found.change) == (UNKNOWN, None)


def test_what_vecadd_added_is_rehearsed_with_vecadd(rehearsed: Any) -> None:
    asked = rehearsed()
    reasons.find(addition(X, Y, X, installed=True))
    assert list(asked) == ["was", "written"]
    assert asked["was"].installed


@pytest.mark.parametrize("times", [0.4, 2.5])
def test_what_the_rehearsal_does_not_repeat_is_not_explained(times: float, rehearsed: Any) -> None:
    rehearsed(was=SECONDS * times, written=SECONDS * times, one_thread=SECONDS * times / 2)
    found = reasons.find(SHOWING["one thread"])
    assert (found.reason, found.change) == (UNKNOWN, None)
    assert f"took {times:.2f} x the time" in found.evidence
    assert found.changes[0].gain == 2  # what the rehearsals say is told all the same


def test_a_cache_that_did_not_hold_is_told_by_the_time_between_cache_and_memory(rehearsed: Any) -> None:
    between = Times(SECONDS / 2, SECONDS * 3 / 2, 0)
    rehearsed(was=between, written=between, one_thread=between)
    found = reasons.find(SHOWING["one thread"])
    assert (found.reason, found.cold, found.change and found.change.gain) == (CACHE, 0.5, 2)


def test_changes_are_rehearsed_with_the_operands_where_they_were(rehearsed: Any) -> None:
    was, mended = Times(SECONDS / 4, SECONDS, 0), Times(SECONDS / 5, SECONDS / 8, 0)
    rehearsed(was=was, written=was, one_thread=mended)
    found = reasons.find(SHOWING["one thread"])
    assert found.cold == 1
    assert [(change.reason, change.gain) for change in found.changes] == [("one thread", 8), (CACHE, 4)]


def test_faults_in_a_part_of_the_calls_cost_that_part(rehearsed: Any) -> None:
    noted = replace(SHOWING["page faults of a new sum"], later_faults=1024.0, faulted=0.5)
    asked = rehearsed(was=SECONDS * 3 / 2, page_faults_of_a_new_sum=SECONDS / 2, written=SECONDS / 2)
    found = reasons.find(noted)
    assert (asked["was"].fresh, asked["written"].fresh) == ("small", "")
    assert (found.rehearsed, found.change and found.change.gain) == (SECONDS, 2)


@pytest.mark.parametrize(
    ("nbytes", "faults", "faulted", "kind"),
    [
        (1 << 20, 256, 1, "small"),
        (1 << 20, 64, 0.25, "small"),
        (1 << 20, 2, 0, ""),
        (8 << 20, 2048, 1, "small"),
        (8 << 20, 4, 1, "huge"),
        (48 << 20, 477, 1, "huge"),
        (48 << 20, 12, 0.05, ""),
    ],
)
def test_the_size_of_the_pages_is_told_by_the_faults(nbytes: int, faults: float, faulted: float, kind: str) -> None:
    x, y, out = np.empty((3, nbytes // 8))
    assert reasons.page_kind(addition(x, y, out, later_faults=faults, faulted=faulted)) == kind


def test_operands_of_another_byte_order_are_mended_to_the_machines(rehearsed: Any) -> None:
    asked = rehearsed()
    reasons.find(addition(X.astype(">f8"), Y, X, loops=128.0, elements=8192.0))
    mended = asked["a cast in pieces"].a
    assert isinstance(mended, Layout)
    assert mended.dtype is np.dtype("float64")


def test_faults_of_a_sum_in_place_are_not_the_sums() -> None:
    assert reasons.page_kind(addition(X, Y, X, later_faults=2048.0)) == ""
    assert reasons.page_kind(addition(X[1:], Y[1:], X[:-1], later_faults=2048.0)) == ""


def test_where_memory_is_no_slower_the_operands_count_as_in_the_caches(rehearsed: Any) -> None:
    """Of an addition that does not wait for memory, the time says nothing of where its operands were."""
    was = Times(SECONDS * 0.9, SECONDS * 1.1, 0)
    rehearsed(was=was, written=was, one_thread=Times(SECONDS * 0.3, SECONDS * 1.1, 0))
    found = reasons.find(SHOWING["one thread"])
    assert (found.cold, found.change and round(found.change.gain, 6)) == (0, 3)


def test_changes_keep_what_is_the_same_and_part_what_is_not(rehearsed: Any) -> None:
    asked = rehearsed()
    reasons.find(addition(ROWS, np.ones(4), ROWS, loops=128.0, elements=8192.0))
    turned = asked["short rows"]
    assert isinstance(turned.a, Layout)
    assert isinstance(turned.b, Layout)
    assert (turned.a, turned.a.shape, turned.b.shape) == (turned.out, (4, N // 4), (4, 1))
    assert turned.a.dtype is turned.out.dtype  # or NumPy copies an operand
    reasons.find(SHOWING["operands that overlap"])
    apart = asked["operands that overlap"]
    assert isinstance(apart.a, Layout)
    assert share(asked["was"].a, asked["was"].out)  # type: ignore[arg-type]
    assert not share(apart.a, apart.out)
    reasons.find(SHOWING["a cast in pieces"])
    kept = asked["a cast in pieces"]
    assert isinstance(kept.b, Layout)
    assert (kept.a, kept.b.dtype) == (kept.out, np.dtype("float64"))


class Small(IntEnum):
    ONE = 1


class Own(np.float32):
    def __new__(cls, *given: Any) -> "Own":
        raise AssertionError("code of the program's runs")


@pytest.mark.parametrize(
    ("noted", "why"),
    [
        (addition(X, Y, X, others=True), "another keyword"),
        (addition(X, Y, via="add_many"), "pairs of add_many"),
        (addition(X.astype(object), X.astype(object)), "arrays of object"),
        (replace(addition(X, Y), out=list), "no NumPy array"),
        (replace(addition(X, Y), b=list), "type list"),
        (replace(addition(X, Y), b=Small), "type Small"),
        (replace(addition(X, Y), a=Own), "type Own"),
    ],
)
def test_what_cannot_be_made_again_is_not_known(noted: Noted, why: str, rehearsed: Any) -> None:
    rehearsed(one_thread=SECONDS / 9)
    found = reasons.find(noted)
    assert (found.reason, found.changes) == (UNKNOWN, ())
    assert why in found.evidence


@pytest.mark.parametrize("error", [OSError("no memory"), MemoryError("no memory"), ValueError("no memory")])
def test_a_rehearsal_that_fails_leaves_the_reason_unknown(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "rehearse", Raises(error))
    found = reasons.find(addition(X, Y))
    assert (found.reason, found.evidence) == (UNKNOWN, "it could not be rehearsed: no memory")


def test_an_interrupt_ends_the_rehearsals_and_keeps_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "rehearse", Raises(KeyboardInterrupt()))
    start()
    X + Y
    X - X + Y  # another line
    receipt = stop()
    assert [line.finding.evidence for line in receipt.lines] == [INTERRUPTED] * 2


class Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, *given: Any) -> Any:
        raise self.error


def test_without_memory_for_it_nothing_is_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vecadd._machine.memory_available", lambda: 1 << 20)
    found = reasons.find(SHOWING["one thread"])
    assert (found.reason, found.evidence) == (UNKNOWN, "there was too little memory to rehearse it")


@pytest.mark.parametrize("name", [*list(SHOWING)[1:], "written"])
def test_every_form_can_be_rehearsed(name: str) -> None:
    """With the real clock: each takes some time, and leaves NumPy's loops as they were."""
    noted = SHOWING.get(name, SHOWING["one thread"])
    plain = Form(noted.a, noted.b, noted.out, fresh=reasons.page_kind(noted))  # type: ignore[arg-type]
    mended = next((reason.mended(plain) for reason in reasons.REASONS if reason.name == name), plain)
    found = rehearsal.rehearse({"was": plain, name: mended})
    assert all(0 < times.warm <= times.cold for times in found.values())
    assert found["was"].faults > 0 or not plain.fresh


def test_each_place_in_a_cache_line_is_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time in the caches is the mean over the places, and only arrays that take turns are added in turns."""
    added: list[int] = []

    def add(a: Any, b: Any, out: Any) -> None:
        added.append(a.ctypes.data % 64)

    x = np.ones(1 << 14)
    differing = replace(lies(x), starts=(0, 16, 32, 48))
    monkeypatch.setattr(np, "add", add)
    monkeypatch.setattr(rehearsal, "_evict", lambda: lambda: None)
    monkeypatch.setattr(rehearsal, "BLOCK", 0.0)
    rehearsal.rehearse({"was": Form(differing, float, differing)})
    assert added == [start for start in (0, 16, 32, 48) for _ in range(rehearsal.CALLS)] * rehearsal.ROUNDS
    added.clear()
    rehearsal.rehearse({"was": Form(differing, float, differing, turns=(2, 1, 2))})
    assert added[:24] == [start for start in (0, 16, 32, 48) for _ in range(rehearsal.CALLS)]
    assert added[24:30] == [16, 0, 16, 0, 16, 0]
    added.clear()
    rehearsal.rehearse({"was": Form(differing, float, differing, turns=(3, 1, 3))})
    assert added[24:30] == [16, 32, 0, 16, 32, 0]
    added.clear()
    rehearsal.rehearse({"was": Form(lies(x), float, lies(x))})
    assert set(added) == {x.ctypes.data % 64}


def test_the_limit_is_probed() -> None:
    assert rehearsal.limit(3 << 16) > 0


def test_what_fills_the_caches_counts_as_often_as_the_program_did_it() -> None:
    """Of ten calls the first is the coldest, the next four fill the caches, and then each takes 1."""
    taken = [50.0, 9.0, 5.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert rehearsal.in_a_row(taken, 7) == (9 + 5 + 3 + 3 + 1 + 1) / 6
    assert rehearsal.in_a_row(taken, 1) == rehearsal.in_a_row(taken, rehearsal.CALLS) == (9 + 5 + 3 + 3 + 1) / 5
    assert rehearsal.in_a_row(taken, 1001) == (9 + 5 + 3 + 3 + 996) / 1000


def test_a_quick_form_has_more_rounds_than_a_slow_one_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: dict[Any, int] = {}

    def one_round(self: Any, evict: object) -> None:
        form = self._call.form
        rounds[form] = rounds.get(form, 0) + 1
        self.spent += rehearsal.SECONDS * (1.0 if form.a.dtype == "f4" else 0.1)
        self._warm.append(SECONDS)

    monkeypatch.setattr(rehearsal._Rehearsed, "round", one_round)
    slow, quick = (Form(lies(x), lies(Y), lies(Y)) for x in (X.astype("f4"), X))
    assert list(rehearsal.rehearse({"was": slow, "written": slow, "mended": quick})) == ["was", "written", "mended"]
    assert rounds == {slow: 1, quick: 5}  # each has half of the time, and the same form is not rehearsed twice


def test_mended_arrays_lie_where_numpy_lays_new_ones() -> None:
    """In small pages below NumPy's size for huge ones, and as far into the page as malloc's header reaches."""
    new = np.empty(layout.ALONE, np.uint8).ctypes.data % mmap.PAGESIZE
    noted, backwards = lies(X[3::2]), lies(X[::-1])
    (mended, reverse), again = layout.made([elsewhere(compact(noted), 1), elsewhere(backwards, 2)]), fresh(noted, False)
    assert mended.ctypes.data % mmap.PAGESIZE == new
    assert (reverse.ctypes.data - (N - 1) * 8) % mmap.PAGESIZE == new
    assert (again.ctypes.data - noted.address) % mmap.PAGESIZE == 0


@pytest.mark.parametrize(("nbytes", "kind"), [(3 << 20, False), (8 << 20, True)])
def test_arrays_have_the_pages_that_numpy_asks_for(nbytes: int, kind: bool) -> None:
    (array,) = layout.made([Layout(np.dtype("u1"), (nbytes,), (1,), 1 << 50)])
    flags = ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if match := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            holds = int(match[1], 16) <= array.ctypes.data + nbytes // 2 < int(match[2], 16)
        elif holds and line.startswith("VmFlags"):
            flags = line
    assert ("hg" in flags.split()) is kind
