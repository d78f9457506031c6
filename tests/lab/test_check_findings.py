"""What vecadd check says of a machine: what it compares a figure with, how severe that is, and what to do."""

import json
import math
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import simulated_fleet as simulated
from checks import H200, QUIET, earlier, figure_of, measured_of, this_machine
from hypothesis import given
from hypothesis import strategies as st

from vecadd.bench.contestants import numpy_add
from vecadd.bench.timing import Samples
from vecadd.check import expected, findings, measure
from vecadd.check.findings import find_severity, make_figure
from vecadd.check.measure import Measured, find_bound, find_measured, show_title
from vecadd.check.outputs import status_of
from vecadd.figures import SEVERITIES, Figure, write_run
from vecadd.info import info

pytestmark = pytest.mark.no_native

LINK = figure_of("link", "generation", 5.0, passes=(5.0, 1.0)), figure_of("link", "width", 16.0, passes=(16.0, 1.0))


def said(*figures: Figure, rounds: int = 2, **conditions: Any) -> list[Figure]:
    """All that is said of a machine with an H200."""
    here = replace(this_machine(), gpus=(H200,))
    return findings.find_all(here, QUIET | conditions, measured_of(*figures), rounds=rounds)


def test_a_link_that_is_not_reported_is_unknown() -> None:
    (found,) = (each for each in said(LINK[0]) if each.severity != "pass")
    assert (found.severity, found.meaning) == ("unknown", "neither nvidia-smi nor sysfs says the link's width.")


@pytest.mark.parametrize(
    ("what", "values", "slower"),
    [
        ("read", [100.0, 80.0], "20 %"),
        ("read", [100.0, 125.0], None),  # faster
        ("read", [100.0, 50.0, 100.0], None),  # the last round counts
        ("empty kernel", [1.0, 1.25], "25 %"),
        ("empty kernel", [1.0, 0.8], None),  # faster
        ("empty kernel", [1.0, 1.04], None),
        ("empty kernel", [1.0], None),
    ],
)
def test_only_what_got_slower_is_drift(what: str, values: list[float], slower: str | None) -> None:
    kind = "device" if what == "read" else "launch"
    its = figure_of(kind, what, *values)
    drift = [(each.severity, each.meaning) for each in said(its) if each.name.startswith("drift/")]
    assert drift == ([("warning", f"drift: {kind} {what} was {slower} slower in the last round.")] if slower else [])
    assert not any(each.name.startswith("drift/") for each in said(its, rounds=1))  # repeats of a failure are no rounds


# Severities

RATE, TIME = (100.0, 0.9), (1.0, 0.5)  # 90 GB/s and 2 s pass


@pytest.mark.parametrize(
    ("figure", "load", "severity"),
    [
        (figure_of("device", "read", 100.0), 0.1, "info"),
        (figure_of("device", "read", 100.0, passes=RATE), 0.1, "pass"),
        (figure_of("device", "read", 80.0, 100.0, 100.0, passes=RATE), 0.1, "warning"),
        (figure_of("device", "read", 80.0, 80.0, 100.0, passes=RATE), 0.1, "critical"),
        (figure_of("launch", "empty kernel", 3.0, 1.0, 1.0, passes=TIME), 0.1, "warning"),
        (figure_of("launch", "empty kernel", 3.0, 3.0, 1.0, passes=TIME), 0.1, "critical"),
        (figure_of("device", "read", error="RuntimeError: it fell off the bus"), 0.1, "critical"),
        (figure_of("device", "read", error="MemoryError: device 0 has no room"), 0.1, "unknown"),
        (figure_of("device", "read", 100.0, error="wrong bytes: 1 of 8"), 0.1, "critical"),
        # What processors time while others keep all of them busy: above a task a processor.
        (figure_of("host", "add 2^26", 50.0, passes=RATE), 16.1, "unknown"),
        (figure_of("host", "add 2^26", 50.0, passes=RATE), 16.0, "critical"),
        (figure_of("launch", "call of add", 3.0, passes=TIME), 16.1, "unknown"),
        (figure_of("host", "add 2^26", 100.0, 50.0, 100.0, passes=RATE), 16.1, "warning"),
        (figure_of("host", "add 2^26", 100.0, passes=RATE), 16.1, "pass"),
        (figure_of("host", "add 2^26", 50.0, error="wrong sum"), 16.1, "critical"),
        (figure_of("device", "read", 50.0, passes=RATE), 16.1, "critical"),
        (figure_of("link", "to the host", 50.0, passes=RATE), 16.1, "critical"),
    ],
)
def test_how_severe_a_figure_is(figure: Figure, load: float, severity: str) -> None:
    found = said(*LINK, figure, load_average=load, rounds=1)
    (its,) = (each for each in found if each.name == figure.name)
    assert (its.severity, its.value) == (severity, figure.value)
    assert status_of(found) == {"critical": "failed", "unknown": "unknown"}.get(severity, "passed")
    assert its.meaning
    assert bool(its.next) == (severity in ("critical", "warning", "unknown"))
    if severity == "unknown":
        assert its.next == "End other work, and run it again."
        assert its.error or its.meaning.endswith("by the median of 1. Other work kept the host's processors busy.")


@pytest.mark.parametrize(
    ("figure", "id", "title"),
    [
        (figure_of("host", "add 2^26"), "host memory/host/add 2^26", "host add 2^26"),
        (figure_of("device", "read"), "device memory/gpu 0/read", "device read"),
        (figure_of("link", "width", gpu=3), "link/gpu 3/width", "link width of GPU 3"),
        (figure_of("pair", "copy", gpu=11, to=0), "pair/gpu 11 to gpu 0/copy", "pair copy to GPU 0 of GPU 11"),
    ],
)
def test_an_id_leads_back_to_the_figure_that_rounds_measure(figure: Figure, id: str, title: str) -> None:
    assert (figure.name, show_title(figure)) == (id, title)
    assert (find_measured(id), figure.where) == (figure, id.split("/")[1])
    assert figure.measurement == f"{figure.sweep} {id.rpartition('/')[2]}"  # the same for every GPU


@pytest.mark.parametrize(
    "id",
    ["", "soak/gpu 0/rate", "link", "link/gpu x/width", "link/gpu 0/", "link/gpu 0/read", "device memory/node 0/read"],
)
def test_other_ids_are_no_figures_of_a_round(id: str) -> None:
    assert find_measured(id) is None


# Is this number normal?


def test_what_others_would_show_is_reckoned_from_the_rows_of_the_same_gpu_and_pair() -> None:
    limits: dict[int, Any] = {gpu: {"link": {"to_device_gbps": 50.0 + gpu, "gbps": 80.0 + gpu}} for gpu in (0, 1)}
    limits[0]["device"] = {"copy_gbps": 4240.0}
    measured = measured_of(
        figure_of("launch", "empty kernel", 3e-6),
        figure_of("device", "read", 4470.0),
        figure_of("host", "add 2^26", 100.0),
        figure_of("link", "to the device", 51.0, gpu=1),
        *(figure_of("device", "add 2^28", rate, gpu=gpu) for gpu, rate in ((0, 4400.0), (1, 4300.0))),
        *(
            figure_of("pair", way, rate, gpu=1, to=0)
            for way, rate in (("copy", 390.0), ("read", 360.0), ("write", 370.0))
        ),
        limits=limits,
    )
    gpus = (H200, replace(H200, index=1))
    every = findings.find_all(replace(this_machine(), gpus=gpus), QUIET, measured)
    found = {each.name: each.more["normal"] for each in every if "normal" in each.more}
    assert set(found) == {each.name for each in every if each.unit == "GB/s"}
    assert all(set(normal) == {"data sheet", "copy", "STREAM add", "ours", "why"} for normal in found.values())
    read = found["device memory/gpu 0/read"]
    assert [read[name] for name in ("data sheet", "STREAM add", "ours")] == ["4814 GB/s", "4400 GB/s", "4470 GB/s"]
    assert read["copy"] == "4240 GB/s with bytes read and bytes written, 2120 GB/s where a tool counts once"
    host = found["host memory/host/add 2^26"]
    assert "about 75 GB/s" in host["STREAM add"]  # a store that reads its line first: three of four are counted
    assert host["copy"] == "a memcpy that counts its bytes once: about 50 GB/s"
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


# Conditions

THROTTLING, ECC, OTHERS = (f"conditions/gpus/{name}" for name in ("throttling by", "ECC errors", "other processes"))
CONDITIONS: dict[str, tuple[dict[str, Any], list[Figure], dict[str, tuple[str, str]]]] = {
    "healthy": ({}, [], {}),
    "power cap": (
        {"throttled": {"power cap": 2.5, "heat": 0.0}},
        [],
        {f"{THROTTLING} power cap": ("info", "throttling: power cap for 2.5 s of the run.")},
    ),
    "heat": (
        {"throttled": {"power cap": 0.0, "heat": 2.0}},
        [],
        {f"{THROTTLING} heat": ("critical", "throttling: heat for 2 s of the run.")},
    ),
    "ECC": ({"ecc_errors": 3}, [], {ECC: ("critical", "ECC errors: 3 uncorrected since the driver was loaded.")}),
    "generation and width": (
        {},
        [figure_of("link", "generation", 4.0, passes=(5.0, 1.0)), figure_of("link", "width", 4.0, passes=(16.0, 1.0))],
        {
            "link/gpu 0/generation": ("critical", "degraded link: PCIe 4 under load, where PCIe 5 is possible."),
            "link/gpu 0/width": ("critical", "degraded link: x4 under load, where x16 is possible."),
        },
    ),
    "load": ({"load_average": 8.1}, [], {"conditions/host/load": ("warning", "host load: 8.1 on 16 CPUs before ")}),
    "processes": ({"gpu_processes": 2}, [], {OTHERS: ("warning", "other processes on the GPU: 2.")}),
    "unknown": (
        {"ecc_errors": None, "throttled": {"heat": None}},
        [],
        {
            ECC: ("unknown", "ECC errors: nvidia-smi does not say."),
            f"{THROTTLING} heat": ("unknown", "throttling by heat: nvidia-smi does not say."),
        },
    ),
}


@pytest.mark.parametrize(("conditions", "links", "noted"), CONDITIONS.values(), ids=CONDITIONS)
def test_a_machine_fails_by_what_it_is_to_blame_for_alone(
    conditions: dict[str, Any], links: list[Figure], noted: dict[str, tuple[str, str]]
) -> None:
    found = said(figure_of("host", "add 2^26", 1.0, passes=(1.0, 0.9)), *(links or LINK), **conditions)
    unusual = {each.name: each for each in found if each.severity != "pass"}
    assert {id: each.severity for id, each in unusual.items()} == {id: severity for id, (severity, _) in noted.items()}
    assert {"conditions/host/load", ECC, OTHERS} <= {each.name for each in found}
    assert [id for id, (_, words) in noted.items() if words not in unusual[id].meaning] == []
    critical = [each for each in unusual.values() if each.severity == "critical"]
    assert all(each.next for each in critical)
    assert status_of(found) == ("failed" if critical else "passed")


# What a figure is compared with: an earlier file's, theory, or a probe of the same run.

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


@pytest.mark.parametrize("best", range(3))
def test_a_bench_file_gives_the_same_figures_and_the_best_row_in_any_order(best: int, tmp_path: Path) -> None:
    ways = enumerate(("add", "threads", "threads_stream"))
    rows = [
        *(bench_row("host", rung, 1 << 26, 7e-3 if at == best else 8e-3) for at, rung in ways),
        bench_row("host", "numpy", 1 << 26, 1e-3),
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
    assert file.meta["machine"] == "h200"
    assert {figure.name: figure.value for figure in file.figures} == {
        "host memory/host/add 2^26": 12 * 2**26 / 7e-3 / 1e9,
        "host memory/host/add 2^10": 3e-7,
        "link/gpu 0/to the device": 55.0,
        "link/gpu 0/to the host": 54.0,
        "link/gpu 0/both ways": 100.0,
        "device memory/gpu 0/read": 4470.0,
        "device memory/gpu 0/write": 4642.0,
        "device memory/gpu 0/add 2^28": 12 * 2**28 / 7e-4 / 1e9,
        "launch/gpu 0/empty kernel": 2.9e-6,
        "launch/gpu 0/queued kernel": 1.1e-6,
        "launch/gpu 0/call of add": 7e-6,
    }


def test_of_a_check_its_rows_count_but_for_those_that_other_work_disturbed(tmp_path: Path) -> None:
    """Of two GPUs without access to each other's memory, a check has a finding of 0 that is no row."""
    found = [
        simulated.finding("link/gpu 0/width", 8, "lanes"),
        simulated.finding("host memory/host/add 2^26", 3.0, severity="unknown"),
        simulated.finding("host memory/host/add 2^10", 1e-3, "s", severity="critical"),
        simulated.finding("link/gpu 1/width", 16, "lanes"),
        simulated.finding("pair/gpu 0 to gpu 1/peer access", 0.0, "1", severity="info"),
        simulated.finding("nvlink/gpu 0/active links", 0, "links", severity="info"),
    ]
    (tmp_path / "check.json").write_text(json.dumps(simulated.content("there", found)))
    kept = ("link/gpu 0/width", "host memory/host/add 2^10", "link/gpu 1/width")
    assert tuple(figure.name for figure in expected.read_expectations(tmp_path / "check.json").figures) == kept


def test_a_file_may_come_by_a_pipe(tmp_path: Path) -> None:
    """`vecadd check --expect <(...)`: a pipe can be read once."""
    file = earlier(tmp_path / "old.json", read=("device", "read", 1000.0))
    with subprocess.Popen(["cat", file], stdout=subprocess.PIPE) as cat:
        assert cat.stdout is not None
        (figure,) = expected.read_expectations(Path(f"/dev/fd/{cat.stdout.fileno()}")).figures
        assert figure.value == 1000.0


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        *(
            (figure, f"bench.json has {figure:g} for device read, gpu 0: no machine can be compared")
            for figure in (0.0, -5.0)
        ),
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


@pytest.mark.parametrize("best", range(2))
@pytest.mark.parametrize("failed", [False, True])
def test_the_best_ways_median_is_the_figure_with_its_deciles_unless_one_failed(best: int, failed: bool) -> None:
    """Of a rate from the slowest to the quickest."""
    way, slow = (Samples(numpy_add(), seconds=seconds) for seconds in ([1e-3 * at for at in range(1, 12)], [1.0] * 3))
    if failed:
        slow = replace(slow, error="wrong result")
    measured = Measured()
    for kind, what in (("host", "add 2^26"), ("launch", "call of add")):
        measured.add_timed(kind, what, [slow, way] if best else [way, slow])
    rate, seconds = measured.figures.values()
    nbytes = 12 * 2**26 / 1e9
    assert (rate.value, rate.error) == ((None, "numpy: wrong result") if failed else (nbytes / 6e-3, None))
    assert rate.interval == (None if failed else pytest.approx((nbytes / 10e-3, nbytes / 2e-3)))
    assert seconds.interval == (None if failed else pytest.approx((2e-3, 10e-3)))


def test_a_row_that_has_failed_once_has_failed_whatever_a_later_round_gives() -> None:
    measured = Measured()
    measured.add("device", "read", None, "RuntimeError: it fell off the bus")
    measured.add("device", "read", 100.0)
    (figure,) = measured.figures.values()
    assert (figure.error, figure.rounds) == ("RuntimeError: it fell off the bus", (100.0,))


def test_an_h200s_recorded_figures_pass_by_theory() -> None:
    values: dict[str, float | None] = {}
    probed: dict[str, dict[str, float]] = {"launch": LAUNCH, "latency": LATENCY, "device": CACHE}
    for file in (Path(__file__).parents[2] / "benchmarks/results/h200").glob("*.json"):
        limits = json.loads(file.read_text())["meta"].get("limits") or {}
        if "device" in limits or "link" in limits:
            probed |= {name: probed.get(name, {}) | found for name, found in limits.items()}
            values |= {figure.name: figure.value for figure in expected.read_expectations(file).figures}
    measured = Measured(limits={0: probed})
    for id, value in values.items():
        if (figure := find_measured(id)) is not None and figure.sweep in ("link", "device"):
            measured.add(figure.sweep, figure.params["what"], value)
    expected.expect_from_theory([H200], measured)
    large = ("read", "add 2^20", "add 2^28")
    assert set(measured.figures) >= {"link/gpu 0/both ways", *(f"device memory/gpu 0/{what}" for what in large)}
    assert {find_severity(figure) for figure in measured.figures.values()} == {"pass"}


# What an H200 has to reach, by hand: its memory's 4.814 TB/s, and 63.0 GB/s a way of PCIe 5 x16.
BOUNDS = {
    ("device", "read"): 0.90 * 4814.304,
    ("device", "write"): 0.90 * 4814.304,
    ("link", "to the device"): 0.75 * 16 * 32 * 128 / 130 / 8,
    ("link", "to the host"): 0.75 * 16 * 32 * 128 / 130 / 8,
    ("link", "both ways"): 0.60 * 2 * 16 * 32 * 128 / 130 / 8,
    ("link", "width"): 16.0,
    ("link", "generation"): 5.0,
    ("host", "add 2^26"): 0.60 * 140.0,
    ("host", "add 2^10"): 300e-9,
    ("launch", "empty kernel"): 3 * 4.5e-6,
    ("launch", "queued kernel"): 3 * 1.6e-6,
    ("launch", "call of add"): 4 * 2.2e-6,
}


@given(what=st.sampled_from(sorted(BOUNDS)), shares=st.lists(st.floats(0.9, 1.1), min_size=1, max_size=5))
def test_the_median_of_the_rounds_decides_at_each_bound(what: tuple[str, str], shares: list[float]) -> None:
    probes, limits = {"host": 140.0, "numpy": 300e-9}, {0: {"launch": {"issued_seconds": 2.2e-6}}}
    measured = measured_of(figure_of(*what, *(share * BOUNDS[what] for share in shares)), probes=probes, limits=limits)
    expected.expect_from_theory([H200], measured)
    (figure,) = measured.figures.values()
    assert find_bound(figure) == pytest.approx(BOUNDS[what])
    is_time = figure.unit == "s"
    good = sorted(shares, reverse=is_time)
    middle = (good[(len(good) - 1) // 2] + good[len(good) // 2]) / 2
    passes = [(share <= 1) if is_time else (share >= 1) for share in (middle, good[0])]
    near = any(abs(share - 1) < 1e-9 for share in (middle, good[0]))
    severity = "critical" if not passes[0] else "pass" if passes[1] else "warning"
    assert near or find_severity(figure) == severity


def test_theory_is_of_the_link_that_could_be_and_not_of_the_one_that_is() -> None:
    measured = measured_of(figure_of("link", "to the device", 26.0), figure_of("link", "width", 8.0))
    expected.expect_from_theory([replace(H200, link_width=8)], measured)
    assert [figure.reference for figure in measured.figures.values()] == [pytest.approx(63.0, abs=0.1), 16]
    assert [find_severity(figure) for figure in measured.figures.values()] == ["critical", "critical"]


@pytest.mark.parametrize(
    ("kind", "what", "bound"),
    [
        ("host", "add 2^26", 80.0),
        ("link", "to the host", 95.0),
        ("device", "read", 97.0),
        ("launch", "empty kernel", 100.0 / 0.7),
        ("pair", "read", 95.0),
    ],
)
def test_two_runs_of_a_machine_may_differ_by_what_its_kind_of_figure_does(
    kind: str, what: str, bound: float, tmp_path: Path
) -> None:
    file = expected.read_expectations(earlier(tmp_path / "old.json", figure=(kind, what, 100.0)))
    measured = measured_of(figure_of(kind, what, 100.0, to=1 if kind == "pair" else None))
    expected.expect_from_run(file, replace(info(), gpus=(H200, replace(H200, index=1))), measured)
    (figure,) = measured.figures.values()
    assert find_bound(figure) == pytest.approx(bound)


def test_what_nobody_knows_is_neither_pass_nor_fail() -> None:
    measured = measured_of(
        figure_of("device", "read", 100.0),
        figure_of("link", "both ways", 1.0),
        figure_of("device", "add 2^24", 1.0),  # no probe to reckon from
    )
    expected.expect_from_theory([replace(H200, bandwidth=None, link_width_max=None)], measured)
    assert [figure.expected for figure in measured.figures.values()] == [None, None, None]


def test_another_gpu_is_compared_with_its_own_theory_and_the_files_first_gpu(tmp_path: Path) -> None:
    def severities() -> list[str]:
        return [find_severity(figure) for figure in measured.figures.values()]

    measured = measured_of(*(figure_of("device", "read", 1000.0, gpu=gpu) for gpu in (0, 1)))
    expected.expect_from_theory([H200, replace(H200, index=1, bandwidth=1.1e12)], measured)
    assert severities() == ["critical", "pass"]
    file = expected.read_expectations(earlier(tmp_path / "old.json", read=("device", "read", 1000.0)))
    expected.expect_from_run(file, replace(info(), gpus=(H200, replace(H200, index=1))), measured)
    assert severities() == ["pass", "pass"]


# What a file has and a machine cannot run


NO_ROOM = "its arrays take {} GiB, a larger share of the memory than is used here"
BROKEN = "RuntimeError: it fell off the bus"
PAIRS = [f"pair/gpu {pair}" for pair in ("0 to gpu 1/copy", "0 to gpu 1/read", "1 to gpu 0/read")]
ADD, DEVICE = "host memory/host/add", "device memory/gpu"


@pytest.mark.parametrize(
    ("figures", "gpus", "missed"),
    [
        ([("device", "read")], 1, {f"{DEVICE} 0/read": None, f"{DEVICE} 1/read": "there is no GPU 1"}),
        ([], 0, {"link/gpu 0/width": "there is no GPU: none is plugged in"}),
        (
            [("host", "add 2^22"), ("device", "add 2^20")],
            1,
            {f"{ADD} 2^24": NO_ROOM.format(0.19), f"{DEVICE} 0/add 2^28": NO_ROOM.format(3)},
        ),
        ([("host", "add 2^26")], 1, {f"{ADD} 2^24": None, f"{ADD} 2^22": None}),  # the larger one replaces both
        ([("device", "figures")], 1, {f"{DEVICE} 0/write": BROKEN}),
        ([("link", "to the host")], 1, {"link/gpu 0/generation": "neither the driver nor the system says it"}),
        ([], 1, dict.fromkeys(PAIRS, "there is no GPU 1")),
        (
            [("pair", "copy")],
            2,
            {PAIRS[0]: None, **dict.fromkeys(PAIRS[1:], "there is no peer access between the two")},
        ),
    ],
    ids=["GPU", "any GPU", "memory", "nothing", "a probe", "link", "the other GPU", "peer access"],
)
def test_what_a_machine_cannot_run_is_missed_for_its_reason(
    figures: list[tuple[str, str]], gpus: int, missed: dict[str, str | None]
) -> None:
    here = replace(info(), gpus=(H200,) * gpus, gpu_reason="none is plugged in")
    measured = measured_of(
        *(
            figure_of(kind, what, error=BROKEN if what == "figures" else None, to=1 if kind == "pair" else None)
            for kind, what in figures
        )
    )
    found = {figure.name: figure.error for figure in measure.find_missing(here, measured, tuple(missed))}
    assert found == {id: reason for id, reason in missed.items() if reason}
