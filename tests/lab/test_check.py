"""vecadd check: what it measures, what it compares that with, and its exit status."""

import errno
import itertools
import json
import statistics
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from checks import EASY, Check, earlier, hide_gpus, make_quick, of_id, this_machine

from vecadd import _core, cli
from vecadd.bench import machine
from vecadd.bench.contestants import Contestant
from vecadd.bench.timing import Samples
from vecadd.check import command, measure, soak
from vecadd.check.measure import GROUPS, Measured

pytestmark = pytest.mark.no_native

HOST = STREAMING, SMALL = ["host memory/host/add 2^14", "host memory/host/add 2^10"]
LINK = [f"link/gpu 0/{what}" for what in ("to the device", "to the host", "both ways")]
DEVICE = [f"device memory/gpu 0/{what}" for what in ("read", "write", "add 2^12", "add 2^13")]
LAUNCH = [f"launch/gpu 0/{what}" for what in ("empty kernel", "queued kernel", "call of add")]
PAIRS = [f"pair/gpu 0 to gpu 1/{way}" for way in ("copy", "read", "write")]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    make_quick(monkeypatch)


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_gpus(monkeypatch)


@pytest.fixture
def check(tmp_path: Path) -> Check:
    return Check(tmp_path)


def measured_ids(content: dict[str, Any]) -> list[str]:
    """Of all that rounds measured."""
    ids = (each["id"] for each in content["findings"])
    return [id for id in ids if id.split("/")[0] in GROUPS.values() and "peer access" not in id]


def severities(content: dict[str, Any], *ids: str) -> list[str]:
    return [of_id(content, id)["severity"] for id in ids]


# What is measured


def test_without_a_gpu_there_are_the_hosts_rows(without_gpu: None, check: Check, tmp_path: Path, capsys: Any) -> None:
    status, content = check("--expect", str(earlier(tmp_path / "old.json", **EASY)))
    assert (status, content["status"], measured_ids(content)) == (0, "passed", HOST)
    printed = capsys.readouterr().out
    assert "host rows only: the driver sees no GPU" in printed
    assert "old.json is of elsewhere, this machine is " in printed
    assert printed.endswith("passed\n")


def test_with_a_gpu_there_are_all_rows(device: int, check: Check) -> None:
    _, content = check()
    known = [id for id in measured_ids(content) if not id.endswith(("/generation", "/width"))]
    first = [*HOST, *LINK, *DEVICE, *LAUNCH]
    others = range(1, len(_core.gpu_facts()))
    assert [id for id in known if "/host/" in id or "/gpu 0/" in id] == first
    assert [id for id in known if id in PAIRS] == (PAIRS if others else [])
    for gpu in others:  # what a call costs is the host's
        of_other = [id.replace("gpu 0", f"gpu {gpu}") for id in first[len(HOST) : -1]]
        assert [id for id in known if f"/gpu {gpu}/" in id] == of_other
    assert all(of_id(content, id)["value"] > 0 for id in known)
    assert content["machine"]["rounds"] == 1
    assert content["machine"]["tolerances"]["device"] == 0.03


def test_minutes_repeat_the_round_and_the_median_counts(without_gpu: None, check: Check, tmp_path: Path) -> None:
    _, content = check("--minutes", "0.02", "--expect", str(earlier(tmp_path / "old.json", **EASY)))
    assert content["machine"]["rounds"] > 1
    for row in (of_id(content, STREAMING), of_id(content, SMALL)):
        assert len(row["rounds"]) == content["machine"]["rounds"]
        assert row["value"] == statistics.median(row["rounds"])
        assert row["interval"] == [min(row["rounds"]), max(row["rounds"])]


def test_minutes_are_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 30)  # half a minute passes from look to look
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(measure, "measure_round", lambda *arguments: None)
    _, rounds, interrupted = command._measure_rounds(this_machine(), 2, lambda what: None)
    assert (rounds, interrupted) == (4, False)


def test_what_else_uses_the_gpu_is_asked_before_this_process_uses_it(
    monkeypatch: pytest.MonkeyPatch, check: Check, without_gpu: None
) -> None:
    asked: list[str] = []
    for module, name in (
        (machine, "conditions_now"),
        (command, "info"),
        (measure, "measure_round"),
        (machine, "conditions_since"),
    ):
        real = getattr(module, name)

        def watched(*arguments: Any, name: str = name, real: Any = real) -> Any:
            asked.append(name)
            return real(*arguments)

        monkeypatch.setattr(module, name, watched)
    check()
    assert asked == ["conditions_now", "info", "measure_round", "conditions_since", "conditions_now"]


@pytest.mark.parametrize("kind", ["link", "device", "launch"])
def test_each_gpu_is_probed_itself(kind: Any, second_device: int, monkeypatch: pytest.MonkeyPatch) -> None:
    probed, put = [], []
    for name in ("probe_link", "probe_device", "probe_launch", "probe_latency"):

        def probe(gpu: int, *arguments: int) -> Any:
            probed.append(gpu)
            return defaultdict(lambda: 1.0)

        monkeypatch.setattr(measure.probes, name, probe)
    monkeypatch.setattr(measure._core, "probe", lambda name, gpu, *arguments: probed.append(gpu))

    def time(n: int, every: list[Contestant], limit: Any, sets: int) -> list[Samples]:
        put.extend(each.memory.put(np.zeros(4, np.float32)).device for each in every)
        return [Samples(each, seconds=[1e-3] * 3) for each in every]

    measured = Measured()
    measure.MEASUREMENTS[kind](measured, time, second_device)
    assert {*probed, *put} <= {second_device, f"cuda:{second_device}"}
    assert {each.params["gpu"] for each in measured.figures.values()} == {second_device}
    assert list(measured.limits) == [second_device]


def test_a_wrong_sum_fails(
    without_gpu: None,
    check: Check,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    """And is not measured again: it is wrong once and for all."""
    calls, real = [], measure.MEASUREMENTS["host"]
    monkeypatch.setattr(measure, "ENOUGH", 3)
    monkeypatch.setattr(measure, "MEASUREMENTS", {"host": lambda *given: (calls.append(1), real(*given))})
    monkeypatch.setattr("vecadd.bench.contestants._core.add", lambda a, b, out: out)
    status, content = check()
    assert calls == [1]
    assert (status, content["status"]) == (1, "failed")
    row = of_id(content, STREAMING)
    assert (row["severity"], row["value"]) == ("critical", None)
    assert "It failed: add: wrong result: element 0 is " in row["meaning"]
    assert row["next"].startswith("Take the machine out of service")
    assert f"critical: {STREAMING}: " in capsys.readouterr().out


def test_a_gpu_that_fails_leaves_the_hosts_rows(device: int, double: Any, check: Check) -> None:
    double.fail("cudaEventRecord", status=1, forever=True)
    status, content = check()
    assert status == 1
    assert measured_ids(content)[:2] == HOST
    assert of_id(content, STREAMING)["value"] is not None
    assert of_id(content, "device memory/gpu 0/figures")["severity"] == "critical"


# Expected


def test_a_check_meets_its_own_file_again(without_gpu: None, check: Check, tmp_path: Path) -> None:
    """What another file has besides is expected too."""
    check()
    kept = (tmp_path / "check.json").rename(tmp_path / "first.json")
    other = earlier(tmp_path / "other.json", kernel=("launch", "empty kernel", 1.0))
    _, content = check("--expect", str(kept), "--expect", str(other))
    assert of_id(content, "launch/gpu 0/empty kernel")["source"] == str(other)
    first = json.loads(kept.read_text())
    streaming, small = (of_id(first, id)["value"] for id in (STREAMING, SMALL))
    assert of_id(content, STREAMING)["expected"] == [pytest.approx(0.8 * streaming), None]
    assert of_id(content, SMALL)["expected"] == [None, pytest.approx(small / 0.8)]
    assert {of_id(content, id)["source"] for id in (STREAMING, SMALL)} == {str(kept)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"schema": 1, "meta": {}, "rows": []}',
        '{"schema": 1, "meta": {}, "rows": [{"kind": "host"}]}',
        '{"meta": {"machine": "x", "limits": {"device": {"read_gbps": 1.0}}}, "rows": []}',
        '{"schema": "vecadd-check", "schema_version": 2}',
        '{"schema": "vecadd-check", "schema_version": 2, "machine": {"machine": "x"}, "findings": [{"id": 1}]}',
        '{"schema": "vecadd-check", "schema_version": 2, "machine": {}, "findings": []}',
    ],
)
def test_another_file_is_one_line_and_status_2(text: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "old.json").write_text(text)
    assert cli.main(["check", "--expect", str(tmp_path / "old.json")]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith(f"vecadd check: {tmp_path}/old.json ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--expect", "/nowhere/x.json"], "/nowhere/x.json: No such file or directory\n"),
        (["--soak-memory", "host"], "--soak-memory is for --soak MINUTES, which is not given"),
    ],
)
def test_what_cannot_be_asked_is_status_2(options: list[str], said: str, capsys: Any) -> None:
    assert cli.main(["check", *options]) == 2
    assert capsys.readouterr().err.startswith(f"vecadd check: {said}")


# What this machine cannot run

OF_A_GPU = {"read": ("device", "read", 4470.0), "kernel": ("launch", "empty kernel", 2.9e-6)}


def test_what_a_file_has_of_a_gpu_fails_where_there_is_none(
    without_gpu: None, check: Check, tmp_path: Path, capsys: Any
) -> None:
    status, content = check("--expect", str(earlier(tmp_path / "old.json", **EASY, **OF_A_GPU)))
    assert (status, content["status"]) == (1, "failed")
    assert measured_ids(content) == [*HOST, "device memory/gpu 0/read", "launch/gpu 0/empty kernel"]
    lost = [of_id(content, id) for id in ("device memory/gpu 0/read", "launch/gpu 0/empty kernel")]
    assert [(row["severity"], row["value"]) for row in lost] == [("critical", None)] * 2
    assert all("there is no GPU: the driver sees no GPU" in row["meaning"] for row in lost)
    assert severities(content, STREAMING, SMALL) == ["pass", "pass"]
    assert capsys.readouterr().out.endswith("failed: device memory/gpu 0/read, launch/gpu 0/empty kernel\n")


def test_what_no_round_measures_is_not_missed(without_gpu: None, check: Check, tmp_path: Path) -> None:
    others = {"other": ("host", "add 2^30", 1e9), "made up": ("moon", "phase", 1.0), "device": ("device", "add 7", 1.0)}
    _, content = check("--expect", str(earlier(tmp_path / "old.json", **EASY, **others)))
    assert measured_ids(content) == HOST


def test_a_gpu_is_required_where_it_is_asked_for(without_gpu: None, check: Check, tmp_path: Path, capsys: Any) -> None:
    status, content = check("--require-gpu", "--expect", str(earlier(tmp_path / "old.json", **EASY)))
    assert (status, content["status"]) == (1, "failed")
    row = of_id(content, "machine/gpus/count")
    text = "no GPU, which --require-gpu asks for: the driver sees no GPU"
    assert (row["severity"], row["value"], row["meaning"]) == ("critical", 0, text)
    assert capsys.readouterr().out.endswith("failed: machine/gpus/count\n")


def test_where_nothing_can_be_measured_the_status_is_2(
    without_gpu: None, check: Check, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def rows(measured: Measured, time: Any, gpu: int) -> None:
        raise PermissionError("it may not be asked")

    monkeypatch.setattr(measure, "MEASUREMENTS", {"host": rows})
    status, content = check()
    assert (status, content["status"]) == (2, "unknown")
    row = of_id(content, "host memory/host/figures")
    assert (row["severity"], row["value"], row["next"]) == ("unknown", None, "End other work, and run it again.")
    assert capsys.readouterr().out.endswith("\nunknown\n")


# What flutters


@pytest.mark.parametrize(
    ("rates", "severity", "rounds"),
    [
        ([120.0, 0.0, 0.0], "pass", 1),
        ([50.0, 110.0, 120.0], "warning", 3),
        ([50.0, 60.0, 120.0], "critical", 3),
        ([50.0, 120.0, 60.0], "critical", 3),
    ],
)
def test_what_would_fail_the_machine_is_measured_again(
    without_gpu: None,
    check: Check,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rates: list[float],
    severity: str,
    rounds: int,
) -> None:
    left = iter(rates)

    def rows(measured: Measured, time: Any, gpu: int) -> None:
        measured.add("host", "add 2^14", next(left))

    monkeypatch.setattr(measure, "MEASUREMENTS", {"host": rows})
    monkeypatch.setattr(measure, "ENOUGH", 3)
    expected = earlier(tmp_path / "old.json", streaming=("host", "add 2^14", 125.0))  # 100 passes
    status, content = check("--expect", str(expected))
    row = of_id(content, STREAMING)
    assert (row["severity"], status) == (severity, int(severity == "critical"))
    assert (row["value"], row.get("rounds", rates[:1])) == (statistics.median(rates[:rounds]), rates[:rounds])
    if severity == "warning":
        assert "One measurement was 50 % below the least that passes, and the median of 3 passes" in row["meaning"]


def test_a_simd_level_that_there_is_not_fails_no_machine(
    without_gpu: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    here = command.info()
    monkeypatch.setenv("VECADD_SIMD", "bogus")
    monkeypatch.setattr(command, "info", lambda: replace(here, cpu=replace(here.cpu, simd=None)))
    assert cli.main(["check"]) == 2
    levels = ", ".join(here.cpu.simd_levels)
    said = f'vecadd check: VECADD_SIMD is "bogus"; this machine and build have {levels}\n'
    assert capsys.readouterr() == ("", said)


# Files and interrupts


def test_a_file_that_cannot_be_written_keeps_neither_the_others_nor_the_table(
    without_gpu: None, tmp_path: Path, capsys: Any
) -> None:
    old = str(earlier(tmp_path / "old.json", **EASY))
    files = ["--json", "/dev/full", "--junit", str(tmp_path / "j.xml")]
    assert cli.main(["check", "--expect", old, *files]) == 2
    printed = capsys.readouterr()
    assert printed.err == "vecadd check: /dev/full: No space left on device\n"
    assert printed.out.startswith("check\n\nrow ")
    assert printed.out.endswith("passed\n")
    assert (tmp_path / "j.xml").read_text().startswith("<?xml")


def test_of_several_files_that_cannot_be_written_the_first_is_named(
    without_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def full(path: Any, content: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("vecadd.figures.replace_file", full)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", "--json", "a", "--prometheus", "b", "--junit", "c"]) == 2
    assert capsys.readouterr().err == "vecadd check: a: No space left on device\n"


@pytest.mark.parametrize("rounds", [0, 1])
def test_an_interrupt_keeps_the_rounds_before_it_and_begins_no_soak(
    rounds: int, without_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    real, left = measure.measure_round, iter(range(rounds))

    def round_of(*arguments: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        real(*arguments)

    monkeypatch.setattr(measure, "measure_round", round_of)
    monkeypatch.setattr(soak, "soak", lambda *arguments: pytest.fail("soaked"))
    file = tmp_path / "check.json"
    assert cli.main(["check", "--minutes", "9", "--soak", "9", "--json", str(file)]) == 130
    printed = capsys.readouterr()
    if rounds:
        found = json.loads(file.read_text())["machine"]
        assert (found["rounds"], found["interrupted"]) == (1, True)
        assert printed.out.endswith("\ninterrupted: whole rounds that count: 1\n")
    else:
        assert (printed, file.exists()) == (("", "vecadd check: interrupted\n"), False)
