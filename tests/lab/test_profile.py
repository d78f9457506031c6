"""vecadd profile: that a profiler is found, started and read, and that its refusals are one line."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import TESTS, child_environment

from vecadd import _core, cli
from vecadd.bench import probes, recorded, steps
from vecadd.bench.operands import Buffers
from vecadd.figures import read_run
from vecadd.profile import child, command, events, metrics, ncu
from vecadd.profile.child import ProfiledRung
from vecadd.profile.ncu import ProfilerError, ProfilerUnavailableError, find_ncu

pytestmark = pytest.mark.no_native

FAKES = TESTS / "profiler"
GOLDEN = FAKES / "naive-float4.txt"


@pytest.fixture(autouse=True)
def same_vecadd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children of the code under test load the extension that this process has."""
    monkeypatch.setenv("PYTHONPATH", child_environment()["PYTHONPATH"])


@pytest.fixture
def profiler(script: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """profiler(name): the fake of that name, first on PATH."""

    def install(name: str) -> Path:
        monkeypatch.setattr(probes, "LINK_BYTES", 1 << 16)
        return script(name, f'exec {sys.executable} {FAKES}/fake_{name}.py "$@"')

    return install


@pytest.fixture
def without_profilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(ncu, "FOLDERS", (f"{tmp_path}/cuda*/bin",))


# Found


def test_the_newest_profiler_of_the_usual_folders_is_found(
    tmp_path: Path, without_profilers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("12.9", "13.0", "9.2"):
        tool = tmp_path / f"cuda-{version}" / "bin" / "ncu"
        tool.parent.mkdir(parents=True)
        tool.touch()
    assert find_ncu() == tmp_path / "cuda-13.0" / "bin" / "ncu"


def test_the_profiler_on_path_comes_first(profiler: Callable[[str], Path]) -> None:
    installed = profiler("ncu")
    assert find_ncu() == installed


# Run


def test_rungs_are_shown_side_by_side_with_the_documents_figures(
    profiler: Callable[[str], Path], device: int, capsys: pytest.CaptureFixture[str]
) -> None:
    profiler("ncu")
    assert cli.main(["profile", "naive", "float4", "--n", "1000"]) == 0
    assert capsys.readouterr().out == GOLDEN.read_text()


def test_the_file_has_all_that_the_profiler_said(profiler: Callable[[str], Path], device: int, tmp_path: Path) -> None:
    profiler("ncu")
    file = tmp_path / "profile.json"
    assert cli.main(["profile", "naive", "--n", "1000", "--block", "128", "--json", str(file)]) == 0
    content = json.loads(file.read_text())
    assert content["meta"]["method"].startswith("one launch a rung, replayed by Nsight Compute")
    (row,) = content["rows"]
    profile = row["params"]
    assert (row["rung"], row["dtype"], row["n"], profile["block"]) == ("naive", "float32", 1000, 128)
    assert (row["seconds"], row["bytes"]) == (profile["metrics"]["duration"], 12_000)
    assert profile["counters_missing"] is None
    assert profile["metrics"]["duration"] == pytest.approx(738.912e-6)
    assert profile["loads"] == {"LDG.E": 2 * 4_194_304}
    assert profile["raw"]["gpu__time_duration.sum"] == [738912, "ns"]
    assert profile["rules"][1]["speedup"] == 23.06


@pytest.mark.parametrize(
    "spec",
    [
        ProfiledRung("chunked", "float16", 5000, 64, (("chunk", 1024),)),
        ProfiledRung("single_block", "float32", 1000),  # adds to what there is
        ProfiledRung("atomic", "float32", 100, 64),  # each thread does
        ProfiledRung("race", "float32", 100),
        ProfiledRung("tuned", "bfloat16", 1000),
        ProfiledRung("half2", "float16", 1001),
        ProfiledRung("launch_loop", "float32", 1000, 0, (("adds", 10),)),
        ProfiledRung("graph", "float32", 1000, 0, (("adds", 10),)),
    ],
    ids=lambda spec: spec.rung,
)
def test_the_child_runs_every_kind_of_rung(spec: ProfiledRung, device: int) -> None:
    assert ProfiledRung.from_dict(spec.as_dict()) == spec
    child.run_rung(spec)


def test_a_block_and_a_parameter_are_given_to_the_rungs_that_have_them() -> None:
    parsed = cli._parsed(["profile", "single_thread", "naive", "strided", "--block", "128", "--param", "stride=4"])
    assert [(spec.block, spec.params) for spec in command._specs(parsed)] == [
        (0, ()), (128, ()), (128, (("stride", 4),))
    ]  # fmt: skip


def test_rungs_of_a_single_block_get_fewer_elements() -> None:
    parsed = cli._parsed(["profile", "single_thread", "naive", "half"])
    assert [(spec.rung, spec.dtype, spec.n) for spec in command._specs(parsed)] == [
        ("single_thread", "float32", 1 << 20),
        ("naive", "float32", 1 << 27),
        ("half", "float16", 1 << 27),
    ]


# Refused


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("permission", "the driver lets administrators alone read the GPU's counters (ERR_NVGPUCTRPERM): run as root"),
        ("library", "ncu does not find the driver's profiling libraries (LibraryNotLoaded): install the NVIDIA driver"),
        ("", "ncu is neither on PATH nor in /"),
    ],
)
def test_a_refusal_is_one_line_that_says_what_to_do(
    way: str,
    words: str,
    without_profilers: None,
    profiler: Callable[[str], Path],
    device: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rungs of many launches at once are timed by nothing else."""
    if way:
        profiler("ncu")
    monkeypatch.setenv("FAKE_NCU", way)
    assert cli.main(["profile", "naive", "float4", "--n", "1000"]) == 0
    printed = capsys.readouterr().out
    assert f"no counters, and times by CUDA events: {words}" in printed
    assert cli.main(["profile", "launch_loop", "graph", "--n", "1000"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"vecadd profile: {words}")
    assert "https://" in printed.err or way == "library"
    assert printed.err.count("\n") == 1


# Without Nsight Compute


@pytest.mark.parametrize(
    ("rung", "block", "grid", "needed"),
    [("naive", 256, 4, 12), ("float4", 256, 1, 12), ("single_block", 256, 1, 16), ("half2", 256, 2, 6)],
)
def test_without_a_profiler_a_launch_is_what_events_and_the_runtime_say(
    rung: str, block: int, grid: int, needed: int, device: int, without_profilers: None, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file = tmp_path / "profile.json"
    assert cli.main(["profile", rung, "--n", "1000", "--json", str(file)]) == 0
    run = read_run(file)
    meta, (row,) = run.meta, run.figures
    found = row.params["metrics"]
    assert (found["block"], found["grid"], found["threads"]) == (block, grid, block * grid)
    assert found["registers"] == _core.rung_facts(rung, row.dtype, 1000)["registers"]
    assert (row.seconds, row.bytes, row.checked) == (found["duration"], 1000 * needed, True)
    theory = meta["gpu"][0]["bandwidth"]
    assert found["needed"] == pytest.approx(100 * row.bytes / found["duration"] / theory)
    assert {"dram", "sm", "achieved"}.isdisjoint(found)
    assert row.params["counters_missing"].startswith("ncu is neither on PATH")
    printed = capsys.readouterr().out
    assert "no counters, and times by CUDA events: ncu is neither on PATH" in printed
    assert "method: kernels by CUDA events around each launch" in printed


@pytest.mark.parametrize("rung", ["atomic", "grid_stride", "race"])
def test_rungs_that_accumulate_begin_at_0_each_time(rung: str, device: int) -> None:
    """Their sum is checked after nine runs."""
    launch = events.profile_kernel(ProfiledRung(rung, "float32", 1000), None, "because")
    assert launch.why == "because"
    assert launch.found["duration"] > 0


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("nonsense", "ncu gave no report (exit status 3); it said: ==ERROR== The stars are wrong."),
        ("nothing", "ncu gave no report (exit status 0); it said: ==PROF== Connected"),
    ],
)
def test_what_the_profiler_said_is_kept_where_it_is_not_understood(
    way: str,
    words: str,
    profiler: Callable[[str], Path],
    device: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    profiler("ncu")
    monkeypatch.setenv("FAKE_NCU", way)
    assert cli.main(["profile", "naive", "--n", "1000"]) == 1
    assert capsys.readouterr().out.startswith(f"naive failed: {words}")


@pytest.mark.parametrize("installed", [True, False])
def test_a_rung_that_fails_is_named_and_the_others_stay(
    installed: bool,
    without_profilers: None,
    profiler: Callable[[str], Path],
    device: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if installed:
        profiler("ncu")
    assert cli.main(["profile", "async_copy", "naive", "--n", "1000", "--param", "stages=9"]) == 1
    printed = capsys.readouterr().out
    assert "async_copy failed: ValueError: " in printed
    assert ("739 us" in printed) == installed
    assert "method: " in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["atomic", "--dtype", "int8"], "rung atomic takes "),
        (["launch_loop", "--param", "chain=1"], "chain=1 launches the kernel of chain=0: profile that"),
        (["naive", "float4", "--param", "chunk=7"], "none of naive, float4 has the parameter chunk"),
    ],
)
def test_what_a_rung_does_not_take_is_said(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["profile", *arguments]) == 1
    assert capsys.readouterr().err.startswith(f"vecadd profile: {words}")


# Read

RAW = """==PROF== Connected to process 4711 (/usr/bin/python3)
"ID","Kernel Name","Device","gpu__time_duration.sum","launch__grid_size","a.b","made.up"
"","","","usecond","","%","%"
"0","wait_cycles(long)","0","1.00","1","1","1"
"1","void f(int *, int)","0","1,234.50","7","nan","n/a"
"2","void g(int *, int)","0","2.00","7","1","1"
"""


def test_the_rungs_first_launch_is_read_and_neither_the_delay_nor_what_is_no_number() -> None:
    launch = ncu.read_launch(RAW)
    assert launch is not None
    assert launch.kernel == "void f(int *, int)"
    assert metrics.select_metrics(launch.raw) == {"duration": pytest.approx(1234.5e-6), "grid": 7}
    assert {"a.b", "made.up"}.isdisjoint(launch.raw)


def test_a_page_without_launches_has_none() -> None:
    assert ncu.read_launch('"ID","Kernel Name","x"\n"","","%"\n') is None


def test_another_text_is_no_page() -> None:
    with pytest.raises(ProfilerError, match="it said: ==ERROR== no"):
        ncu.read_launch("==ERROR== no\n")


def test_pages_without_rules_or_instructions_are_empty() -> None:
    assert ncu.read_rules('"ID","Kernel Name","Metric Name"\n"0","f","x"\n') == ()
    assert ncu.count_loads("==WARNING== No source\n") == ({}, None)


def test_loads_are_counted_by_kind() -> None:
    source = """"Kernel Name","f(int)"
"#","Address","Source","# Samples","Instructions Executed"
"2","0x20","      LDGSTS.E.BYPASS.128 [R3], desc[UR4][R2.64] ","7","30"
"0","0x00","      @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ","7","1,000"
"1","0x10","      @P1  LDG.E.128.CONSTANT R8, desc[UR4][R2.64] ","7","1,000"
"3","0x30","      LDS.128 R4, [R3] ","7","30"
"4","0x40","      STG.E desc[UR4][R2.64], R4 ","7","5"
"""
    found, instructions = ncu.count_loads(source)
    assert (list(found.items()), instructions) == ([("LDG.E.128.CONSTANT", 2000), ("LDGSTS.E.BYPASS.128", 30)], 2065)


def test_samples_serve_where_the_averages_are_missing() -> None:
    raw = {
        "smsp__pcsamp_warps_issue_stalled_long_scoreboard": (60.0, ""),
        "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued": (55.0, ""),
        "smsp__pcsamp_warps_issue_stalled_selected": (20.0, ""),
        "smsp__pcsamp_warps_issue_stalled_short_scoreboard": (20.0, ""),
    }
    shares = metrics.stall_shares(raw)
    assert shares == {"long_scoreboard": 0.6, "selected": 0.2, "short_scoreboard": 0.2}
    assert metrics.share_of_reason(metrics.REASONS[0], shares) == pytest.approx(0.8)
    assert metrics.stall_shares({}) == {}
    averages = {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": (2.0, "")}
    assert metrics.stall_shares(raw | averages) == {"wait": 1.0}


def test_the_documents_reasons_and_rungs_have_their_place() -> None:
    titles = [reason.title for reason in metrics.REASONS]
    assert {"all scoreboard", "long scoreboard", "short scoreboard", "execution dependency"} <= set(titles)
    assert {profile.stall for profile in recorded.PROFILES} - {""} <= set(titles)
    assert {key for profile in recorded.PROFILES for key in profile.metrics} <= {row.key for row in metrics.ROWS}


# Transfer rungs


def test_a_transfer_rung_shows_shares_and_rates(
    device: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(probes, "LINK_BYTES", 1 << 16)
    timeline = [("to_device", 0, 0, 0.0, 4e-6), ("kernel", 0, 0, 4e-6, 5e-6), ("to_host", 0, 0, 5e-6, 8e-6)]
    real = _core.timeline

    def timed(*arguments: Any, **options: Any) -> list[tuple[str, int, int, float, float]]:
        real(*arguments, **options)
        return timeline

    monkeypatch.setattr(_core, "timeline", timed)
    file = tmp_path / "profile.json"
    assert cli.main(["profile", "streams2", "--n", "25000", "--json", str(file)]) == 0
    content = json.loads(file.read_text())
    assert content["meta"]["link"].keys() == {"to_device", "to_host", "theory", "name"}
    assert "limits" not in content["meta"]  # which are rates of an addition
    (row,) = content["rows"]
    assert row["seconds"] == 8e-6
    up, kernel, down = row["params"]["parts"]
    assert (up["what"], up["count"], up["seconds"], up["bytes"]) == ("to_device", 1, pytest.approx(4e-6), 200_000)
    assert (up["share"], up["gbps"]) == (pytest.approx(0.5), pytest.approx(50))
    assert (kernel["what"], kernel["count"], kernel["bytes"], kernel["gbps"]) == ("kernel", 1, None, None)
    assert (down["what"], down["gbps"]) == ("to_host", pytest.approx(100 / 3))
    printed = " ".join(capsys.readouterr().out.split())
    assert "copies and kernels of one run" in printed
    assert "copies to the device 1 4 us 50.0 0.2 50.0" in printed
    assert f"method: {command.METHOD_OF_TRANSFERS}" in printed


def test_the_parts_of_a_timeline_add_up() -> None:
    timeline = [
        ("to_device", 0, 0, 0.0, 2.0),
        ("to_device", 1, 1, 0.0, 4.0),  # queued at the same time, and carried after it
        ("kernel", 0, 0, 4.0, 5.0),
        ("to_host", 0, 0, 5.0, 8.0),
    ]
    transfer = events.transfer_of_events(ProfiledRung("streams2", "float16", 3000), steps.steps(timeline))
    assert [(part.what, part.count, part.seconds, part.bytes) for part in transfer.parts] == [
        ("to_device", 2, 4.0, 12000),
        ("kernel", 1, 1.0, None),
        ("to_host", 1, 3.0, 6000),
    ]
    assert [transfer.share(part) for part in transfer.parts] == [0.5, 0.125, 0.375]
    assert [(part.median, part.least, part.most) for part in transfer.parts] == [(2, 2, 2), (1, 1, 1), (3, 3, 3)]
    assert transfer.seconds == 8.0


# On a GPU


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("rung", "load"), [("naive", "LDG.E"), ("restrict", "LDG.E.CONSTANT"), ("float4", "LDG.E.128")]
)
def test_a_real_profiler_says_what_the_runtime_says(rung: str, load: str, runtime: str | None) -> None:
    if runtime != "gpu":
        pytest.skip("needs a GPU")
    spec = ProfiledRung(rung, "float32", 1 << 22)
    try:
        launch = ncu.profile_launch(spec)
    except ProfilerUnavailableError as error:
        pytest.skip(f"needs a profiler: {error}")
    found, facts = metrics.select_metrics(launch.raw), _core.rung_facts(rung, "float32", spec.n)
    assert set(found) == {row.key for row in metrics.ROWS} - {"needed"}  # which replaces the counters where they lack
    assert (found["registers"], found["block"], found["grid"]) == (
        max(facts["registers"], 16),  # no thread gets fewer
        facts["block"][0],
        facts["grid"][0],
    )
    assert found["occupancy"] == pytest.approx(100 * facts["occupancy"], abs=0.1)
    assert found["threads"] == found["block"] * found["grid"]
    assert next(iter(launch.executed)) == spec.facts["load"]
    shares = metrics.stall_shares(launch.raw)
    assert max(shares, key=lambda name: shares[name]) == "long_scoreboard"
    assert launch.rules


# vecadd profile without Nsight Compute: the time of a launch by its events, and where the table goes.


def test_a_launch_takes_the_median_of_nine_runs(device: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([9e-6, 1e-6, 8e-6, 2e-6, 7e-6, 3e-6, 4e-6, 40e-6, 50e-6])

    def run(spec: ProfiledRung, watched: Callable[[Buffers], None]) -> None:
        watched(Buffers(None, None, None, 0))

    monkeypatch.setattr(events.child, "run_rung", run)
    monkeypatch.setattr(events._core, "run_rung", lambda *arguments, **options: next(seconds))
    found = events.profile_kernel(ProfiledRung("naive", "float32", 1000), 4e12, "because").found
    assert found["duration"] == 7e-6
    assert found["needed"] == pytest.approx(100 * 12_000 / 7e-6 / 4e12)
    assert next(seconds, None) is None


def test_the_table_is_on_stderr_where_the_file_is_stdout(device: int, without_profilers: None, capsys: Any) -> None:
    assert cli.main(["profile", "naive", "--n", "1000", "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert [row["rung"] for row in json.loads(printed.out)["rows"]] == ["naive"]
    assert f"method: {command.METHOD_OF_EVENTS}" in " ".join(printed.err.split())
