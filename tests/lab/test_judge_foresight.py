"""Whether a contestant is faster on operands that it can foresee: told by times, which only a GPU has. Here a child
that is made up takes the times that a test gives it."""

from itertools import pairwise
from typing import Any

import pytest

from vecadd.judge import session
from vecadd.judge.session import FoundError, Session

CLOCK = {"clock_khz": 1_000_000, "l2": 1 << 20}
NOTHING = (0,) * 5
RIGHT = {
    "host": 0.0,
    "regions": [NOTHING] * 7,
    "at_rest": NOTHING,
    "later": NOTHING,
    "persisting": 0,
    "unordered": False,
}


class MadeUp:
    """A child whose calls take `known` seconds where the set is the one that came after the same set before, else 1."""

    def __init__(self, known: float) -> None:
        self.known = known
        self.asked: list[dict[str, Any]] = []
        self.follower: dict[str, str] = {}
        self.last = ""

    def ask(self, timeout: float, **question: Any) -> dict[str, Any]:
        self.asked.append(question)
        if question["ask"] != "call":
            return {}
        foreseen = self.follower.get(self.last) == question["stage"]
        self.follower[self.last] = self.last = question["stage"]
        return RIGHT | {"seconds": self.known if foreseen else 1.0}

    def sets(self) -> list[str]:
        """Those of the calls that are timed, in order."""
        return [asked["stage"] for asked in self.asked if asked["ask"] == "call" and asked["how"]["bare"]]


def check(child: Any) -> str:
    return session.check_foresight(Session(child, CLOCK, 4, timeout=1.0))


@pytest.mark.parametrize("known", [1.0, 0.95, 1.3])
def test_as_fast_in_any_order_is_right(known: float) -> None:
    assert "in a known order" in check(MadeUp(known))


def test_faster_where_the_next_set_is_known_is_a_trick() -> None:
    with pytest.raises(FoundError) as found:
        check(MadeUp(known=0.8))
    assert found.value.finding.kind == "L2 warmed"
    assert "1.25 times as fast" in found.value.finding.words


def test_each_set_is_twice_the_l2() -> None:
    child = MadeUp(1.0)
    check(child)
    stages = [asked for asked in child.asked if asked["ask"] == "stage"]
    assert len({asked["stage"] for asked in stages}) == len(stages) == session.SETS
    assert {asked["n"] for asked in stages} == {2 * CLOCK["l2"] // (3 * 4)}


def test_known_and_other_orders_take_turns() -> None:
    child = MadeUp(1.0)
    check(child)
    sets, lap = child.sets(), [f"set {index}" for index in range(session.SETS)]
    others = (session.LAPS - 1) * session.SETS
    turn = session.LAPS * session.SETS + others
    assert len(sets) == session.ROUNDS * turn
    for begin in range(0, len(sets), turn):
        assert sets[begin : begin + turn - others] == lap * session.LAPS


def test_in_other_orders_no_set_comes_early_or_after_the_same_one_again() -> None:
    child = MadeUp(1.0)
    check(child)
    begin = session.LAPS * session.SETS
    sets = child.sets()[: begin + (session.LAPS - 1) * session.SETS]
    follower: dict[str, str] = {}
    for at, (before, now) in enumerate(pairwise(sets), start=1):
        if at >= begin:
            assert now not in sets[at - 2 : at]
            assert follower[before] != now
        follower[before] = now


def test_nothing_is_prepared_between_timed_calls() -> None:
    child = MadeUp(1.0)
    check(child)
    timed = [asked for asked in child.asked if asked["ask"] == "call" and asked["how"]["bare"]]
    assert not any(asked["flush"] for asked in timed)
    assert len({(asked["stage"], asked["start"]) for asked in timed}) == session.SETS


def test_timed_calls_find_the_l2_full_where_the_operands_are_not_small() -> None:
    child = MadeUp(1.0)
    session = Session(child, CLOCK, 4, timeout=1.0)  # type: ignore[arg-type]
    for n in (1000, 100_000):
        session.seconds(session.stage(n), "timed")
    assert [asked["flush"] for asked in child.asked if asked["ask"] == "call"] == [False, True]


def test_sizes_and_places_are_drawn() -> None:
    """100 draws of a number of which there are more than 50 never give the same one throughout."""
    child = MadeUp(1.0)
    session = Session(child, CLOCK, 4, timeout=1.0)  # type: ignore[arg-type]
    assert len({session.near(1 << 20) for _ in range(100)}) > 1
    room = session.stage(1 << 20)
    for _ in range(100):
        session.seconds(room, "timed")
    calls = [asked for asked in child.asked if asked["ask"] == "call"]
    assert len({asked["start"] for asked in calls}) > 1
    assert len({asked["how"]["pokes"] for asked in calls}) > 1
