"""vecadd.bench.steps: how long the steps of a transfer were at work, without what they waited for each other."""

from itertools import pairwise
from pathlib import Path

import pytest
from made_up import figure

from vecadd.bench.steps import KINDS, Step, at_work, stages, stages_of, steps
from vecadd.figures import read_run

pytestmark = pytest.mark.no_native

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results"
TIMELINES = [
    (f"{path.parent.name} {row.label}", steps(row.params["timeline"]))
    for path in sorted(RECORDED.glob("*/transfer.json"))
    for row in read_run(path).figures
    if row.params.get("timeline")
]


def up(stream: int, begin: float, end: float) -> Step:
    return Step("to_device", stream, stream, begin, end)


def test_of_uploads_queued_at_once_each_works_from_the_end_of_the_one_before() -> None:
    queued = [up(0, 0, 1), up(1, 0, 2), up(2, 0, 3), up(3, 0.5, 4)]
    assert at_work(queued) == [up(0, 0, 1), up(1, 1, 2), up(2, 2, 3), up(3, 3, 4)]
    assert stages(queued) == {"to_device": 4, "kernel": 0, "to_host": 0}


def test_the_order_is_that_of_the_ends() -> None:
    assert at_work([up(0, 0, 4), up(1, 0, 2)]) == [up(0, 2, 4), up(1, 0, 2)]


def test_the_directions_and_the_kernel_do_not_wait_for_each_other() -> None:
    together = [Step(kind, stream, 0, 0.0, 2.0) for stream, kind in enumerate(KINDS)]
    assert at_work(together) == together


def test_what_comes_after_a_rest_waited_for_nothing() -> None:
    rested = [up(0, 0, 1), up(1, 3, 4)]
    assert at_work(rested) == rested


@pytest.mark.parametrize(("name", "found"), TIMELINES, ids=[name for name, _ in TIMELINES])
def test_a_recorded_link_carries_one_copy_a_direction(name: str, found: list[Step]) -> None:
    whole = max(step.end for step in found) - min(step.begin for step in found)
    for kind, seconds in stages(found).items():
        assert seconds <= whole, name
        working = sorted((step.end, step.begin) for step in at_work(found) if step.what == kind)
        assert all(begin >= end for (end, _), (_, begin) in pairwise(working)), name


def test_a_recorded_rows_stages_are_those_of_its_timeline() -> None:
    rows = [row for path in RECORDED.glob("*/transfer.json") for row in read_run(path).figures]
    timed = [row for row in rows if "timeline" in row.params]
    assert len(timed) >= 40
    for each in timed:
        assert stages_of(each) == pytest.approx(stages(steps(each.params["timeline"])), rel=1e-12), each.title


def test_a_row_without_stages_has_none() -> None:
    assert stages_of(figure("transfer", "streams4", 1000, 3.1e-3)) is None
