"""What vecadd check says of a machine: how severe each finding is, what it means, and what to do next."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from checks import EASY, H200, QUIET, Check, earlier, of_id, this_machine, told

from vecadd.bench import machine
from vecadd.check import findings, measure, topology
from vecadd.check.document import make_figure, status_of
from vecadd.check.measure import SEVERITIES, Expected, Measured, Series, find_title
from vecadd.figures import Figure

pytestmark = pytest.mark.no_native

LINK = [
    Series("link", "generation", "generation", [5.0], Expected(5.0, 1.0, "")),
    Series("link", "width", "lanes", [16.0], Expected(16.0, 1.0, "")),
]


def said(conditions: dict[str, Any] | None = None, rows: list[Series] | None = None, rounds: int = 2) -> list[Figure]:
    """All that is said of a machine with an H200."""
    measured = Measured(rows={row.title: row for row in (LINK if rows is None else rows)})
    here = replace(this_machine(), gpus=(H200,))
    return findings.find_all(here, QUIET | (conditions or {}), measured, rounds=rounds)


def noted(*arguments: Any) -> list[tuple[str, str]]:
    """What is no pass: severity and meaning."""
    return [(finding.severity, finding.meaning) for finding in said(*arguments) if finding.severity != "pass"]


def test_a_quiet_machine_passes_in_everything() -> None:
    assert noted() == []
    assert {each.name for each in said()} >= {"conditions/host/load", "conditions/gpus/ECC errors"}


@pytest.mark.parametrize(
    ("conditions", "severity", "meaning"),
    [
        ({"load_average": 9.0}, "warning", "host load: 9.0 on 16 CPUs before the run."),
        ({"gpu_processes": 2}, "warning", "other processes on the GPU: 2."),
        ({"ecc_errors": 3.0}, "critical", "ECC errors: 3 uncorrected since the driver was loaded."),
        ({"throttled": {"power cap": 0.0, "heat": 1.5}}, "critical", "throttling: heat for 1.5 s of the run."),
        ({"throttled": {"power cap": 2.0, "heat": 0.0}}, "info", "throttling: power cap for 2 s of the run."),
        ({"throttled": {"heat": None}}, "unknown", "throttling by heat: nvidia-smi does not say."),
    ],
)
def test_conditions_are_named(conditions: dict[str, Any], severity: str, meaning: str) -> None:
    ((found, text),) = noted(conditions)
    assert (found, text.startswith(meaning)) == (severity, True)


def test_a_degraded_link_is_named() -> None:
    rows = [
        Series("link", "generation", "generation", [3.0], Expected(5.0, 1.0, "")),
        Series("link", "width", "lanes", [8.0], Expected(16.0, 1.0, "")),
    ]
    generation, width = noted(None, rows)
    assert generation[0] == width[0] == "critical"
    assert generation[1].endswith("degraded link: PCIe 3 under load, where PCIe 5 is possible.")
    assert width[1].endswith("degraded link: x8 under load, where x16 is possible.")


def test_a_link_that_is_not_reported_is_unknown() -> None:
    assert noted(None, LINK[:1]) == [("unknown", "neither nvidia-smi nor sysfs says the link's width.")]


@pytest.mark.parametrize(
    ("unit", "values", "slower"),
    [
        ("GB/s", [100.0, 80.0], "20 %"),
        ("GB/s", [100.0, 125.0], None),  # faster
        ("GB/s", [100.0, 50.0, 100.0], None),  # the last round counts
        ("s", [1.0, 1.25], "25 %"),
        ("s", [1.0, 0.8], None),  # faster
        ("s", [1.0, 1.04], None),
        ("s", [1.0], None),
    ],
)
def test_only_what_got_slower_is_drift(unit: Any, values: list[float], slower: str | None) -> None:
    rows = [*LINK, Series("host", "x", unit, values)]
    drift = [(each.severity, each.meaning) for each in said(None, rows) if each.name.startswith("drift/")]
    assert drift == ([("warning", f"drift: host x was {slower} slower in the last round.")] if slower else [])
    assert not any(each.name.startswith("drift/") for each in said(None, rows, 1))  # repeats of a failure are no rounds


# Rows


@pytest.mark.parametrize(
    ("row", "severity"),
    [
        (Series("device", "read", "GB/s", [100.0]), "info"),
        (Series("device", "read", "GB/s", [100.0], Expected(100.0, 0.9, "")), "pass"),
        (Series("device", "read", "GB/s", [80.0, 100.0, 100.0], Expected(100.0, 0.9, "")), "warning"),
        (Series("device", "read", "GB/s", [80.0, 80.0, 100.0], Expected(100.0, 0.9, "")), "critical"),
        (Series("launch", "empty kernel", "s", [3.0, 1.0, 1.0], Expected(1.0, 0.5, "")), "warning"),
        (Series("launch", "empty kernel", "s", [3.0, 3.0, 1.0], Expected(1.0, 0.5, "")), "critical"),
        (Series("device", "read", "GB/s", [], error="RuntimeError: it fell off the bus"), "critical"),
        (Series("device", "read", "GB/s", [], error="MemoryError: device 0 has no room"), "unknown"),
        (Series("device", "read", "GB/s", [100.0], error="wrong bytes: 1 of 8"), "critical"),
    ],
)
def test_how_severe_a_row_is(row: Series, severity: str) -> None:
    assert row.severity == severity
    meaning, next = findings.explain_series(row, row.severity)
    assert meaning
    assert bool(next) == (severity in ("critical", "warning", "unknown"))


@pytest.mark.parametrize(
    ("row", "load", "severity"),
    [
        (Series("host", "add 2^26", "GB/s", [50.0], Expected(100.0, 0.9, "")), 16.1, "unknown"),
        (Series("host", "add 2^26", "GB/s", [50.0], Expected(100.0, 0.9, "")), 16.0, "critical"),
        (Series("launch", "call of add", "s", [3.0], Expected(1.0, 0.5, "")), 16.1, "unknown"),
        (Series("host", "add 2^26", "GB/s", [100.0, 50.0, 100.0], Expected(100.0, 0.9, "")), 16.1, "warning"),
        (Series("host", "add 2^26", "GB/s", [100.0], Expected(100.0, 0.9, "")), 16.1, "pass"),
        (Series("host", "add 2^26", "GB/s", [50.0], error="wrong sum"), 16.1, "critical"),
        (Series("device", "read", "GB/s", [50.0], Expected(100.0, 0.9, "")), 16.1, "critical"),
        (Series("link", "to the host", "GB/s", [50.0], Expected(100.0, 0.9, "")), 16.1, "critical"),
    ],
)
def test_what_processors_miss_while_others_keep_them_busy_fails_no_machine(
    row: Series, load: float, severity: str
) -> None:
    found = said({"load_average": load}, [*LINK, row], 1)
    (its,) = (each for each in found if each.name == row.id)
    assert (its.severity, its.value) == (severity, row.value)
    assert row.severity == severity  # in the table, too
    assert status_of(found) == {"critical": "failed", "unknown": "unknown"}.get(severity, "passed")
    if severity == "unknown":
        assert its.meaning.endswith("by the median of 1. Other work kept the host's processors busy.")
        assert its.next == "End other work, and run it again."


@pytest.mark.parametrize(
    ("row", "id", "where"),
    [
        (Series("host", "add 2^26", "GB/s"), "host memory/host/add 2^26", "host"),
        (Series("device", "read", "GB/s"), "device memory/gpu 0/read", "gpu 0"),
        (Series("link", "to the host on node 1", "GB/s", gpu=3), "link/gpu 3/to the host on node 1", "gpu 3"),
        (Series("pair", "copy to GPU 0", "GB/s", gpu=11), "pair/gpu 11 to gpu 0/copy", "gpu 11 to gpu 0"),
    ],
)
def test_a_rows_id_leads_back_to_its_title(row: Series, id: str, where: str) -> None:
    assert (row.id, row.where, find_title(row.id)) == (id, where, row.title)
    assert row.measurement == f"{row.kind} {id.rpartition('/')[2]}"  # the same for every GPU


@pytest.mark.parametrize(
    "id", ["", "soak/gpu 0/rate", "link", "link/gpu x/width", "link/gpu 0/", "device memory/node 0/x"]
)
def test_other_ids_are_no_rows(id: str) -> None:
    assert find_title(id) is None


# Is this number normal?


def test_each_rate_says_what_others_would_show() -> None:
    measured = Measured(limits={0: {"device": {"copy_gbps": 4240.0}, "link": {"to_device_gbps": 55.0}}})
    measured.add("host", "add 2^26", "GB/s", 100.0)
    measured.add("link", "to the device", "GB/s", 55.0)
    measured.add("device", "read", "GB/s", 4470.0)
    measured.add("device", "add 2^28", "GB/s", 4400.0)
    measured.add("pair", "copy to GPU 1", "GB/s", 390.0)
    measured.add("launch", "empty kernel", "s", 3e-6)
    found = {each.name: each for each in findings.find_all(replace(this_machine(), gpus=(H200,)), QUIET, measured)}
    rates = [each.more.get("normal") for each in found.values() if each.unit == "GB/s"]
    assert len(rates) == 5
    assert all(normal and set(normal) == {"data sheet", "copy", "STREAM add", "ours", "why"} for normal in rates)
    assert found["launch/gpu 0/empty kernel"].more.get("normal") is None
    read = found["device memory/gpu 0/read"].more["normal"]
    assert [read[name] for name in ("data sheet", "STREAM add", "ours")] == ["4814 GB/s", "4400 GB/s", "4470 GB/s"]
    assert read["copy"] == "4240 GB/s with bytes read and bytes written, 2120 GB/s where a tool counts once"
    host = found["host memory/host/add 2^26"].more["normal"]
    assert "about 75 GB/s" in host["STREAM add"]  # a store that reads its line first: three of four are counted


def test_what_others_would_show_is_reckoned_from_the_rows_of_the_same_gpu_and_pair() -> None:
    measured = Measured(limits={gpu: {"link": {"to_device_gbps": 50.0 + gpu, "gbps": 80.0 + gpu}} for gpu in (0, 1)})
    measured.add("host", "add 2^26", "GB/s", 100.0)
    measured.add("link", "to the device", "GB/s", 51.0, gpu=1)
    for gpu, rate in ((0, 4400.0), (1, 4300.0)):
        measured.add("device", "add 2^28", "GB/s", rate, gpu=gpu)
    for way, rate in (("copy", 390.0), ("read", 360.0), ("write", 370.0)):
        measured.add("pair", f"{way} to GPU 0", "GB/s", rate, gpu=1)
    gpus = (H200, replace(H200, index=1))
    found = {
        each.name: each.more.get("normal", {})
        for each in findings.find_all(replace(this_machine(), gpus=gpus), QUIET, measured)
    }
    assert found["host memory/host/add 2^26"]["copy"] == "a memcpy that counts its bytes once: about 50 GB/s"
    link = found["link/gpu 1/to the device"]
    assert link["data sheet"] == "63 GB/s each way"
    assert link["copy"].startswith("51 GB/s up and not measured down from page-locked memory")
    assert link["STREAM add"].startswith("at most 81 GB/s: ")
    assert found["device memory/gpu 1/add 2^28"]["STREAM add"] == "4300 GB/s"
    pair = found["pair/gpu 1 to gpu 0/read"]
    assert (pair["data sheet"], pair["copy"]) == ("not told by the driver", "390 GB/s")
    assert pair["STREAM add"].startswith("about 540 GB/s where both inputs are read across")
    assert pair["ours"] == "copy engine 390 GB/s, read by a kernel 360 GB/s, written by one 370 GB/s"


# Statuses


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize(
    "id", ["device memory/gpu 0/read", "soak/host/memory", "conditions/host/load", "link/gpu 0/width"]
)
def test_the_status_follows_the_findings(severity: Any, id: str) -> None:
    read = make_figure("host memory/host/add 2^26", "", "pass", 1.0, "GB/s", "")
    measured = id.startswith(("device", "soak"))
    status = {"critical": "failed", "unknown": "unknown" if measured else "passed"}.get(severity, "passed")
    assert status_of([read, make_figure(id, "", severity, 1.0, "", "")]) == status


def test_without_a_figure_there_is_no_verdict() -> None:
    assert status_of([make_figure("conditions/host/load", "", "pass", 1.0, "tasks", "")]) == "unknown"


# The whole command


@dataclass
class Healthy:
    """A machine with an H200 whose rows all pass, and what the test changes about it."""

    before: dict[str, int] = field(default_factory=dict)  # what nvidia-smi says of the GPU first, beside HEALTHY
    after: dict[str, int] = field(default_factory=dict)  # and from then on
    processes: str = ""
    load: float = 0.1
    generation: float = 5.0
    width: float = 16.0


HEALTHY = dict.fromkeys((machine.ECC_ERRORS, *machine.THROTTLING.values()), 0) | dict(
    zip(machine.LINK.values(), (5, 16, 5, 16), strict=True)
)


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Healthy], tuple[int, dict[str, Any]]]:
    """checked(Healthy(...)): what the check says of it."""
    monkeypatch.setattr(measure, "ENOUGH", 1)
    monkeypatch.setattr(topology, "NODES", tmp_path / "node")
    (tmp_path / "node" / "node0").mkdir(parents=True)

    def run(found: Healthy) -> tuple[int, dict[str, Any]]:
        def host(measured: Measured, time: Any, gpu: int) -> None:
            measured.add("host", "add 2^14", "GB/s", 100.0)
            measured.add("host", "add 2^10", "s", 1e-6)

        def link(measured: Measured, time: Any, gpu: int) -> None:
            measured.add("link", "generation", "generation", found.generation)
            measured.add("link", "width", "lanes", found.width)

        answers = [", ".join(map(str, (HEALTHY | said).values())) for said in (found.before, found.after)]
        tool = tmp_path / "nvidia-smi"
        tool.write_text(
            f'#!/bin/sh\ncase "$1" in\n--query-compute-apps*) printf "{found.processes}" ;;\n'
            f"*ecc.errors*) [ -e {tmp_path}/asked ] && echo '{answers[1]}' || echo '{answers[0]}'; "
            f"touch {tmp_path}/asked ;;\nesac\n"
        )
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setattr("os.getloadavg", lambda: (found.load, 0.0, 0.0))
        monkeypatch.setattr("vecadd.check.command.info", lambda: replace(this_machine(), gpus=(H200,)))
        monkeypatch.setattr(measure, "MEASUREMENTS", {"host": host, "link": link})
        return Check(tmp_path)("--expect", str(earlier(tmp_path / "old.json", **EASY)))

    return run


def test_a_healthy_machine_passes_without_a_finding(checked: Callable[[Healthy], tuple[int, dict[str, Any]]]) -> None:
    status, content = checked(Healthy())
    assert (status, content["status"], told(content)) == (0, "passed", {})


THROTTLED = machine.THROTTLING
BLAMED = {
    "heat": (Healthy(after={THROTTLED["heat"]: 2_000_000}), "throttling by heat"),
    "great heat": (Healthy(after={THROTTLED["great heat"]: 500_000}), "throttling by great heat"),
    "power brake": (
        Healthy({THROTTLED["power brake"]: 1_000_000}, {THROTTLED["power brake"]: 4_000_000}),
        "throttling by power brake",
    ),
    "ECC": (Healthy({machine.ECC_ERRORS: 3}, {machine.ECC_ERRORS: 3}), "ECC errors"),
    "ECC during the run": (Healthy(after={machine.ECC_ERRORS: 1}), "ECC errors"),
}


@pytest.mark.parametrize("name", BLAMED)
def test_a_finding_alone_fails_the_machine(
    checked: Callable[[Healthy], tuple[int, dict[str, Any]]], name: str, capsys: Any
) -> None:
    found, id = BLAMED[name]
    status, content = checked(found)
    assert told(content) == {f"conditions/gpus/{id}": "critical"}
    assert of_id(content, f"conditions/gpus/{id}")["next"]
    assert (status, content["status"]) == (1, "failed")
    assert capsys.readouterr().out.endswith(f"failed: conditions/gpus/{id}\n")


@pytest.mark.parametrize(
    ("found", "failed"),
    [
        (Healthy(generation=3.0), ["link/gpu 0/generation"]),
        (Healthy(width=8.0), ["link/gpu 0/width"]),
        (Healthy(generation=4.0, width=4.0), ["link/gpu 0/generation", "link/gpu 0/width"]),
    ],
    ids=["generation", "width", "both"],
)
def test_a_slow_or_narrow_link_alone_fails_the_machine(
    checked: Callable[[Healthy], tuple[int, dict[str, Any]]], found: Healthy, failed: list[str], capsys: Any
) -> None:
    status, content = checked(found)
    assert told(content) == dict.fromkeys(failed, "critical")
    assert (status, content["status"]) == (1, "failed")
    assert capsys.readouterr().out.endswith(f"failed: {', '.join(failed)}\n")


NOTED = {
    "load": (Healthy(load=1e4), "conditions/host/load", "warning"),
    "processes": (Healthy(processes="11\\n12\\n"), "conditions/gpus/other processes", "warning"),
    "power cap": (
        Healthy({THROTTLED["power cap"]: 1_000_000}, {THROTTLED["power cap"]: 3_500_000}),
        "conditions/gpus/throttling by power cap",
        "info",
    ),
    "unknown": (
        Healthy({machine.ECC_ERRORS: -1}, {machine.ECC_ERRORS: -1}),
        "conditions/gpus/ECC errors",
        "unknown",
    ),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_the_machine_is_not_to_blame_for_is_told_and_passes(
    checked: Callable[[Healthy], tuple[int, dict[str, Any]]], name: str
) -> None:
    found, id, severity = NOTED[name]
    status, content = checked(found)
    assert (of_id(content, id)["severity"], status, content["status"]) == (severity, 0, "passed")
    assert told(content) == ({} if severity == "info" else {id: severity})


def test_throttling_of_before_the_run_is_no_finding(
    checked: Callable[[Healthy], tuple[int, dict[str, Any]]],
) -> None:
    long_ago = {THROTTLED["heat"]: 9_000_000}
    status, content = checked(Healthy(long_ago, long_ago))
    assert (status, told(content)) == (0, {})
