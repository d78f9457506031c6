"""The verdict's clock: which rung is nearest, what is timed beside it, and which times are believed."""

from collections.abc import Iterator
from itertools import chain, cycle
from types import SimpleNamespace
from typing import Any

import pytest

import vecadd
from vecadd.judge import clock, judge, run
from vecadd.judge.clock import Timed
from vecadd.judge.findings import Finding
from vecadd.judge.places import LINE
from vecadd.judge.session import FoundError, Session

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
    timed = clock.time(session, 1000, RUNGS, 3)  # type: ignore[arg-type]
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
        clock.time(session, 1000, RUNGS, 3)  # type: ignore[arg-type]


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


def test_what_a_time_is_held_against_is_less_than_what_memory_and_launch_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 arrays of 4 MB, of which the L2 may have 2 MB, at 1.05 times 100 GB/s; 0.9 of an empty kernel's 4 us."""
    timed = Timed(10**6, 10**6, (1.0,) * 3, 1.0, (1.0,) * 3, "tuned", 1.0, (1.0,) * 3)
    held: list[float] = []
    monkeypatch.setattr(clock, "time", lambda *arguments: timed)
    monkeypatch.setattr(run, "_believe", lambda timed, *least: held.extend(least))
    monkeypatch.setattr(run, "_advice", lambda *arguments: ())
    gpu = {"cc_major": 9, "cc_minor": 0, "l2": 2 * 10**6}
    probed = {"device": {"gbps": 100.0}, "launch": {"kernel_seconds": 4e-6}}
    size = run._time(SimpleNamespace(itemsize=4), 10**6, gpu, "float32", probed, 3, lambda what: None)  # type: ignore
    assert held == pytest.approx([10e6 / 105e9, 3.6e-6])
    assert size.limit == pytest.approx(12e6 / 100e9)


def test_the_gpu_waits_for_the_host_as_many_cycles_as_its_clock_makes() -> None:
    """100 us and one and a half times what the contestant took to queue its last call, up to 5 ms of it; 10 ms more
    where it holds kernels back."""
    nothing = (0,) * 5
    answer = {"regions": [nothing] * 7, "at_rest": nothing, "later": nothing, "persisting": 0, "unordered": False}
    took, asked = iter([2e-3, 1.0, 0.0]), []

    def ask(timeout: float, **question: Any) -> dict[str, Any]:
        asked.append(question)
        return answer | {"seconds": 1.0, "host": next(took)} if question["ask"] == "call" else {}

    session = Session(SimpleNamespace(ask=ask), {"clock_khz": 2_000_000, "l2": 1 << 20}, 4, 1.0)  # type: ignore
    room = session.stage(1000)
    for _ in range(3):
        session.call(room, (0, 0, 0), "here", held=True)
    hows = [question["how"] for question in asked if question["ask"] == "call"]
    delays = [100e-6, 100e-6 + 3e-3, 100e-6 + 7.5e-3]
    assert [how["delay"] for how in hows] == pytest.approx([2e9 * delay for delay in delays], abs=1)
    assert [how["hold"] for how in hows] == pytest.approx([2e9 * (delay + 9.9e-3) for delay in delays], abs=1)


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
