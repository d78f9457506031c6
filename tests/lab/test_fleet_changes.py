"""vecadd fleet: what has changed since the run before."""

from typing import Any

import pytest
import simulated_fleet as simulated
from small_fleets import LEAST, STEADY, eight, machine, machines, read

from vecadd.fleet import changes, tables

pytestmark = pytest.mark.no_native


def changed(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> changes.Changes:
    runs = [
        {**content, "time": f"2026-11-0{day}T00:00:00"} for day, run in ((1, before), (2, after)) for content in run
    ]
    return changes.of(*changes.last_runs(read(runs)), LEAST)


def test_a_machine_that_has_become_slower_or_faster_is_told_by_direction() -> None:
    for unit, values in (("GB/s", [80.0, 130.0]), ("us", [130.0, 80.0])):
        found = changed(machines(STEADY, unit=unit), machines([*STEADY[:-2], *values], unit=unit))
        assert [cause.hosts for cause in found.worse] == [("node07",)]
        assert [cause.hosts for cause in found.better] == [("node08",)]
    assert found.noted == []


def test_what_has_changed_on_all_machines_is_told_once() -> None:
    found = changed(machines(STEADY), machines([0.9 * (value or 0) for value in STEADY]))
    assert found.worse == []
    (note,) = found.noted
    assert (note.what, note.before, note.after) == ("median of memory/add", "100 GB/s", "90 GB/s")
    assert len(note.hosts) == len(STEADY)


def test_a_figure_that_is_missing_in_one_of_two_runs_is_not_held_against_the_other() -> None:
    for before, after in ((100.0, None), (None, 100.0), (0.0, 100.0)):
        assert changed([machine(value=before)], [machine(value=after)]) == changes.Changes()


def test_a_load_that_has_changed_makes_no_machine_better_or_worse() -> None:
    loads = [simulated.finding("conditions/host/load", "load", "host", value, "tasks") for value in (0.2, 2.1)]
    before, after = (simulated.content("node1", [load]) for load in loads)
    assert changed([before], [after]) == changed([after], [before]) == changes.Changes()


def test_what_is_better_on_all_machines_is_told_too() -> None:
    found = changed(machines(STEADY), machines([1.1 * (value or 0) for value in STEADY]))
    assert found.better == []
    assert [(note.before, note.after) for note in found.noted] == [("100 GB/s", "110 GB/s")]


def test_the_last_two_runs_are_told_by_their_times_and_not_by_the_order_of_the_files() -> None:
    days = [machine(value=float(day), time=f"2026-11-{day:02}T00:00:00") for day in (3, 1, 4, 2)]
    newest, before = changes.last_runs(read(days))
    assert [check.findings[0].value for check in (*newest, *before.values())] == [4, 3]


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
    (better,) = tables.of_changes(changed([eight([100, 100, 100])], [eight([100, 130, 110])]))
    assert better.title == "better than in the last run"
    assert [line.cells[3:6] for line in better.lines if line] == [("130 GB/s", "100 GB/s", "130 %")]


def test_a_new_verdict_and_a_new_type_are_told() -> None:
    found = changed([machine()], [machine(status="failed", machine_type="7 x H200")])
    assert [(note.what, note.before, note.after) for note in found.noted] == [
        ("machine type", "8 x H200", "7 x H200"),
        ("verdict", "passed", "failed"),
    ]
