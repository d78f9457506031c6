"""vecadd check: what it measures, what it holds that against, and that it says what is wrong in words."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from checks import H200, earlier
from conftest import child_environment
from imports import ROOT

from vecadd import _core, cli
from vecadd.bench import limits, machine, results, timing
from vecadd.check import findings, measure
from vecadd.check.measure import Measured
from vecadd.check.rows import Expected, Row
from vecadd.info import info

pytestmark = pytest.mark.no_native

HOST = ["host add 2^14", "host add 2^10"]
GPU = [
    "link to the device", "link to the host", "link both ways", "device read", "device write", "device add 2^12",
    "device add 2^13", "launch empty kernel", "launch queued kernel", "launch call of add",
]  # fmt: skip

QUIET: dict[str, Any] = {
    "load_average": 0.1,
    "cpus": 16,
    "gpu_processes": 0,
    "ecc_errors": 0,
    "throttled": {"power cap": 0.0, "heat": 0.0},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows at sizes that the double has time for."""
    monkeypatch.setattr(measure, "STREAMING", (1 << 14,))
    monkeypatch.setattr(measure, "DEVICE_SIZES", (1 << 12,))
    monkeypatch.setattr(measure, "LARGEST", 1 << 13)
    monkeypatch.setattr(measure, "SECONDS", 1e-3)
    monkeypatch.setattr(limits, "LINK_BYTES", 1 << 16)
    monkeypatch.setattr(limits, "PROBE_ROUNDS", 1)
    monkeypatch.setattr(limits, "DEVICE_CACHES", 1)
    monkeypatch.setattr(timing, "SETTLE", 0.0)
    monkeypatch.setenv("PYTHONPATH", child_environment()["PYTHONPATH"])  # for the child that looks for GPUs


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    found = replace(info(), gpus=(), gpu_status="no GPU", gpu_reason="the driver sees no GPU")
    monkeypatch.setattr("vecadd.check.command.info", lambda: found)


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., tuple[int, dict[str, Any]]]:
    """check(*options): the exit status and the content of the file."""

    def run(*options: str) -> tuple[int, dict[str, Any]]:
        file = tmp_path / "check.json"
        status = cli.main(["check", "--json", str(file), *options])
        return status, json.loads(file.read_text())

    return run


def titles(content: dict[str, Any]) -> list[str]:
    return [Row(row["kind"], row["name"], row["unit"], gpu=row["gpu"]).title for row in content["rows"]]


EASY = {
    "streaming": ("host", "add 2^14", 1e-9),
    "small": ("host", "add 2^10", 1e9),
}


# Rows


def test_without_a_gpu_there_are_the_hosts_rows(
    without_gpu: None, check: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path, capsys: Any
) -> None:
    status, content = check("--expect", str(earlier(tmp_path / "old.json", **EASY)))
    assert (status, content["verdict"], titles(content)) == (0, "passed", HOST)
    printed = capsys.readouterr().out
    assert "host rows only: the driver sees no GPU" in printed
    assert "old.json is of elsewhere, this machine is " in printed
    assert printed.endswith("passed\n")


def test_with_a_gpu_there_are_all_rows(device: int, check: Callable[..., tuple[int, dict[str, Any]]]) -> None:
    _, content = check()
    known = [title for title in titles(content) if "generation" not in title and "width" not in title]
    assert [title for title in known if "of GPU" not in title] == HOST + GPU
    others = len(_core.gpu_facts()) - 1
    for title in GPU[:-1]:  # what a call costs is the host's
        assert sum(each.startswith(f"{title} of GPU ") for each in known) == others
    assert all(row["error"] is None and row["value"] > 0 for row in content["rows"])
    assert content["meta"]["rounds"] == 1
    assert content["meta"]["tolerances"]["device"] == 0.03


def test_minutes_repeat_the_round_and_the_worst_counts(
    without_gpu: None, check: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path
) -> None:
    _, content = check("--minutes", "0.01", "--expect", str(earlier(tmp_path / "old.json", **EASY)))
    assert content["meta"]["rounds"] > 1
    streaming, small = content["rows"]
    assert len(streaming["rounds"]) == len(small["rounds"]) == content["meta"]["rounds"]
    assert (streaming["value"], small["value"]) == (min(streaming["rounds"]), max(small["rounds"]))
    assert streaming["drift"] == pytest.approx(streaming["rounds"][-1] / streaming["rounds"][0] - 1)


def test_a_wrong_sum_fails(
    without_gpu: None,
    check: Callable[..., tuple[int, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    monkeypatch.setattr("vecadd.bench.contestants._core.add", lambda a, b, out: out)
    status, content = check()
    assert (status, content["verdict"]) == (1, "failed")
    assert content["rows"][0]["error"].startswith("add: wrong result: element 0 is ")
    assert "host add 2^14 failed: add: wrong result" in capsys.readouterr().out


def test_a_gpu_that_fails_leaves_the_hosts_rows(
    device: int, double: Any, check: Callable[..., tuple[int, dict[str, Any]]]
) -> None:
    double.fail("cudaEventRecord", forever=True)
    status, content = check()
    assert status == 1
    assert titles(content)[:2] == HOST
    assert any(row["error"] for row in content["rows"][2:])
    assert not any(row["error"] for row in content["rows"][:2])


# Expected


def test_an_expectation_that_no_machine_meets_fails_by_name(
    without_gpu: None, check: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path, capsys: Any
) -> None:
    impossible = earlier(tmp_path / "old.json", **EASY | {"streaming": ("host", "add 2^14", 1e9)})
    status, content = check("--expect", str(impossible))
    assert (status, content["verdict"]) == (1, "failed")
    assert [row["passed"] for row in content["rows"]] == [False, True]
    assert capsys.readouterr().out.endswith("failed: host add 2^14\n")


def test_a_check_meets_its_own_file_again(
    without_gpu: None, check: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path
) -> None:
    check()
    kept = (tmp_path / "check.json").rename(tmp_path / "first.json")
    _, content = check("--expect", str(kept))
    first = json.loads(kept.read_text())
    assert [row["expected"] for row in content["rows"]] == [row["median"] for row in first["rows"]]
    assert [row["share"] for row in content["rows"]] == [0.8, 0.8]
    assert {row["source"] for row in content["rows"]} == {str(kept)}


def test_a_run_of_several_files_is_one_expectation(
    without_gpu: None, check: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path
) -> None:
    one = earlier(tmp_path / "one.json", streaming=EASY["streaming"])
    other = earlier(tmp_path / "other.json", small=EASY["small"])
    status, content = check("--expect", str(one), "--expect", str(other))
    assert (status, [row["source"] for row in content["rows"]]) == (0, [str(one), str(other)])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"meta": {}, "rows": []}',
        '{"meta": {}, "rows": [{"kind": "x", "name": "y", "median": 1, "gpu": "z"}]}',
        '{"meta": {}, "rows": [{"kind": "host"}]}',
        '{"meta": 1}',
    ],
)
def test_another_file_is_one_line_and_status_2(text: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "old.json").write_text(text)
    assert cli.main(["check", "--expect", str(tmp_path / "old.json")]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith(f"vecadd check: {tmp_path}/old.json ")


def test_a_file_of_a_newer_schema_is_refused_by_its_version(tmp_path: Path, capsys: Any) -> None:
    file = earlier(tmp_path / "old.json", **EASY)
    file.write_text(json.dumps({"schema": results.SCHEMA + 1, **json.loads(file.read_text())}))
    assert cli.main(["check", "--expect", str(file)]) == 2
    assert f"old.json is a result file of schema {results.SCHEMA + 1};" in capsys.readouterr().err


def test_a_missing_file_is_named(capsys: Any) -> None:
    assert cli.main(["check", "--expect", "/nowhere/x.json"]) == 2
    assert capsys.readouterr().err == "vecadd check: /nowhere/x.json: No such file or directory\n"


# What this machine cannot run

OF_A_GPU = {"read": ("device", "read", 4470.0), "kernel": ("launch", "empty kernel", 2.9e-6)}


def test_what_a_file_has_of_a_gpu_fails_where_there_is_none(
    without_gpu: None, check: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path, capsys: Any
) -> None:
    status, content = check("--expect", str(earlier(tmp_path / "old.json", **EASY, **OF_A_GPU)))
    assert (status, content["verdict"]) == (1, "failed")
    assert titles(content) == [*HOST, "device read", "launch empty kernel"]
    assert [row["passed"] for row in content["rows"]] == [True, True, False, False]
    assert [row["value"] for row in content["rows"][2:]] == [None, None]
    assert {row["error"] for row in content["rows"][2:]} == {"there is no GPU: the driver sees no GPU"}
    printed = capsys.readouterr().out
    assert "device read failed: there is no GPU: the driver sees no GPU\n" in printed
    assert printed.endswith("failed: device read, launch empty kernel\n")


def test_a_recorded_run_of_an_h200_fails_where_there_is_no_gpu(
    without_gpu: None, check: Callable[..., tuple[int, dict[str, Any]]]
) -> None:
    status, content = check("--expect", str(ROOT / "benchmarks" / "results" / "h200" / "ladder.json"))
    assert status == 1
    assert {"device read", "device write", "launch empty kernel"} <= {
        title for title, row in zip(titles(content), content["rows"], strict=True) if row["passed"] is False
    }


def test_what_no_round_measures_is_not_missed(
    without_gpu: None, check: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path
) -> None:
    others = {"other": ("host", "add 2^30", 1e9), "made up": ("moon", "phase", 1.0), "device": ("device", "add 7", 1.0)}
    _, content = check("--expect", str(earlier(tmp_path / "old.json", **EASY, **others)))
    assert titles(content) == HOST


def test_a_gpu_is_required_where_it_is_asked_for(
    without_gpu: None, check: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path, capsys: Any
) -> None:
    status, content = check("--require-gpu", "--expect", str(earlier(tmp_path / "old.json", **EASY)))
    assert (status, content["verdict"]) == (1, "failed")
    text = "no GPU, which --require-gpu asks for: the driver sees no GPU"
    assert {"text": text, "fails": True} in content["findings"]
    assert f"found: {text}\nfailed: see what was found\n" in capsys.readouterr().out


# Files and interrupts


def test_the_file_may_be_stdout_and_the_table_is_then_on_stderr(without_gpu: None, capsys: Any) -> None:
    cli.main(["check", "--json", "-"])
    printed = capsys.readouterr()
    assert [row["name"] for row in json.loads(printed.out)["rows"]] == ["add 2^14", "add 2^10"]
    assert printed.err.startswith("check\n\nrow ")


def test_an_interrupt_keeps_the_rounds_before_it(
    without_gpu: None, check: Callable[..., tuple[int, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    real, rounds = measure.round_of, iter([True, False])

    def round_of(*arguments: Any) -> None:
        if not next(rounds):
            raise KeyboardInterrupt
        real(*arguments)

    monkeypatch.setattr(measure, "round_of", round_of)
    status, content = check("--minutes", "1")
    assert (status, content["meta"]["rounds"], content["meta"]["interrupted"]) == (130, 1, True)
    assert capsys.readouterr().out.endswith("\ninterrupted: whole rounds that count: 1\n")


def test_an_interrupt_of_the_first_round_says_so(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def round_of(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "round_of", round_of)
    assert cli.main(["check"]) == 130
    assert capsys.readouterr() == ("", "vecadd check: interrupted\n")


# Findings


def said(conditions: dict[str, Any] | None = None, rows: list[Row] | None = None) -> Any:
    found = replace(info(), gpus=(H200,))
    link = [
        Row("link", "generation", "generation", [5.0], Expected(5.0, 1.0, "")),
        Row("link", "width", "lanes", [16.0], Expected(16.0, 1.0, "")),
    ]
    noted = findings.of(found, QUIET | (conditions or {}), link if rows is None else rows)
    return [(finding.text, finding.fails) for finding in noted]


def test_a_quiet_machine_has_no_findings() -> None:
    assert said() == []


@pytest.mark.parametrize(
    ("conditions", "text", "fails"),
    [
        ({"load_average": 9.0}, "host load: 9.0 on 16 CPUs before the run", False),
        ({"gpu_processes": 2}, "other processes on the GPU: 2", False),
        ({"ecc_errors": 3.0}, "ECC errors: 3 uncorrected since the driver was loaded", True),
        ({"throttled": {"power cap": 0.0, "heat": 1.5}}, "throttling: heat for 1.5 s of the run", True),
        ({"throttled": {"power cap": 2.0, "heat": 0.0}}, "throttling: power cap for 2 s of the run", False),
        ({"throttled": {"heat": None}}, "unknown: throttling: nvidia-smi does not say", False),
    ],
)
def test_conditions_are_named(conditions: dict[str, Any], text: str, fails: bool) -> None:
    assert said(conditions) == [(text, fails)]


def test_a_degraded_link_is_named() -> None:
    rows = [
        Row("link", "generation", "generation", [3.0], Expected(5.0, 1.0, "")),
        Row("link", "width", "lanes", [8.0], Expected(16.0, 1.0, "")),
    ]
    assert said(rows=rows) == [("degraded link: PCIe 3 x8 under load, where 5 x16 is possible", True)]


def test_drift_is_named() -> None:
    rows = [Row("host", "add 2^26", "GB/s", [100.0, 95.1, 80.0]), Row("host", "add 2^10", "s", [1.0, 1.04])]
    text = [text for text, _ in said(rows=rows) if text.startswith("drift")]
    assert text == ["drift: host add 2^26 was 20 % slower in the last round"]


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
    drift = [text for text, _ in said(rows=[Row("host", "x", unit, values)]) if text.startswith("drift")]
    assert drift == ([f"drift: host x was {slower} slower in the last round"] if slower else [])


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
def checked(
    check: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Healthy], tuple[int, dict[str, Any]]]:
    """checked(Healthy(...)): what the check says of it."""

    def run(found: Healthy) -> tuple[int, dict[str, Any]]:
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
        monkeypatch.setattr("vecadd.check.command.info", lambda: replace(info(), gpus=(H200,)))
        monkeypatch.setattr(measure, "ROWS", {"host": measure.ROWS["host"], "link": link})
        return check("--expect", str(earlier(tmp_path / "old.json", **EASY)))

    return run


def test_a_healthy_machine_passes_without_a_finding(checked: Callable[[Healthy], tuple[int, dict[str, Any]]]) -> None:
    status, content = checked(Healthy())
    assert (status, content["verdict"], content["findings"]) == (0, "passed", [])
    assert [row["passed"] for row in content["rows"]] == [True] * 4


THROTTLED = machine.THROTTLING
BLAMED = {
    "heat": (Healthy(after={THROTTLED["heat"]: 2_000_000}), "throttling: heat for 2 s of the run"),
    "great heat": (Healthy(after={THROTTLED["great heat"]: 500_000}), "throttling: great heat for 0.5 s of the run"),
    "power brake": (
        Healthy({THROTTLED["power brake"]: 1_000_000}, {THROTTLED["power brake"]: 4_000_000}),
        "throttling: power brake for 3 s of the run",
    ),
    "ECC": (
        Healthy({machine.ECC_ERRORS: 3}, {machine.ECC_ERRORS: 3}),
        "ECC errors: 3 uncorrected since the driver was loaded",
    ),
    "ECC during the run": (
        Healthy(after={machine.ECC_ERRORS: 1}),
        "ECC errors: 1 uncorrected since the driver was loaded",
    ),
}


@pytest.mark.parametrize("name", BLAMED)
def test_a_finding_alone_fails_the_machine(
    checked: Callable[[Healthy], tuple[int, dict[str, Any]]], name: str, capsys: Any
) -> None:
    found, text = BLAMED[name]
    status, content = checked(found)
    assert [row["passed"] for row in content["rows"]] == [True] * 4
    assert content["findings"] == [{"text": text, "fails": True}]
    assert (status, content["verdict"]) == (1, "failed")
    assert capsys.readouterr().out.endswith(f"found: {text}\nfailed: see what was found\n")


@pytest.mark.parametrize(
    ("found", "now", "failed"),
    [
        (Healthy(generation=3.0), "3 x16", "link generation"),
        (Healthy(width=8.0), "5 x8", "link width"),
        (Healthy(generation=4.0, width=4.0), "4 x4", "link generation, link width"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_slow_or_narrow_link_alone_fails_the_machine(
    checked: Callable[[Healthy], tuple[int, dict[str, Any]]], found: Healthy, now: str, failed: str, capsys: Any
) -> None:
    status, content = checked(found)
    text = f"degraded link: PCIe {now} under load, where 5 x16 is possible"
    assert content["findings"] == [{"text": text, "fails": True}]
    assert (status, content["verdict"]) == (1, "failed")
    assert capsys.readouterr().out.endswith(f"found: {text}\nfailed: {failed}\n")


NOTED = {
    "load": (Healthy(load=1e4), "host load: 10000.0 on {cpus} CPUs before the run"),
    "processes": (Healthy(processes="11\\n12\\n"), "other processes on the GPU: 2"),
    "power cap": (
        Healthy({THROTTLED["power cap"]: 1_000_000}, {THROTTLED["power cap"]: 3_500_000}),
        "throttling: power cap for 2.5 s of the run",
    ),
    "unknown": (
        Healthy({machine.ECC_ERRORS: -1}, {machine.ECC_ERRORS: -1}),
        "unknown: ECC errors: nvidia-smi does not say",
    ),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_the_machine_is_not_to_blame_for_is_told_and_passes(
    checked: Callable[[Healthy], tuple[int, dict[str, Any]]], name: str, capsys: Any
) -> None:
    found, text = NOTED[name]
    status, content = checked(found)
    text = text.format(cpus=len(os.sched_getaffinity(0)))
    assert content["findings"] == [{"text": text, "fails": False}]
    assert (status, content["verdict"]) == (0, "passed")
    assert capsys.readouterr().out.endswith(f"note: {text}\npassed\n")


def test_throttling_of_before_the_run_is_no_finding(
    checked: Callable[[Healthy], tuple[int, dict[str, Any]]],
) -> None:
    long_ago = {THROTTLED["heat"]: 9_000_000}
    status, content = checked(Healthy(long_ago, long_ago))
    assert (status, content["findings"]) == (0, [])


def test_wrong_minutes_are_status_2(capsys: Any) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["check", "--minutes", "soon"])
    assert "'soon' is not a number of minutes up to a week" in capsys.readouterr().err
