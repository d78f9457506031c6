"""vecadd fleet: which machines are unlike their peers, what changed since their last runs, which files are refused."""

import json
import os
import time
from datetime import UTC, datetime
from math import log
from pathlib import Path
from random import Random
from typing import Any

import hypothesis
import numpy as np
import pytest
import simulated_fleet as simulated
from hypothesis import strategies

from vecadd import cli
from vecadd.figures import Check, check_of_content
from vecadd.fleet import command, outliers
from vecadd.fleet.outliers import MAD_TO_SIGMA, Numbers, Unlike, compare_with_peers, student_quantile

pytestmark = pytest.mark.no_native

LEAST = 0.05
STEADY: list[float | None] = [100.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.3, 99.7]


def read(contents: list[dict[str, Any]]) -> list[Check]:
    return [check_of_content(Path(f"{content['host']}.json"), content) for content in contents]


def written(contents: list[dict[str, Any]], folder: Path) -> Path:
    for number, content in enumerate(contents):
        (folder / f"{number}.json").write_text(json.dumps(content))
    return folder


def machine(host: str = "node1", value: float | None = 100.0, *, unit: str = "GB/s", **changed: Any) -> dict[str, Any]:
    """A machine with one figure."""
    return simulated.content(host, [simulated.finding("memory/host/add", value, unit)]) | changed


def machines(values: list[float | None], **changed: Any) -> list[dict[str, Any]]:
    return [machine(f"node{number:02}", value, **changed) for number, value in enumerate(values)]


def eight(values: list[float], host: str = "node1", what: str = "read") -> dict[str, Any]:
    """A machine with a GPU for each value."""
    found = (simulated.finding(f"device memory/gpu {gpu}/{what}", value) for gpu, value in enumerate(values))
    return simulated.content(host, list(found))


Found = dict[tuple[str, str], tuple[str, ...]]  # the hosts of each cause, by its level and its part


def all_but_one(id: str, unit: str, odd: float) -> list[dict[str, Any]]:
    """Machines with a figure of 3.0, and one with another."""
    values = enumerate([*[3.0] * 9, odd])
    return [simulated.content(f"node{at}", [simulated.finding(id, value, unit)]) for at, value in values]


def causes(contents: list[dict[str, Any]]) -> Found:
    return {(cause.level, cause.where): cause.hosts for cause in outliers.find_outliers(read(contents), LEAST).causes}


# What is unlike its peers

GOOD = [eight([100, 101, 99, 100.5], f"node{number}") for number in range(8)]
DISTURBED = simulated.content("node09", [simulated.finding("memory/host/add", 40.0, severity="unknown")])
FLEETS: dict[str, tuple[list[dict[str, Any]], Found]] = {
    "alike": (machines(STEADY), {}),
    "equal": (machines([100.0] * 9), {}),
    "one a little slower": (machines([*STEADY, 96.0]), {}),
    "one much faster": (machines([*STEADY, 120.0]), {}),
    "one no slower than noise": (machines([100.0, 112.0, 90.0, 108.0, 95.0, 104.0, 93.0, 110.0, 97.0, 88.0]), {}),
    "one lacks a figure": (machines([*STEADY, None]), {("machine", ""): ("node09",)}),
    "many lack a figure": (machines([*STEADY, *[None] * 4]), {}),
    "zero is a figure": (machines([*STEADY, 0.0]), {}),
    "one that other work disturbed": ([*machines(STEADY), DISTURBED], {}),
    **{
        f"one has more {unit}": (machines([*STEADY, 120.0], unit=unit), {("machine", ""): ("node09",)})
        for unit in ("us", "errors", "words", "processes", "tasks", "°C", "W")
    },
    "one has less us": (machines([*STEADY, 80.0], unit="us"), {}),
    "one of another type": ([*machines([100.0] * 9), machine("other", 50.0, machine_type="2 x A100")], {}),
    # What is no measure of a machine. More is worse of the first, less of the others: by the unit alone.
    "more throttling": (all_but_one("conditions/gpus/throttling", "s", 9.0), {}),
    "less of a drift": (all_but_one("drift/host/add", "1", 1.0), {}),
    "a GPU at another node": (all_but_one("numa/gpu 0/node", "node", 1.0), {}),
    "one GPU, beside its neighbours": (
        [eight([100, 101, 99, 100, 80, 100.5, 99.5, 100.2])],
        {("part", "gpu 4"): ("node1",)},
    ),
    "more than half of a machine's GPUs": (
        [*GOOD, eight([80, 81, 79, 100], "node8")],
        {("machine", ""): ("node8",)},
    ),
    "half of a machine's GPUs": (
        [*GOOD, eight([80, 81, 99, 100], "node8")],
        {("part", "gpu 0"): ("node8",), ("part", "gpu 1"): ("node8",)},
    ),
}


@pytest.mark.parametrize(("fleet", "found"), FLEETS.values(), ids=FLEETS)
def test_what_is_much_worse_than_its_peers_is_found_and_nothing_else(fleet: list[dict[str, Any]], found: Found) -> None:
    assert causes(fleet) == found


@pytest.mark.parametrize(("count", "compared"), [(4, False), (5, True)])
def test_five_machines_are_enough_to_be_compared(count: int, compared: bool) -> None:
    found = outliers.find_outliers(read(machines([*STEADY[: count - 1], 50.0])), LEAST)
    assert ([cause.hosts for cause in found.causes], found.alone) == (
        ([(f"node{count - 1:02}",)], []) if compared else ([], [f"node{at:02}" for at in range(count)])
    )


def test_a_deviation_has_what_is_usual_beside_it_and_a_baseline_spans_98_percent() -> None:
    """Of a time too: more is worse, and its ratio below 1."""
    found = outliers.find_outliers(read(machines([*[100.0] * 9, 125.0], unit="us")), LEAST)
    ((deviation,),) = (cause.deviations for cause in found.causes)
    assert (deviation.usual, deviation.ratio) == (pytest.approx(100.0), pytest.approx(0.8))
    (baseline,) = outliers.find_outliers(read(machines([100.0 + at for at in range(101)])), LEAST).baselines
    assert (baseline.quantiles, baseline.machines, baseline.count) == ((101.0, 150.0, 199.0), 101, 101)


@pytest.mark.parametrize("count", [5, 6])
def test_gpus_that_are_slow_by_their_place_have_those_of_other_machines_as_peers(count: int) -> None:
    """A GPU on the other processor has a slower link on every machine."""
    placed = [[100 + at, 100, 101 - at / 2, 60 + at / 2] for at in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)]
    fleet = [eight(values, f"node{number}") for number, values in enumerate(placed[:count])]
    assert causes(fleet) == {}
    fleet[0]["findings"][3]["value"] = 50.0
    assert causes(fleet) == {("part", "gpu 3"): ("node0",)}


def test_pairs_that_share_a_gpu_are_that_gpu() -> None:
    pairs = [f"gpu {a} to gpu {b}" for a in range(4) for b in range(4) if a != b]
    slow = [100.0 - 50 * ("gpu 2" in pair) for pair in pairs]
    found = [simulated.finding(f"peer/{pair}/write", rate) for pair, rate in zip(pairs, slow, strict=True)]
    healthy = [simulated.content(f"node{n}", [{**each, "value": 100.0 + n / 10} for each in found]) for n in range(6)]
    assert causes([*healthy, simulated.content("ill", found)]) == {("part", "gpu 2"): ("ill",)}


@pytest.mark.parametrize("load", [0.0, 0.2, 40.0])
def test_an_idle_or_a_busy_machine_of_ten_is_as_healthy_as_its_peers(load: float, tmp_path: Path) -> None:
    """The recorded check of two H200s has every condition."""
    recorded = json.loads((Path(__file__).parents[2] / "benchmarks" / "checks" / "2xh200.json").read_text())
    noise = Random(1)
    for number in range(10):
        findings = [
            {**each, "value": each["value"] * (noise.uniform(0.995, 1.005) if each["interval"] else 1)}
            for each in recorded["findings"]
        ]
        (of_load,) = (each for each in findings if each["id"] == "conditions/host/load")
        of_load["value"] = load if number == 9 else noise.uniform(1.9, 2.3)
        content = {**recorded, "host": f"node{number:02}", "findings": findings}
        (tmp_path / f"{number}.json").write_text(json.dumps(content))
    assert cli.main(["fleet", str(tmp_path), "--exclude", str(tmp_path / "bad.txt")]) == 0
    assert (tmp_path / "bad.txt").read_text() == ""


def test_memory_of_nodes_without_processors_is_not_compared_with_that_of_others() -> None:
    """Of two machines: five nodes' memory is compared, so those with processors are each other's peers."""
    fleet = []
    for host, sizes in {"node1": (480, 480, 96), "node2": (480, 480, 96), "node3": (480, 240, 96)}.items():
        found = [
            simulated.finding(f"numa/node {at}/memory", size, "bytes", expected=[432, None] if size > 96 else None)
            for at, size in enumerate(sizes)
        ]
        fleet.append(simulated.content(host, found))
    assert causes(fleet) == {("part", "node 1"): ("node3",)}


RACKS = [f"rack{rack}-node{node}" for rack in range(6) for node in range(6)]
SLOW = [f"rack3-node{node}" for node in range(4)]


@pytest.mark.parametrize(
    ("names", "slow", "group"),
    [
        (RACKS, SLOW, "rack3"),
        (RACKS, SLOW[:3], None),  # half of a rack
        ([f"rack{rack}-node{node}" for rack in range(9) for node in range(2)], SLOW[:2], None),  # two machines
        (["a", "b", "c", *RACKS], ["a", "b", "c"], None),  # no group by name
    ],
)
def test_a_rack_is_the_cause_where_most_of_its_machines_are_slow(
    names: list[str], slow: list[str], group: str | None
) -> None:
    alone = "rack0-node0"
    fleet = [machine(name, 80.0 if name in (*slow, alone) else 100.0) for name in names]
    found = [(cause.level, cause.hosts) for cause in outliers.find_outliers(read(fleet), LEAST).causes]
    machines = [("machine", (name,)) for name in sorted([alone, *([] if group else slow)])]
    assert found == [*([("group", tuple(slow))] if group else []), *machines]


@pytest.mark.parametrize(
    ("host", "group"),
    [
        *(("rack07-node12", "rack07"), ("r3n11", "r3"), ("r3n11.hpc2.example", "r3"), ("node12", None)),
        *(("login", None), ("node12.hpc2.example", None)),
        *(("dc1-rack07-node12", "dc1-rack07"), ("n01x", None), ("r3n11x", "r3")),
    ],
)
def test_a_hosts_name_says_its_group(host: str, group: str | None) -> None:
    assert outliers.group_by_name(host) == group


@pytest.mark.parametrize("seed", [1, 2])
def test_planted_faults_are_found_and_false_alarms_are_few(seed: int) -> None:
    """Of 200 machines with 13,200 figures; a thousand machines are below."""
    faults = simulated.planted(simulated.hosts(200), seed)
    found = simulated.places(outliers.find_outliers(read(simulated.fleet(200, seed, faults)), LEAST).causes)
    assert set(faults) <= found
    assert len(found - set(faults)) <= 1


def test_a_bad_gpu_is_found_in_a_machine_without_peers_and_healthy_ones_are_left_alone() -> None:
    bad = {("rack00-node00", "gpu 3"): simulated.slow_memory(0.85)}
    pairs = [[simulated.fleet(1, seed, faults) for faults in (bad, {})] for seed in range(40)]
    found = [[simulated.places(outliers.find_outliers(read(fleet), LEAST).causes) for fleet in pair] for pair in pairs]
    assert all(set(bad) <= ill for ill, _ in found)
    assert sum(len(healthy) for _, healthy in found) <= 1


# Files


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"schema": 1, "rows": []}, 'its "schema" is 1, not "vecadd-check"'),
        (machine(schema_version=3), "is a file of vecadd check of version 3; this vecadd reads version 2"),
        (machine(schema_version="2"), 'of vecadd check of version "2"'),
        ({key: value for key, value in machine().items() if key != "host"}, "check has no host"),
        (machine(host=""), "check.host is empty"),
        (machine(machine_type=8), "check.machine_type is 8, not a text"),
        (machine(status="fine"), 'check.status is "fine", not one of passed, failed, unknown'),
        (machine(time="yesterday"), "Invalid isoformat string: 'yesterday'"),
        (machine(findings=[{"id": "x"}]), "check.findings[0] has no measurement, severity, value, unit"),
        (machine(findings=7), "is not a file of vecadd check"),
        (machine(value=float("inf")), "check.findings[0].value is Infinity, which is not a number in range"),
        (machine(findings=[{**machine()["findings"][0], "value": 10**400}]), "is not a file of vecadd check"),
    ],
)
def test_another_file_is_refused_by_what_is_wrong_with_it(content: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"^x\.json ") as raised:
        check_of_content(Path("x.json"), content)
    assert said in str(raised.value)


def test_a_time_without_a_zone_is_in_utc_wherever_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    try:
        (check,) = read([machine(time="2026-11-01T00:00:00")])
    finally:
        monkeypatch.undo()
        time.tzset()
    assert check.time == datetime(2026, 11, 1, tzinfo=UTC)


def test_what_is_not_known_in_a_file_is_passed_over() -> None:
    plain = machine()
    more = {**plain, "new": 1, "findings": [{**each, "new": [1]} for each in plain["findings"]]}
    assert read([more]) == read([plain])


def test_what_the_command_itself_wrote_into_the_folder_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(machines(STEADY), tmp_path)
    for _ in range(2):
        assert cli.main(["fleet", str(folder), "--json", str(folder / "fleet.json")]) == 0
        assert "left out" not in capsys.readouterr().out
    assert json.loads((folder / "fleet.json").read_text())["left_out"] == []
    for each in folder.glob("[0-9].json"):
        each.unlink()
    for given in (folder, folder / "fleet.json"):
        assert cli.main(["fleet", str(given)]) == 2
    nothing, named = capsys.readouterr().err.splitlines()
    assert nothing == f"vecadd fleet: there is no file of vecadd check in {folder}"
    assert named.startswith(f'vecadd fleet: {folder / "fleet.json"} is not a file of vecadd check: its "schema" is')


@pytest.mark.parametrize("given", ["broken.json", "nowhere", "."])
def test_what_cannot_be_read_is_status_2(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.json").write_text("{")
    assert cli.main(["fleet", str(tmp_path / given)]) == 2
    assert capsys.readouterr().err.startswith("vecadd fleet: ")


# What it writes


def test_machines_that_failed_their_own_check_are_excluded_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = machines([*STEADY, 80.0])
    fleet[1]["status"], fleet[1]["findings"][0]["severity"] = "failed", "critical"
    folder = written(fleet, tmp_path)
    arguments = ["--exclude", str(tmp_path / "bad.txt"), "--json", str(tmp_path / "found")]
    assert cli.main(["fleet", str(folder), *arguments]) == 1
    assert (tmp_path / "bad.txt").read_text() == "node[01,09]\n"
    assert "node01 failed its own check: add, host" in capsys.readouterr().out
    found = json.loads((tmp_path / "found").read_text())
    assert (found["schema"], found["schema_version"], found["status"]) == ("vecadd-fleet", 1, "outliers")
    assert found["exclude"] == ["node01", "node09"]
    assert [(cause["level"], cause["hosts"]) for cause in found["causes"]] == [("machine", ["node09"])]


def test_a_cause_is_shown_by_its_worst_figure_and_its_machine_is_counted_once() -> None:
    good = [eight([100, 101, 99, 100.5, 100], f"node{number}") for number in range(8)]
    checked = read([*good, eight([80, 60, 70, 100, 100], "node8"), eight([90, 100, 80, 100, 100], "node9")])
    found = outliers.find_outliers(checked, LEAST)
    shown = [[line.cells[0], line.cells[3]] for line in command.table_of_outliers(found).lines if line]
    assert shown == [["machine", "60 GB/s"], ["gpu 0", "90 GB/s"], ["gpu 2", "80 GB/s"]]
    assert command.show_summary(checked, found, []) == (
        "10 machines of 1 type: 1 machine, 2 parts in 2 of them unlike their peers"
    )


def test_a_pipe_in_a_folder_and_a_link_to_a_device_keep_no_machine_from_being_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(machines(STEADY), tmp_path)
    os.mkfifo(folder / "pipe.json")
    (folder / "zero.json").symlink_to("/dev/zero")
    assert cli.main(["fleet", str(folder)]) == 0
    assert f"left out: {folder / 'zero.json'} is not a result file: it is a device" in capsys.readouterr().out


def test_a_file_whose_name_is_no_text_is_named_by_its_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2")
    folder = written(machines(STEADY), tmp_path)
    (folder / "bad\udcff.json").write_text("{")
    page = tmp_path / "fleet.html"
    assert cli.main(["fleet", str(folder), "--html", str(page)]) == 0
    assert r"bad\udcff.json is not a result file" in capsys.readouterr().out
    assert r"bad\udcff.json is not a result file" in page.read_text()


@pytest.mark.parametrize("pattern", ["[xy]", "[0-9]([xy])"])
def test_a_pattern_says_which_machines_are_a_group(
    pattern: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"n{number:02}{'x' if number < 4 else 'y'}" for number in range(20)]
    folder = written([machine(name, 80.0 if "x" in name else 100.0) for name in names], tmp_path)
    cli.main(["fleet", str(folder), "--group", pattern])
    assert "group x" in capsys.readouterr().out


def test_the_smallest_difference_of_interest_is_given_in_percent(tmp_path: Path) -> None:
    folder = written(machines([*STEADY, 80.0]), tmp_path)
    assert [cli.main(["fleet", str(folder), "--least", least]) for least in ("15", "30")] == [1, 0]


def test_the_file_says_what_was_left_out_and_who_is_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = [machine("other", machine_type="2 x A100"), machine("unsure", status="unknown")]
    folder = written([*machines([*STEADY, 80.0]), *others], tmp_path)
    (folder / "broken.json").write_text("{")
    assert cli.main(["fleet", str(folder), "--json", str(tmp_path / "found"), "--least", "7.5"]) == 1
    found = json.loads((tmp_path / "found").read_text())
    assert (found["machines"], found["least_percent"], found["failed"]) == (12, 7.5, [])
    assert (found["alone"], found["exclude"]) == (["other"], ["node09"])
    (left_out,) = found["left_out"]
    assert left_out.startswith(f"{folder / 'broken.json'} is not a result file")
    said = capsys.readouterr().out
    assert "too few machines of their type to be compared: other\n" in said
    assert "unsure was not judged by its own check\n" in said


def test_the_picture_of_a_page_is_in_percent_of_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.pages, "strips", lambda rows, caption, unit, level: (rows, unit, level))
    found = outliers.find_outliers(read(machines([*[200.0] * 9, 150.0])), LEAST)
    heading, ((row,), unit, level), _ = command._parts_of_type(found, "8 x H200")
    assert heading == ("heading", "8 x H200")
    assert (row, unit, level) == (
        ("memory/add", pytest.approx(77.25), 100.0, 100.0, [75.0], ""), "percent of the median", 100.0
    )  # fmt: skip


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 211.85402374841857])
def test_a_page_is_made_of_figures_whose_differences_overflow_or_are_rounding_alone(
    value: float, tmp_path: Path
) -> None:
    """Of equal figures 100 * x / x is not always 100."""
    pytest.importorskip("jinja2")
    folder = written(machines([value] * 5), tmp_path)
    assert cli.main(["fleet", str(folder), "--html", str(tmp_path / "fleet.html")]) in (0, 1)
    assert "<h1>" in (tmp_path / "fleet.html").read_text()


def test_the_page_has_all_times_in_utc(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    times = ["2026-11-01T23:30:00-05:00", "2026-11-02T03:30:00+00:00", *["2026-11-02T13:00:00+09:00"] * 7]
    folder = written([each | {"time": when} for each, when in zip(machines(STEADY), times, strict=True)], tmp_path)
    cli.main(["fleet", str(folder), "--html", str(tmp_path / "fleet.html")])
    assert "Checked from 2026-11-02 03:30 to 2026-11-02 04:30 UTC" in (tmp_path / "fleet.html").read_text()


# Slurm's lists


NAMES = strategies.builds(
    "{}{:0{}}".format,
    strategies.sampled_from(["node", "rack1n", "x"]),
    strategies.integers(0, 120),
    strategies.integers(1, 3),
)


@hypothesis.given(strategies.sets(NAMES | strategies.just("login"), min_size=1))
def test_a_compressed_list_names_exactly_its_hosts(hosts: set[str]) -> None:
    assert set(simulated.expanded(command.slurm_hostlist(hosts))) == hosts


def test_a_compressed_list_is_as_slurm_writes_it() -> None:
    assert command.slurm_hostlist([f"node{number:02}" for number in (7, 1, 2, 3)]) == "node[01-03,07]"
    assert command.slurm_hostlist(["node9", "node10", "login", "node007"]) == "login,node007,node[9-10]"


# vecadd fleet: what has changed since the run before.


def changed(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> outliers.Changes:
    runs = [
        {**content, "time": f"2026-11-0{day}T00:00:00"} for day, run in ((1, before), (2, after)) for content in run
    ]
    return outliers.find_changes(*outliers.find_last_runs(read(runs)), LEAST)


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
    noted, beside = command.tables_of_changes(found)
    assert (noted.title, beside.title) == ("since the last run", f"{which} than the others since the last run")
    ((*_, after, then, share, score),) = [line.cells for line in beside.lines if line]
    assert (after, then, share) == (f"{100 * own:.0f} GB/s", "100 GB/s", f"{100 * own:.0f} %")
    assert (float(score) > 0) == (which == "better")


def test_what_is_told_beside_the_others_is_shown_by_the_figure_that_is_farthest_from_them() -> None:
    """The others have risen by 30 %: 101 % is farther from that than 120 %, though not from 100 %."""
    before = [eight([100.0, 100.0], f"node{at}") for at in range(9)]
    after = [eight([130.0, 130.0], f"node{at}") for at in range(8)]
    (_, worse) = command.tables_of_changes(changed(before, [*after, eight([120.0, 101.0], "node8")]))
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


@pytest.mark.parametrize(("factor", "after"), [(0.9, "90 GB/s"), (1.1, "110 GB/s")])
def test_what_has_changed_on_all_machines_is_told_once(factor: float, after: str) -> None:
    found = changed(machines(STEADY), machines([factor * (value or 0) for value in STEADY]))
    assert (found.worse, found.better) == ([], [])
    (note,) = found.noted
    assert (note.what, note.before, note.after) == ("median of memory/add", "100 GB/s", after)
    assert len(note.hosts) == len(STEADY)


def test_a_figure_that_is_missing_in_one_of_two_runs_is_not_compared() -> None:
    for before, after in ((100.0, None), (None, 100.0), (0.0, 100.0)):
        assert changed([machine(value=before)], [machine(value=after)]) == outliers.Changes()


def test_a_load_that_has_changed_makes_no_machine_better_or_worse() -> None:
    loads = [simulated.finding("conditions/host/load", value, "tasks") for value in (0.2, 2.1)]
    before, after = (simulated.content("node1", [load]) for load in loads)
    assert changed([before], [after]) == changed([after], [before]) == outliers.Changes()


def test_the_last_two_runs_are_told_by_their_times_and_not_by_the_order_of_the_files() -> None:
    days = [machine(value=float(day), time=f"2026-11-{day:02}T00:00:00") for day in (3, 1, 4, 2)]
    newest, before = outliers.find_last_runs(read(days))
    assert [check.figures[0].value for check in (*newest, *before.values())] == [4, 3]


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
    after = simulated.content("node1", [simulated.finding("memory/host/add", value, interval=interval)])
    found = changed([machine()], [after])
    assert (len(found.worse), len(found.better)) == told


@pytest.mark.parametrize(("value", "told"), [(95.1, 0), (94.9, 1)])
def test_of_few_machines_a_change_counts_from_the_smallest_of_interest_on(value: float, told: int) -> None:
    assert LEAST == 0.05
    assert len(changed([machine()], [machine(value=value)]).worse) == told


def test_what_is_better_is_shown_by_what_has_changed_most() -> None:
    (better,) = command.tables_of_changes(changed([eight([100, 100, 100])], [eight([100, 130, 110])]))
    assert better.title == "better than in the last run"
    assert [line.cells[3:6] for line in better.lines if line] == [("130 GB/s", "100 GB/s", "130 %")]


def test_a_new_verdict_and_a_new_type_are_told_and_figures_of_another_type_are_not_compared() -> None:
    found = changed([machine()], [machine(value=50.0, status="failed", machine_type="7 x H200")])
    assert (found.worse, found.better) == ([], [])
    assert [(note.what, note.before, note.after) for note in found.noted] == [
        ("machine type", "8 x H200", "7 x H200"),
        ("verdict", "passed", "failed"),
    ]


# vecadd fleet: how far a figure is from its peers, and how far it may be; by hand and by published quantiles.


@pytest.mark.parametrize(
    ("probability", "freedom", "table", "found"),
    [(0.975, 5, 2.571, 2.567765), (0.995, 3, 5.841, 5.6461075), (0.95, 10, 1.812, 1.8124156)],
)
def test_students_quantile_is_that_of_the_tables_by_its_expansion(
    probability: float, freedom: float, table: float, found: float
) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(table, rel=0.04)
    assert student_quantile(probability, freedom) == pytest.approx(found, rel=1e-6)


def test_a_score_is_the_distance_from_the_median_by_the_mad() -> None:
    """Of 0, 1, 2, 3, 4, 6 and -50 hundredths: the median is 2, and the distances from it 0, 1, 1, 2, 2, 4 and 52."""
    judged = compare_with_peers(np.array([0.0, 0.01, 0.02, 0.03, 0.04, 0.06, -0.5]), 0.05)
    assert judged.deviations == pytest.approx([-0.02, -0.01, 0.0, 0.01, 0.02, 0.04, -0.52])
    assert judged.scores == pytest.approx(judged.deviations / (1.4826 * 0.02))
    assert judged.fence == pytest.approx(student_quantile(1 - 0.05 / 7, 0.37 * 6) * 1.4826 * 0.02)


def test_the_fence_is_farther_the_more_is_compared_and_never_nearer_than_what_is_of_interest() -> None:
    figures = np.array([0.0, 0.01, 0.02, 0.03, 0.04, 0.06, -0.5])
    assert compare_with_peers(figures, 0.05, 1000).fence == pytest.approx(
        student_quantile(1 - 0.05 / 1000, 0.37 * 6) * 1.4826 * 0.02
    )
    assert compare_with_peers(figures, 0.05, 3).fence == compare_with_peers(figures, 0.05).fence
    assert compare_with_peers(np.zeros(9), 0.05).fence == -log(0.95)
    equal = compare_with_peers(np.array([0.0] * 8 + [-0.7]), 0.05)
    assert equal.scores[-1] == pytest.approx(-0.7 / 1e-4)


@pytest.mark.parametrize(("count", "best"), [(999, 0.3), (2999, 0.1)])
def test_what_the_best_are_above_the_median_others_may_be_below_but_for_freaks(count: int, best: float) -> None:
    """The very best one is none, nor is one in a thousand more."""
    figures = np.zeros(count)
    figures[:4] = (0.9, 0.3, 0.2, 0.1)
    assert compare_with_peers(figures, 0.05).fence == pytest.approx(2.5 * best)


# Fleets of a thousand machines with planted faults: what is found, how many false alarms, by this method and others.
#
# docs/fleet.md has the counts.


MACHINES, SEEDS = 1000, range(3)
DOCUMENT = Path(__file__).parents[2] / "docs" / "fleet.md"


def scored(logarithms: Numbers) -> tuple[Numbers, Numbers, float]:
    deviations = logarithms - np.median(logarithms)
    sigma = max(MAD_TO_SIGMA * float(np.median(np.abs(deviations))), 1e-4)
    return deviations, deviations / sigma, sigma


def fixed(logarithms: Numbers, least: float, comparisons: int = 0) -> Unlike:
    deviations, scores, _ = scored(logarithms)
    return Unlike(deviations, scores, -log(1 - least))


def plain(logarithms: Numbers, least: float, comparisons: int = 0) -> Unlike:
    deviations, scores, sigma = scored(logarithms)
    return Unlike(deviations, scores, 3.5 * sigma)


METHODS = {
    "5 % below the median": fixed,
    "modified z-score, 3.5": plain,
    "the method of `vecadd fleet`": compare_with_peers,
}


@pytest.mark.slow
def test_all_that_was_planted_is_found_and_the_document_has_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {method: [0, 0, 0] for method in METHODS}
    for seed in SEEDS:
        faults = simulated.planted(simulated.hosts(MACHINES), seed)
        fleet = [check_of_content(Path("x"), content) for content in simulated.fleet(MACHINES, seed, faults)]
        for name, method in METHODS.items():
            monkeypatch.setattr(outliers, "compare_with_peers", method)
            found = simulated.places(outliers.find_outliers(fleet, 0.05).causes)
            for at, more in enumerate((len(found & set(faults)), len(faults), len(found - set(faults)))):
                counts[name][at] += more
    found, planted, false = counts["the method of `vecadd fleet`"]
    assert found == planted == 28 * len(SEEDS)
    assert false <= len(SEEDS)
    text = DOCUMENT.read_text()
    lines = [f"| {name} | {found} of {planted} | {false} |" for name, (found, planted, false) in counts.items()]
    assert [line for line in lines if line not in text] == []


@pytest.mark.slow
def test_a_healthy_fleet_has_next_to_no_false_alarm() -> None:
    false = 0
    for seed in SEEDS:
        fleet = [check_of_content(Path("x"), content) for content in simulated.fleet(MACHINES, 100 + seed)]
        false += len(simulated.places(outliers.find_outliers(fleet, 0.05).causes))
    assert false <= len(SEEDS)
