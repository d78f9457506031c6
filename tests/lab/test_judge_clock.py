"""The verdict's clock: which rung is nearest, what is timed beside it, and which times are believed."""

from collections.abc import Iterator
from itertools import chain, cycle
from types import SimpleNamespace
from typing import Any

import pytest

import vecadd
from vecadd.judge import judge, run, verdict
from vecadd.judge.session import LINE, Finding, FoundError
from vecadd.judge.verdict import Timed

pytestmark = pytest.mark.no_native

RUNGS = [{"name": name} for name in ("slow", "near", "refuses", "tuned")]


class MadeUp:
    """A session whose calls take what a test gives them, in order; the contestant's first calls take longer."""

    def __init__(self) -> None:
        self.order: list[str | None] = []
        self.random = SimpleNamespace(shuffle=lambda names: None)
        self._seconds: dict[str | None, Iterator[float]] = {
            None: chain([50.0, 9.0, 4.0], cycle([4.0, 6.0, 5.0])),
            "slow": cycle([40.0]),
            "near": chain([60.0, 5.0, 70.0], cycle([2.0, 2.0, 5.0])),
            "tuned": chain([3.0] * 3, cycle([1.0, 3.0, 2.0])),
        }

    def near(self, n: int) -> int:
        return n - 7

    def stage(self, n: int) -> Any:
        return SimpleNamespace(n=n)

    def drop(self) -> None:
        self.order.append("dropped")

    def seconds(self, room: Any, where: str, *, rung: str | None = None) -> float:
        self.order.append(rung)
        if rung == "refuses":
            raise FoundError(Finding("raises", "ValueError: too few elements"))
        return next(self._seconds[rung])


def test_the_nearest_rung_is_that_whose_best_look_is_nearest_to_the_last_warm_call() -> None:
    session = MadeUp()
    timed = verdict.time_size(session, 1000, RUNGS, 3)  # type: ignore[arg-type]
    assert timed == Timed(
        asked=1000, n=993, seconds=(4.0, 5.0, 6.0), tuned=2.0, over_tuned=(2.0, 2.5, 4.0), rung="near",
        rung_seconds=2.0, over_rung=(1.0, 2.0, 3.0),
    )  # fmt: skip
    looks = [None] * 3 + ["slow"] * 3 + ["near"] * 3 + ["refuses"] + ["tuned"] * 3
    assert session.order == [*looks, *[None, "tuned", "near"] * 3, "dropped"]


def test_a_rung_that_computes_wrongly_ends_the_judgement() -> None:
    session = MadeUp()

    def wrong(*arguments: Any, rung: str | None = None) -> float:
        if rung is None:
            return 1.0
        raise FoundError(Finding("wrong sum", "element 0"))

    session.seconds = wrong  # type: ignore[method-assign]
    with pytest.raises(FoundError, match="wrong sum: element 0"):
        verdict.time_size(session, 1000, RUNGS, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n", "seconds", "words"),
    [
        (1 << 20, 0.99e-6, "1048576 elements, where the memory takes 1 us at least, whatever the L2 holds"),
        (1 << 20, 1.99e-6, "1048576 elements, where a kernel that does nothing takes 2 us at least"),
        (1 << 20, 2e-6, None),
        (1024, 1.99e-6, "1024 elements, where a kernel that does nothing takes 2 us at least"),
        (1023, 1.99e-6, None),
        (1023, 0.99e-6, "1023 elements, where the memory takes 1 us at least, whatever the L2 holds"),
    ],
)
def test_less_than_the_memory_or_an_empty_kernel_takes_is_not_believed(
    n: int, seconds: float, words: str | None
) -> None:
    timed = Timed(n, n, (0.0, seconds, 9.0), 1.0, (1.0,) * 3, "tuned", 1.0, (1.0,) * 3)
    if words is None:
        run._believe(timed, 1e-6, 2e-6)
        return
    with pytest.raises(FoundError) as raised:
        run._believe(timed, 1e-6, 2e-6)
    assert raised.value.finding.kind == "returned early"
    assert raised.value.finding.words.endswith(words)


def test_sizes_fit_twelve_times_into_four_fifths_of_the_memory() -> None:
    memory, most = 60 << 20, (4 << 20) // 4
    assert run._sizes([most, 1], 4, memory) == [most, 1]
    with pytest.raises(ValueError, match=f"sizes must be 1 to {most} elements, .* not {most + 1}"):
        run._sizes([most + 1], 4, memory)
    assert run._sizes(None, 4, memory) == [2**16, 2**20]


def test_operands_may_be_asked_to_be_on_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(spec: Any) -> Any:
        raise RuntimeError("it has begun")

    monkeypatch.setattr(run, "Child", begin)
    with pytest.raises(RuntimeError, match="it has begun"):
        judge(vecadd.add, alignment=LINE)
    with pytest.raises(ValueError, match=f"to {LINE}, not {2 * LINE}"):
        judge(vecadd.add, alignment=2 * LINE)
