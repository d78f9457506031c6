"""vecadd fleet: what has changed since the run before."""

from typing import Any

import pytest
import simulated_fleet as simulated
from small_fleets import LEAST, STEADY, eight, machine, machines, read

from vecadd.fleet import command, outliers

pytestmark = pytest.mark.no_native


def changed(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> outliers.Changes:
    runs = [
        {**content, "time": f"2026-11-0{day}T00:00:00"} for day, run in ((1, before), (2, after)) for content in run
    ]
    return outliers.find_changes(*outliers.last_runs(read(runs)), LEAST)


def test_a_machine_that_has_become_slower_or_faster_is_told_by_direction() -> None:
    for unit, values in (("GB/s", [80.0, 130.0]), ("us", [130.0, 80.0])):
        found = changed(machines(STEADY, unit=unit), machines([*STEADY[:-2], *values], unit=unit))
        assert [cause.hosts for cause in found.worse] == [("node07",)]
        assert [cause.hosts for cause in found.better] == [("node08",)]
    assert found.noted == []


@pytest.mark.parametrize(
    ("others", "own", "which"), [(0.8, 1.0, "better"), (1.3, 1.0, "worse"), (1.3, 1.03, "worse"), (0.7, 0.9, "better")]
)
def test_a_machine_is_told_beside_what_the_others_have_become(others: float, own: float, which: str) -> None:
    """Its figures may be as they were, or have gone the same way, but less far."""
    before = machines([*STEADY, 100.0])
    found = changed(before, machines([*(others * (value or 0) for value in STEADY), own * 100]))
    told = {"worse": found.worse, "better": found.better}
    assert [cause.hosts for cause in told.pop(which)] == [("node09",)]
    assert list(told.values()) == [[]]
    noted, beside = command.of_changes(found)
    assert (noted.title, beside.title) == ("since the last run", f"{which} than the others since the last run")
    ((*_, after, then, share, score),) = [line.cells for line in beside.lines if line]
    assert (after, then, share) == (f"{100 * own:.0f} GB/s", "100 GB/s", f"{100 * own:.0f} %")
    assert (float(score) > 0) == (which == "better")


def test_what_is_told_beside_the_others_is_shown_by_the_figure_that_is_farthest_from_them() -> None:
    """The others have risen by 30 %: 101 % is farther from that than 120 %, though not from 100 %."""
    before = [eight([100.0, 100.0], f"node{at}") for at in range(9)]
    after = [eight([130.0, 130.0], f"node{at}") for at in range(8)]
    (_, worse) = command.of_changes(changed(before, [*after, eight([120.0, 101.0], "node8")]))
    assert [line.cells[1:4] for line in worse.lines if line] == [("node8", "device memory/read", "101 GB/s")]


@pytest.mark.parametrize("others", [0.8, 1.0, 1.25])
def test_both_gpus_of_a_machine_hide_neither_their_own_change_nor_another_machines(others: float) -> None:
    before = [eight([100.0, 100.3], f"node{at}") for at in range(12)]
    values = {10: 80.0, 11: 125.0}
    after = [eight([values.get(at, 100) * others, values.get(at, 100) * others], f"node{at}") for at in range(12)]
    found = changed(before, after)
    assert [(cause.level, cause.hosts) for cause in found.worse] == [("machine", ("node10",))]
    assert [(cause.level, cause.hosts) for cause in found.better] == [("machine", ("node11",))]


def test_several_machines_that_have_become_better_are_all_told() -> None:
    found = changed(machines([100.0] * 12), machines([100.0] * 9 + [130.0] * 3))
    assert [cause.hosts for cause in found.better] == [("node09",), ("node10",), ("node11",)]


def test_two_healthy_runs_of_a_fleet_hardly_differ() -> None:
    found = changed(simulated.fleet(200, 1), simulated.fleet(200, 2))
    assert len(found.worse) + len(found.better) <= 2


def test_what_has_changed_on_all_machines_is_told_once() -> None:
    found = changed(machines(STEADY), machines([0.9 * (value or 0) for value in STEADY]))
    assert found.worse == []
    (note,) = found.noted
    assert (note.what, note.before, note.after) == ("median of memory/add", "100 GB/s", "90 GB/s")
    assert len(note.hosts) == len(STEADY)


def test_a_figure_that_is_missing_in_one_of_two_runs_is_not_held_against_the_other() -> None:
    for before, after in ((100.0, None), (None, 100.0), (0.0, 100.0)):
        assert changed([machine(value=before)], [machine(value=after)]) == outliers.Changes()


def test_a_load_that_has_changed_makes_no_machine_better_or_worse() -> None:
    loads = [simulated.finding("conditions/host/load", "load", "host", value, "tasks") for value in (0.2, 2.1)]
    before, after = (simulated.content("node1", [load]) for load in loads)
    assert changed([before], [after]) == changed([after], [before]) == outliers.Changes()


def test_what_is_better_on_all_machines_is_told_too() -> None:
    found = changed(machines(STEADY), machines([1.1 * (value or 0) for value in STEADY]))
    assert found.better == []
    assert [(note.before, note.after) for note in found.noted] == [("100 GB/s", "110 GB/s")]


def test_the_last_two_runs_are_told_by_their_times_and_not_by_the_order_of_the_files() -> None:
    days = [machine(value=float(day), time=f"2026-11-{day:02}T00:00:00") for day in (3, 1, 4, 2)]
    newest, before = outliers.last_runs(read(days))
    assert [check.figures[0].value for check in (*newest, *before.values())] == [4, 3]


def test_figures_of_another_type_of_machine_are_not_held_against_those_of_before() -> None:
    found = changed([machine()], [machine(value=50.0, machine_type="7 x H200")])
    assert [(found.worse, found.better), [note.what for note in found.noted]] == [([], []), ["machine type"]]


@pytest.mark.parametrize(
    ("value", "interval", "told"),
    [
        (90.0, [89, 91], (1, 0)),
        (90.0, [85, 99.5], (0, 0)),
        (90.0, None, (1, 0)),
        (110.0, [109, 111], (0, 1)),
        (110.0, [100.5, 115], (0, 0)),
    ],
    ids=str,
)
def test_of_few_machines_the_intervals_decide(
    value: float, interval: list[float] | None, told: tuple[int, int]
) -> None:
    after = machine(value=value)
    after["findings"][0]["interval"] = interval
    found = changed([machine()], [after])
    assert (len(found.worse), len(found.better)) == told


def test_what_is_better_is_shown_by_what_has_changed_most() -> None:
    (better,) = command.of_changes(changed([eight([100, 100, 100])], [eight([100, 130, 110])]))
    assert better.title == "better than in the last run"
    assert [line.cells[3:6] for line in better.lines if line] == [("130 GB/s", "100 GB/s", "130 %")]


def test_a_new_verdict_and_a_new_type_are_told() -> None:
    found = changed([machine()], [machine(status="failed", machine_type="7 x H200")])
    assert [(note.what, note.before, note.after) for note in found.noted] == [
        ("machine type", "8 x H200", "7 x H200"),
        ("verdict", "passed", "failed"),
    ]
