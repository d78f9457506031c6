"""The notebooks' hand: measured where that is possible, else recorded, and which of the two it was."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up
import pytest

import vecadd
from vecadd import _core, laboratory
from vecadd.bench import probes
from vecadd.figures import Figure, write_run
from vecadd.info import info
from vecadd.laboratory import Measured

pytestmark = pytest.mark.no_native


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that says why it has no GPU."""
    monkeypatch.delenv("VECADD_RECORDED", raising=False)
    found = replace(info(), gpus=(), gpu_reason="none is plugged in")
    monkeypatch.setattr(laboratory, "_found", lambda: found)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of recorded files: empty."""
    monkeypatch.setenv("VECADD_RESULTS", str(tmp_path))
    return tmp_path


def record(folder: Path, name: str, rows: list[Figure], **meta: Any) -> None:
    path = folder / "made-up" / name
    path.parent.mkdir(exist_ok=True)
    write_run(path, {**made_up.META, **meta}, rows)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_newest_recorded_rows_are_given(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(folder, "a.json", made_up.transfer(), date="2026-03-01T00:00:00+00:00", commit="new")
    record(folder, "b.json", made_up.transfer(), date="2026-02-01T00:00:00+00:00", commit="old")
    record(folder, "c.json", made_up.latency(), date="2026-04-01T00:00:00+00:00", commit="other")
    meta, rows, recorded = laboratory.measure("transfer")
    assert (meta["commit"], len(rows), recorded) == ("new", len(made_up.transfer()), True)
    line = "transfer: recorded on Made-up GPU, 2026-03-01, commit new (no GPU here: none is plugged in)\n"
    assert capsys.readouterr().out == line


def test_rows_of_the_host_too_are_those_of_the_machine_with_the_gpu(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [replace(row, sweep="host") for row in made_up.transfer()]
    record(folder, "a.json", rows, gpu=[], date="2026-05-01T00:00:00+00:00")
    record(folder, "b.json", rows, date="2026-02-01T00:00:00+00:00")
    monkeypatch.setenv("VECADD_RECORDED", "1")
    assert laboratory.measure("host").meta["date"] == "2026-02-01T00:00:00+00:00"


@pytest.mark.usefixtures("no_gpu")
def test_recorded_rows_are_those_of_the_axes(folder: Path) -> None:
    record(folder, "a.json", made_up.transfer())
    rows = laboratory.measure("transfer", sizes=(2**20, 2**26), rungs=("pinned",)).rows
    assert [(row.name, row.n) for row in rows] == [("pinned", 2**20), ("pinned", 2**26)]


@pytest.mark.usefixtures("no_gpu")
def test_what_is_not_recorded_is_one_line_and_no_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = laboratory.measure("ladder")
    assert capsys.readouterr().out == "ladder: not recorded yet, and no GPU here: none is plugged in\n"
    assert (measured.rows, measured.picture(), measured.fastest("naive")) == ([], None, None)
    assert measured.gain("float4", over="naive") is None


@pytest.mark.usefixtures("no_gpu")
def test_a_folder_of_results_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VECADD_RESULTS", "/nowhere")
    with pytest.raises(FileNotFoundError, match="VECADD_RESULTS=/nowhere: there is no such folder"):
        laboratory.measure("ladder")


@pytest.mark.parametrize(
    ("sweep", "axes", "says"),
    [
        ("laddder", {}, r"no sweep is called 'laddder'; did you mean ladder\?"),
        ("ladder", {"rungs": ("float8",)}, r"no rung is called 'float8'; did you mean float4 or float2\?"),
        ("ladder", {"rungs": ("naive", "x")}, "no rung is called 'x'; there are numpy, add, "),
        ("ladder", {"dtypes": ("flaot32",)}, r"no dtype is called 'flaot32'; did you mean float32\?"),
    ],
)
def test_an_unknown_name_is_refused_and_a_near_one_named(sweep: str, axes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        laboratory.measure(sweep, **axes)


def test_a_build_without_cuda_knows_the_rungs_that_are_recorded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = [rung for rung in _core.rungs() if rung["kind"] == "host"]
    monkeypatch.setattr(_core, "rungs", lambda: hosts)
    monkeypatch.setattr(_core, "CUDA_BUILD", False)
    monkeypatch.setenv("VECADD_RECORDED", "1")
    measured = laboratory.measure("ladder", rungs=("naive",))
    assert {row.name for row in measured.rows} == {"naive"}
    with pytest.raises(ValueError, match="no rung is called 'float8'"):
        laboratory.measure("ladder", rungs=("float8",))
    measured.predict("naive", n=2**26)
    assert capsys.readouterr().out.endswith("us; nothing is expected of it by a build without CUDA\n")


@pytest.mark.usefixtures("no_gpu")
def test_the_host_is_measured_without_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    measured = laboratory.measure("host", sizes=(1000,), rungs=("numpy", "add"), seconds=0.01)
    assert [row.name for row in measured.rows] == ["numpy", "add"]
    assert not measured.recorded
    assert capsys.readouterr().out.startswith("host: measured on ")
    assert json.loads(json.dumps(measured.meta))["date"]


def test_the_environment_can_ask_for_what_is_recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VECADD_RECORDED", "1")
    assert laboratory.measure("host", sizes=(1000,)).rows == []


def test_what_a_gpu_measures_is_not_recorded(device: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laboratory, "_why_not_here", lambda sweep: None)
    monkeypatch.setattr(probes, "DEVICE_CACHES", 1)
    measured = laboratory.measure("ladder", sizes=(1000,), rungs=("naive", "float4"), seconds=0.01)
    assert {row.name for row in measured.rows} == {"naive", "float4"}
    assert not measured.recorded


MEASURED = Measured("ladder", made_up.run(made_up.ladder()))


def test_the_fastest_row_is_at_the_largest_size_unless_another_is_named() -> None:
    row = MEASURED.fastest("grid_stride")
    assert row is not None
    assert (row.n, row.params["parameters"]) == (2**26, {"blocks_per_sm": 4})
    named = MEASURED.fastest("grid_stride", 2**12, blocks_per_sm=1)
    assert named is not None
    assert (named.n, named.params["parameters"]) == (2**12, {"blocks_per_sm": 1})
    assert MEASURED.fastest("grid_stride", 2**13) is None


def test_a_documents_stage_is_no_row_to_compare_with() -> None:
    measured = Measured("transfer", made_up.run(made_up.transfer()))
    row = measured.fastest("pageable", 2**24)
    assert row is not None
    stage = replace(row, value=(row.seconds or 0.0) / 2, params={**row.params, "stage": "upload"})
    more = Measured("transfer", made_up.run([*measured.rows, stage]))
    assert more.fastest("pageable", 2**24) == row
    assert more.gain("pinned", over="pageable", n=2**24) == measured.gain("pinned", over="pageable", n=2**24)


def test_a_gain_is_at_a_size_that_both_ran_at() -> None:
    gain = MEASURED.gain("tuned", over="naive")
    naive, tuned = MEASURED.fastest("naive"), MEASURED.fastest("tuned")
    assert naive is not None
    assert tuned is not None
    assert gain == pytest.approx((naive.seconds or 0) / (tuned.seconds or 1))
    race, slow = MEASURED.fastest("race"), MEASURED.fastest("naive", 2**12)
    assert race is not None
    assert slow is not None
    assert MEASURED.gain("race", over="naive") == pytest.approx((slow.seconds or 0) / (race.seconds or 1))
    assert MEASURED.gain("float4", over="naive") is None  # every row of it failed


def test_a_gain_is_at_the_parameters_of_the_documents() -> None:
    faster = made_up.figure("ladder", "grid_stride", 2**26, 1e-5, parameters={"blocks_per_sm": 8})
    more = Measured("ladder", made_up.run([*MEASURED.rows, faster]))
    assert more.gain("grid_stride", over="naive") == MEASURED.gain("grid_stride", over="naive")
    assert more.fastest("grid_stride") == faster


def test_a_line_says_time_rate_and_share(capsys: pytest.CaptureFixture[str]) -> None:
    MEASURED.show("naive", "no_such", n=2**20)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("naive, float32, 2^20: 7.7")
    assert first.endswith("% of the limit")
    assert second == "no_such: no row"


def test_a_prediction_is_shown_beside_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    gpu = {**made_up.META["gpu"][0], "memory": 140 << 30}
    probed = {
        "device": {"read_gbps": 4500, "write_gbps": 4500, "gbps": 4500, "l2_read_gbps": 9000, "l2_write_gbps": 9000},
        "latency": {"l1_seconds": 2e-8, "l2_seconds": 2e-7, "dram_seconds": 6e-7},
        "launch": {"kernel_seconds": 2e-6, "block_seconds": 6e-10, "turnaround_seconds": 1e-6},
    }
    measured = Measured("ladder", made_up.run(made_up.ladder(), gpu=[gpu], limits=probed))
    measured.predict("naive", "float4")
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("naive, 2^26: expected ")
    assert "measured 241 us" in first
    assert second == "float4: no row"


def test_a_limit_that_was_not_probed_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    gpu = [{**made_up.META["gpu"][0], "memory": 1 << 37}]
    Measured("ladder", made_up.run(made_up.ladder(), gpu=gpu, limits={})).predict("naive")
    assert capsys.readouterr().out.startswith("naive: this run did not measure ")


def test_a_few_rungs_alone_have_a_picture_of_their_own() -> None:
    few = MEASURED.only("naive", "tuned")
    assert {row.name for row in few.rows} == {"naive", "tuned"}
    assert few.meta == MEASURED.meta
    assert MEASURED.only("no_such").picture() is None


def test_a_picture_is_shown_as_png() -> None:
    pytest.importorskip("matplotlib")
    picture = MEASURED.picture("roofline")
    assert picture is not None
    png, metadata = picture._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert metadata == {"alt": repr(picture)}
    assert repr(picture).startswith("Roofline: every rung at the largest size that it ran at recorded on Made-up GPU, ")
    assert "1e9 additions a second over arithmetic intensity: additions a byte that moves; memory: " in repr(picture)
    assert "\n" not in repr(picture)
    assert MEASURED.picture("timeline") is None


def test_the_code_of_a_rung_is_the_ladders() -> None:
    if not _core.CUDA_BUILD:
        pytest.skip("needs a build with CUDA")
    assert laboratory.code("naive") == vecadd.ladder.source("naive")
    assert laboratory.code("float4", over="naive") == vecadd.ladder.diff("naive", "float4")


def test_without_kernels_or_a_disassembler_a_line_says_why_there_is_no_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*args: Any, **keywords: Any) -> None:
        raise FileNotFoundError("there is no disassembler")

    monkeypatch.setattr(vecadd.ladder, "sass", missing)
    monkeypatch.setattr(_core, "CUDA_BUILD", True)
    assert laboratory.code("naive", what="sass") is None
    assert capsys.readouterr().out == "naive: there is no disassembler\n"
    monkeypatch.setattr(_core, "CUDA_BUILD", False)
    assert laboratory.code("naive") is None
    assert capsys.readouterr().out == "naive: a build without CUDA has no kernels to show\n"


# A reader's guess is set beside the figure and scored; without one, the notebook runs on.


@pytest.mark.parametrize(
    ("yours", "says"),
    [
        (200, "You are not off: right, 3 of 3 points."),
        (210, "You are 1.05 x as high: right, 3 of 3 points."),
        (250, "You are 1.25 x as high: close, 2 of 3 points."),
        (160, "You are 1.25 x as low: close, 2 of 3 points."),
        (1000, "You are 5 x as high: the right order of magnitude, 1 of 3 points."),
        (1, "You are 200 x as low: far off, 0 of 3 points."),
    ],
)
def test_a_guess_gets_points_by_how_many_times_it_is_off(
    yours: float, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    laboratory.guess("time of naive", yours, unit="us").score(200)
    assert capsys.readouterr().out == f"time of naive: you said {yours} us, it is 200 us. {says}\n"


@pytest.mark.parametrize("figure", [0, -1.5])
def test_a_figure_that_is_not_above_zero_is_far_off(figure: float, capsys: pytest.CaptureFixture[str]) -> None:
    laboratory.guess("gain", 2).score(figure)
    assert re.fullmatch(r"gain: you said 2.*, it is .*: far off, 0 of 3 points\.\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("guess", "figure", "line"),
    [
        ((None,), 1.285, "gain: it is 1.28 x; you gave no guess.\n"),
        ((2,), None, "gain: not measured, so that no guess is wrong.\n"),
    ],
)
def test_without_a_guess_or_a_figure_there_are_no_points(
    guess: Any, figure: float | None, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    laboratory.guess("gain", *guess, unit="x").score(figure)
    assert capsys.readouterr().out == line


@pytest.mark.parametrize(
    ("yours", "error", "says"),
    [
        (0, ValueError, "a guess is a number greater than 0, not 0: 'gain'"),
        (-2.0, ValueError, "greater than 0, not -2.0"),
        (math.nan, ValueError, "greater than 0, not nan"),
        (math.inf, ValueError, "greater than 0, not inf"),
        ("2", TypeError, "a guess is a number or None, not str: 'gain'"),
    ],
)
def test_a_guess_that_no_figure_can_be_is_refused(yours: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        laboratory.guess("gain", yours)
