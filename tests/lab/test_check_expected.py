"""What vecadd check compares a figure with: an earlier file's, theory, or a probe of the same run."""

import json
import math
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checks import H200, content_of_check, earlier, row_of_check

from vecadd.bench.contestants import numpy_add
from vecadd.bench.timing import Samples
from vecadd.check import expected, measure
from vecadd.check.measure import Expected, Measured, Series
from vecadd.figures import Figure, write_run
from vecadd.info import info
from vecadd.model.limits import RECORDED

pytestmark = pytest.mark.no_native

# Of the order of an H200's, beside what its recorded run has.
LAUNCH = {
    "kernel_seconds": 2.9e-6,
    "block_seconds": 0.6e-9,
    "turnaround_seconds": 150e-9,
    "queued_seconds": 1.1e-6,
    "issued_seconds": 2.2e-6,
}
LATENCY = {"l1_seconds": 20e-9, "l2_seconds": 150e-9, "dram_seconds": 400e-9, "atomic_seconds": 3e-9}
CACHE = {"copy_gbps": 4240.0, "l2_read_gbps": 8000.0, "l2_write_gbps": 6000.0}


def bench_row(sweep: str, rung: str, n: int, seconds: float, **params: Any) -> Figure:
    return Figure(sweep, rung, "float32", n, params, value=seconds, bytes=12 * n, checked=True)


def test_a_bench_file_gives_the_same_figures(tmp_path: Path) -> None:
    rows = [
        bench_row("host", "numpy", 1 << 26, 1e-3),
        bench_row("host", "add", 1 << 26, 8e-3),
        bench_row("host", "threads_stream", 1 << 26, 7e-3),
        bench_row("host", "add", 1 << 10, 3e-7),
        bench_row("size", "naive", 1 << 28, 9e-4),
        bench_row("size", "tuned", 1 << 28, 7e-4),
        bench_row("size", "add", 1 << 10, 7e-6, clock="host clock"),
    ]
    probed = {
        "device": {"read_gbps": 4470.0, "write_gbps": 4642.0, "gbps": 4526.0},
        "link": {"to_device_gbps": 55.0, "to_host_gbps": 54.0, "both_gbps": 100.0, "gbps": 78.0},
        "launch": {"kernel_seconds": 2.9e-6, "queued_seconds": 1.1e-6},
    }
    write_run(tmp_path / "bench.json", {"machine": "h200", "limits": probed}, rows)
    file = expected.read_expectations(tmp_path / "bench.json")
    assert file.machine == "h200"
    assert file.figures == {
        "host add 2^26": 12 * 2**26 / 7e-3 / 1e9,
        "host add 2^10": 3e-7,
        "link to the device": 55.0,
        "link to the host": 54.0,
        "link both ways": 100.0,
        "device read": 4470.0,
        "device write": 4642.0,
        "device add 2^28": 12 * 2**28 / 7e-4 / 1e9,
        "launch empty kernel": 2.9e-6,
        "launch queued kernel": 1.1e-6,
        "launch call of add": 7e-6,
    }


def test_of_a_check_its_rows_count_but_for_those_that_other_work_disturbed(tmp_path: Path) -> None:
    """Of two GPUs without access to each other's memory, a check has a finding of 0 that is no row."""
    found = [
        row_of_check("link/gpu 0/width", 8, "lanes"),
        row_of_check("host memory/host/add 2^26", 3.0, severity="unknown"),
        row_of_check("host memory/host/add 2^10", 1e-3, "s", "critical"),
        row_of_check("link/gpu 1/width", 16, "lanes"),
        row_of_check("pair/gpu 0 to gpu 1/peer access", 0.0, "1", "info"),
        row_of_check("nvlink/gpu 0/active links", 0, "links", "info"),
    ]
    (tmp_path / "check.json").write_text(json.dumps(content_of_check(found)))
    assert expected.read_expectations(tmp_path / "check.json").figures == {
        "host add 2^10": 1e-3,
        "link width": 8.0,
        "link width of GPU 1": 16.0,
    }


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"schema": 1, "meta": {"limits": {"device": {"read_gbps": 1%s}}}, "rows": []}' % ("0" * 400)],
)
def test_a_file_that_python_cannot_represent_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=r"x\.json is not a result file"):
        expected.read_expectations(tmp_path / "x.json")


def test_a_file_may_come_by_a_pipe(tmp_path: Path) -> None:
    """`vecadd check --expect <(...)`: a pipe can be read once."""
    file = earlier(tmp_path / "old.json", read=("device", "read", 1000.0))
    with subprocess.Popen(["cat", file], stdout=subprocess.PIPE) as cat:
        assert cat.stdout is not None
        assert expected.read_expectations(Path(f"/dev/fd/{cat.stdout.fileno()}")).figures == {"device read": 1000.0}


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        *((figure, f"bench.json has {figure:g} for device read: no machine can be compared") for figure in (0.0, -5.0)),
        (math.nan, "meta.limits.device.read_gbps is NaN, which is not a number in range"),
        (math.inf, "meta.limits.device.read_gbps is Infinity, which is not a number in range"),
    ],
    ids=str,
)
def test_a_figure_that_no_machine_can_have_is_refused(figure: float, said: str, tmp_path: Path) -> None:
    probed = {"device": {"read_gbps": figure, "write_gbps": 4642.0}}
    write_run(tmp_path / "bench.json", {"limits": probed}, [])
    with pytest.raises(ValueError, match=said):
        expected.read_expectations(tmp_path / "bench.json")


@pytest.mark.parametrize("best", range(3))
def test_the_best_of_a_bench_files_rows_is_due_wherever_it_is(best: int, tmp_path: Path) -> None:
    rows = [
        bench_row("host", rung, 1 << 26, 7e-3 if at == best else 8e-3)
        for at, rung in enumerate(("threads", "add", "threads_stream"))
    ]
    write_run(tmp_path / "bench.json", {}, [*rows, bench_row("host", "numpy", 1 << 26, 1e-3)])
    assert expected.read_expectations(tmp_path / "bench.json").figures == {"host add 2^26": 12 * 2**26 / 7e-3 / 1e9}


@pytest.mark.parametrize("best", range(3))
def test_the_best_way_of_the_same_run_is_a_rows_figure(best: int) -> None:
    timed = [Samples(numpy_add(), seconds=[2e-3, 9.0, 1e-3] if at == best else [3e-3] * 3) for at in range(3)]
    assert measure._best(1000, timed) == pytest.approx(12 * 1000 / 2e-3 / 1e9)


def test_one_rounds_interval_is_the_fastest_ways_from_its_least_rate_to_its_greatest() -> None:
    ways = [
        Samples(numpy_add(), seconds=[1e-3 * each for each in range(1, 12)]),
        Samples(numpy_add(), seconds=[1.0] * 3),
    ]
    assert measure._spread(1000, ways) == (pytest.approx(12e-6 / 10e-3), pytest.approx(12e-6 / 2e-3))
    assert measure._spread(1000, [replace(ways[0], error="x"), ways[1]]) is None


def test_a_row_that_has_failed_once_has_failed_whatever_a_later_round_gives() -> None:
    measured = Measured()
    measured.add("device", "read", "GB/s", None, "RuntimeError: it fell off the bus")
    measured.add("device", "read", "GB/s", 100.0)
    (row,) = measured.rows.values()
    assert (row.error, row.values, row.severity) == ("RuntimeError: it fell off the bus", [100.0], "critical")


def test_an_h200s_recorded_figures_pass_by_theory() -> None:
    figures: dict[str, float] = {}
    probed: dict[str, dict[str, float]] = {"launch": LAUNCH, "latency": LATENCY, "device": CACHE}
    for file in (Path(__file__).parents[2] / "benchmarks/results/h200").glob("*.json"):
        limits = json.loads(file.read_text())["meta"].get("limits") or {}
        if "device" in limits or "link" in limits:
            probed |= {name: probed.get(name, {}) | found for name, found in limits.items()}
            figures |= expected.read_expectations(file).figures
    measured = Measured(limits={0: probed})
    for title, value in figures.items():
        kind, _, name = title.partition(" ")
        if kind in ("link", "device") and name not in ("add 2^10", "add 2^12", "add 2^14", "add 2^16", "add 2^18"):
            measured.add(kind, name, "GB/s", value)  # type: ignore[arg-type]
    expected.expect_from_theory([H200], measured)
    verdicts = {title: row.passed for title, row in measured.rows.items()}
    assert set(verdicts) >= {"device read", "link both ways", "device add 2^20", "device add 2^28"}
    assert set(verdicts.values()) == {True}


def test_theory_is_of_the_link_that_could_be_and_not_of_the_one_that_is() -> None:
    measured = Measured()
    for name, unit, value in (
        ("to the device", "GB/s", 26.0),
        ("both ways", "GB/s", 80.0),
        ("generation", "generation", 5.0),
        ("width", "lanes", 8.0),
    ):
        measured.add("link", name, unit, value)  # type: ignore[arg-type]
    expected.expect_from_theory([replace(H200, link_width=8)], measured)
    rate, both, generation, width = measured.rows.values()
    assert rate.expected is not None
    assert both.expected is not None
    assert rate.expected.value == pytest.approx(63.0, abs=0.1)
    assert both.expected.value == pytest.approx(126.0, abs=0.2)
    assert [row.passed for row in (rate, both, generation, width)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("kind", "name", "unit", "bound"),
    [
        ("link", "to the device", "GB/s", 0.75 * 63.015),
        ("link", "to the host", "GB/s", 0.75 * 63.015),
        ("link", "both ways", "GB/s", 0.60 * 126.03),
        ("device", "read", "GB/s", 0.90 * 4814.304),
        ("device", "write", "GB/s", 0.90 * 4814.304),
        ("launch", "call of add", "s", 4 * LAUNCH["issued_seconds"]),
        ("launch", "empty kernel", "s", 3 * RECORDED.need("kernel")),
        ("launch", "queued kernel", "s", 3 * RECORDED.need("queued")),
        ("host", "add 2^26", "GB/s", 0.60 * 150.0),
        ("host", "add 2^10", "s", 500e-9),
    ],
)
def test_a_figure_passes_from_its_share_of_theory_or_of_a_probe_on(
    kind: Any, name: str, unit: Any, bound: float
) -> None:
    measured = Measured(probes={"host": 150.0, "numpy": 500e-9}, limits={0: {"launch": LAUNCH}})
    measured.add(kind, name, unit, 1.0)
    expected.expect_from_theory([H200], measured)
    (row,) = measured.rows.values()
    assert row.bound == pytest.approx(bound, rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "name", "unit", "bound"),
    [
        ("host", "add 2^26", "GB/s", 80.0),
        ("link", "to the host", "GB/s", 95.0),
        ("device", "read", "GB/s", 97.0),
        ("launch", "empty kernel", "s", 100.0 / 0.7),
        ("pair", "read to GPU 1", "GB/s", 95.0),
    ],
)
def test_two_runs_of_a_machine_may_differ_by_what_its_kind_of_figure_does(
    kind: Any, name: str, unit: Any, bound: float, tmp_path: Path
) -> None:
    measured = Measured()
    measured.add(kind, name, unit, 100.0)
    file = expected.read_expectations(earlier(tmp_path / "old.json", figure=(kind, name, 100.0)))
    file.expect(replace(info(), gpus=(H200, replace(H200, index=1))), measured)
    (row,) = measured.rows.values()
    assert row.bound == pytest.approx(bound)


def test_an_unknown_figure_is_neither_pass_nor_fail() -> None:
    measured = Measured()
    measured.add("device", "read", "GB/s", 100.0)
    measured.add("link", "both ways", "GB/s", 1.0)
    expected.expect_from_theory([replace(H200, bandwidth=None, link_width_max=None)], measured)
    measured.add("device", "add 2^24", "GB/s", 1.0)  # no probe to reckon from
    expected.expect_from_theory([replace(H200, bandwidth=None, link_width_max=None)], measured)
    assert [row.passed for row in measured.rows.values()] == [None, None, None]


@pytest.mark.parametrize(
    ("unit", "value", "passed"), [("GB/s", 90.0, True), ("GB/s", 89.0, False), ("s", 111.0, True), ("s", 112.0, False)]
)
def test_the_share_counts_both_ways(unit: Any, value: float, passed: bool) -> None:
    assert Series("device", "x", unit, [value], Expected(100.0, 0.9, "")).passed is passed


def test_another_gpu_is_compared_with_its_own_theory_and_the_files_first_gpu(tmp_path: Path) -> None:
    measured = Measured()
    for gpu in (0, 1):
        measured.add("device", "read", "GB/s", 1000.0, gpu=gpu)
    expected.expect_from_theory([H200, replace(H200, index=1, bandwidth=1.1e12)], measured)
    assert [row.passed for row in measured.rows.values()] == [False, True]
    file = expected.read_expectations(earlier(tmp_path / "old.json", read=("device", "read", 1000.0)))
    file.expect(replace(info(), gpus=(H200, replace(H200, index=1))), measured)
    assert [row.passed for row in measured.rows.values()] == [True, True]


# What a file has and a machine cannot run


def impossible(measured: Measured, *titles: str, gpus: int = 1) -> dict[str, str | None]:
    found = replace(info(), gpus=(H200,) * gpus, gpu_reason="none is plugged in")
    return {row.title: row.error for row in measure.find_missing(found, measured, titles)}


def measured_rows(*rows: tuple[Any, str]) -> Measured:
    measured = Measured()
    for kind, name in rows:
        measured.add(kind, name, "GB/s", 1.0)
    return measured


def test_a_gpu_that_is_not_there_is_missed() -> None:
    there = measured_rows(("device", "read"))
    assert impossible(there, "device read", "device read of GPU 1") == {"device read of GPU 1": "there is no GPU 1"}
    assert impossible(Measured(), "link width", gpus=0) == {"link width": "there is no GPU: none is plugged in"}


def test_additions_that_the_memory_has_no_room_for_are_missed() -> None:
    small = measured_rows(("host", "add 2^22"), ("device", "add 2^20"))
    assert impossible(small, "host add 2^24", "device add 2^28") == {
        "host add 2^24": "its arrays take 0.19 GiB, a larger share of the memory than is used here",
        "device add 2^28": "its arrays take 3 GiB, a larger share of the memory than is used here",
    }


def test_a_larger_addition_of_the_host_serves_for_a_smaller_one() -> None:
    assert impossible(measured_rows(("host", "add 2^26")), "host add 2^24", "host add 2^22") == {}


def test_figures_that_a_broken_probe_left_out_are_missed_for_its_reason() -> None:
    broken = Measured()
    broken.add("device", "figures", "GB/s", None, "RuntimeError: it fell off the bus", gpu=1)
    assert impossible(broken, "device write of GPU 1", gpus=2) == {
        "device write of GPU 1": "RuntimeError: it fell off the bus"
    }


def test_a_link_without_a_description_is_missed() -> None:
    assert impossible(measured_rows(("link", "to the host")), "link generation") == {
        "link generation": "neither the driver nor the system says it"
    }
