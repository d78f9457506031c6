"""vecadd compare: which figures of two runs are matched, what their ratio says, and what it prints and writes."""

import json
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up
import pytest
import simulated_fleet as simulated

from vecadd import cli, compare
from vecadd.figures import Figure, Range, Run, check_of_content, write_run
from vecadd.tables import Style

pytestmark = pytest.mark.no_native


def row(rung: str = "naive", seconds: float | None = 1e-3, spread: float = 0.001, **params: Any) -> Any:
    """A row whose p10 and p90 are so far from its median, as a share."""
    made = made_up.figure("ladder", rung, 1 << 20, seconds, 4500.0, **params)
    return replace(made, spread=seconds and (seconds * (1 - spread), seconds * (1 + spread)))


def verdict_of(old: Figure, new: Figure, least: float = 0.05) -> str:
    return compare.compare_figures(old, new, least).verdict


def figure(value: float | None, interval: Range | None = None, unit: str = "s", error: str | None = None) -> Figure:
    return Figure("ladder", "x", value=value, unit=unit, interval=interval, error=error)


def timed(seconds: float, low: float, high: float, unit: str = "s") -> Figure:
    return figure(seconds, (low, high), unit)


def checks(folder: Path, name: str, values: Sequence[float | None], severities: Sequence[str], **of: Any) -> list[str]:
    """The files of two checks of a machine with that finding."""
    files = [folder / "old.json", folder / "new.json"]
    for file, value, severity in zip(files, values, severities, strict=True):
        found = simulated.finding(f"link/gpu 0/{name}", name, "gpu 0", value, "GB/s") | {"severity": severity} | of
        file.write_text(json.dumps(simulated.content("node1", [found])))
    return list(map(str, files))


def run_of(path: Path, rows: list[Figure]) -> str:
    write_run(path, made_up.META, rows)
    return str(path)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (timed(1.2, 1.18, 1.22), "slower"),
        (timed(0.8, 0.79, 0.81), "faster"),
        (timed(1.01, 1.0, 1.02), "same"),
        (timed(1.07, 1.02, 1.12), "undecided"),  # not significantly by 5 %
        (timed(0.93, 0.88, 0.98), "undecided"),
        (timed(1.0, 0.8, 1.25), "undecided"),
        (timed(0.8, 0.79, 0.81, "GB/s"), "slower"),  # of rates less is slower
        (timed(1.2, 1.19, 1.21, "GB/s"), "faster"),
    ],
    ids=str,
)
def test_the_whole_interval_decides(new: Figure, said: str) -> None:
    assert verdict_of(timed(1.0, 0.999, 1.001, new.unit), new) == said


def test_the_smallest_difference_of_interest_is_the_zone() -> None:
    old, new = timed(1.0, 0.999, 1.001), timed(1.04, 1.039, 1.041)
    assert [verdict_of(old, new, least) for least in (0.02, 0.05)] == ["slower", "same"]


def test_the_ratio_of_two_intervals_adds_their_widths_in_quadrature() -> None:
    compared = compare.compare_figures(timed(1.0, 1 / 1.03, 1.03), timed(2.0, 2 / 1.04, 2 * 1.04), 0.05)
    assert compared.ratio == pytest.approx(2.0)
    assert compared.interval == pytest.approx((2 / 1.0505, 2 * 1.0505), rel=1e-3)  # ln 1.03 and ln 1.04, as 3, 4 and 5


def test_an_interval_that_is_lopsided_counts_by_the_end_that_matters() -> None:
    old = timed(100, 50, 100, "GB/s")
    assert compare.compare_figures(old, timed(100, 100, 100, "GB/s"), 0.05).interval == pytest.approx((0.5, 1.0))
    assert compare.compare_figures(timed(1, 0.5, 1), timed(1, 1, 1), 0.05).interval == pytest.approx((1.0, 2.0))


def test_without_an_interval_only_what_is_equal_is_decided() -> None:
    bare = figure(16.0, None, "lanes")
    assert verdict_of(bare, bare) == "same"
    assert verdict_of(bare, replace(bare, value=8.0)) == "undecided"


@pytest.mark.parametrize("interval", [(0.0, 9.0), (float("-inf"), 9.0), (8.0, float("inf"))], ids=str)
def test_an_open_interval_decides_nothing(interval: tuple[float, float]) -> None:
    found = compare.compare_figures(timed(1.0, 1.0, 1.0), figure(8.5, interval), 0.05)
    assert (found.interval, found.verdict) == (None, "undecided")


def test_the_interval_of_a_row_is_students_of_six_rounds() -> None:
    """By hand: ln(p90 / p10) / 2.563 is sigma, 1.2533 sigma / sqrt(6) the median's error, 2.571 times it the half."""
    ((_, found),) = compare.side_of([Run({}, [row(seconds=1.0, spread=0.1)])]).figures.items()
    assert found.interval == pytest.approx((0.9021, 1.1085), abs=1e-4)


@pytest.mark.parametrize("error", ["wrong result", None])
def test_what_failed_that_did_not_fail_is_worse_and_what_fails_in_both_is_not(error: str | None) -> None:
    """Or is gone without an error."""
    good, bad = figure(1.0, (1.0, 1.0)), figure(None, None, error=error)
    assert [verdict_of(good, bad), verdict_of(bad, bad), verdict_of(bad, good)] == ["failed", "undecided", "undecided"]


def test_a_count_of_none_has_no_ratio() -> None:
    none, some = timed(0.0, 0.0, 0.0, "errors"), timed(2.0, 2.0, 2.0, "errors")
    assert [verdict_of(none, some), verdict_of(some, none), verdict_of(none, none)] == ["undecided"] * 3


def test_a_row_with_a_time_of_nothing_among_its_rounds_has_no_interval() -> None:
    """The clock may not have moved: there is no logarithm of it."""
    ((_, found),) = compare.side_of([Run({}, [replace(row(), spread=(0.0, 2e-3))])]).figures.items()
    assert (found.value, found.interval) == (1e-3, None)


@pytest.mark.parametrize("values", [(-1.0, 1.0), (1.0, -1.0), (-2.0, -1.0), (0.0, 1.0), (1.0, 0.0)])
def test_figures_that_have_no_ratio_are_undecided(values: tuple[float, float]) -> None:
    found = compare.compare_figures(*(figure(value, None, "°C") for value in values), 0.05)
    assert (found.ratio, found.verdict) == (None, "undecided")


def test_rows_are_matched_by_what_they_measure() -> None:
    old = [row(parameters={"stride": 2}, registers=16), row(parameters={"stride": 4}), row("gone")]
    new = [row(parameters={"stride": 4}), row(parameters={"stride": 2}, registers=20), row("new")]
    compared = compare.compare_sides(*(compare.side_of([Run({}, rows)]) for rows in (old, new)), 0.05)
    assert [each.name for each in compared.rows] == [each.title for each in new[:2]]
    assert (compared.only_old, compared.only_new) == ([old[2].title], [new[2].title])


def test_a_block_counts_where_it_is_swept_and_not_where_the_gpu_chose_it() -> None:
    runs = [[row("tuned", block=block), replace(row(block=block), sweep="blocksize")] for block in (768, 1024)]
    compared = compare.compare_sides(*(compare.side_of([Run({}, rows)]) for rows in runs), 0.05)
    assert [each.name for each in compared.rows] == [runs[1][0].title]
    assert len(compared.only_old) == len(compared.only_new) == 1


def test_of_a_figure_in_several_files_of_a_run_the_newest_counts(tmp_path: Path) -> None:
    for name, day, seconds in (("a", 3, 3e-3), ("b", 1, 1e-3), ("c", 2, 2e-3)):
        meta = made_up.META | {"date": f"2026-01-0{day}T00:00:00+00:00", "machine": f"machine {day % 2}"}
        write_run(tmp_path / f"{name}.json", meta, [row(seconds=seconds)])
    found = compare.side_of(compare.read_runs(compare.read_objects_of(tmp_path)))
    assert [figure.value for figure in found.figures.values()] == [3e-3]
    assert found.machines == ["machine 1", "machine 0"]  # of those days, each once


def test_no_two_recorded_rows_have_one_name() -> None:
    recorded = Path(__file__).parents[2] / "benchmarks" / "results"
    for folder in (recorded / "h200", recorded / "amd-epyc-2t"):
        read = compare.read_runs(compare.read_objects_of(folder))
        rows = [row for each in read if isinstance(each, Run) for row in each.figures]
        assert len(compare.side_of(read).figures) == len(rows)


@pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (1.2, 1), (0.8, 0)])
def test_the_status_says_whether_something_is_significantly_slower(
    factor: float, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = run_of(tmp_path / "old.json", [row(), row("float4")])
    new = run_of(tmp_path / "new.json", [row(seconds=1e-3 * factor), row("float4")])
    assert cli.main(["compare", old, new, "--json", str(tmp_path / "found")]) == status
    assert capsys.readouterr().out.endswith(f"{2 - (factor != 1)} same, 0 undecided\n")
    found = json.loads((tmp_path / "found").read_text())
    assert (found["schema"], found["status"]) == ("vecadd-compare", "slower" if status else "not slower")
    assert found["rows"][0]["ratio"] == pytest.approx(factor)


def test_the_machines_are_told_where_they_differ_and_the_file_has_all_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = run_of(tmp_path / "old.json", [row(), row("float4"), row("gone"), row("away")])
    new = tmp_path / "new.json"
    write_run(new, made_up.META | {"machine": "another"}, [row(), row("float4", 2e-3), row("come")])
    assert cli.main(["compare", old, str(new), "--least", "7.5", "--json", str(tmp_path / "found")]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "the old run is of made-up, the new one of another" in said
    assert said[-1] == (
        "2 figures in both runs, at 7.5 %: 1 slower, 0 failed, 0 faster, 1 same, 0 undecided; 2 only in the old run; "
        "1 only in the new run"
    )
    found = json.loads((tmp_path / "found").read_text())
    assert (found["machines"], found["least_percent"]) == ({"old": ["made-up"], "new": ["another"]}, 7.5)
    assert found["counts"] == {"slower": 1, "failed": 0, "faster": 0, "same": 1, "undecided": 0}
    gone, come = [row("gone").title, row("away").title], [row("come").title]
    assert (found["only_old"], found["only_new"]) == (gone, come)


def test_only_what_is_decided_and_differs_is_shown_unless_all_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is worse is first, and of one verdict what differs most."""
    times = {"same": 1.0, "undecided": 1.0, "much_faster": 0.2, "faster": 0.5, "slower": 2.0, "much_slower": 5.0}
    spread = {"undecided": 0.5}
    old = run_of(tmp_path / "old.json", [row(name, 1e-3) for name in times])
    new = run_of(tmp_path / "new.json", [row(name, 1e-3 * x, spread.get(name, 0.001)) for name, x in times.items()])
    for option, names in (
        ([], ["much_slower", "slower", "much_faster", "faster"]),
        (["--all"], ["much_slower", "slower", "much_faster", "faster", "same", "undecided"]),
    ):
        assert cli.main(["compare", old, new, *option]) == 1
        shown = re.findall(r"^ *ladder (\w+) float32", capsys.readouterr().out, re.MULTILINE)
        assert shown == names


def test_two_checks_are_compared_by_their_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", *checks(tmp_path, "to the device", (100.0, 70.0), ("pass", "pass"))]) == 1
    assert "to the device, gpu 0" in capsys.readouterr().out


def test_a_figure_that_other_work_disturbed_is_undecided(tmp_path: Path) -> None:
    files = checks(tmp_path, "host add 2^26", (100.0, 40.0), ("pass", "unknown"))
    assert cli.main(["compare", *files, "--json", str(tmp_path / "x")]) == 0
    (row,) = json.loads((tmp_path / "x").read_text())["rows"]
    assert (row["verdict"], row["ratio"]) == ("undecided", 2.5)


@pytest.mark.parametrize(
    ("severities", "values", "status"),
    [
        (("pass", "critical"), (16.0, 8.0), 1),  # no interval: the ratio alone decides nothing
        (("warning", "critical"), (16.0, 16.0), 1),
        (("pass", "critical"), (0.0, 3.0), 1),
        (("unknown", "critical"), (None, 3.0), 1),
        (("critical", "critical"), (8.0, 8.0), 0),
        (("critical", "critical"), (None, None), 0),
        (("critical", "pass"), (8.0, 16.0), 0),
        (("pass", "warning"), (16.0, 15.0), 0),
    ],
)
def test_what_fails_in_the_later_check_alone_has_failed(
    severities: tuple[str, str], values: tuple[float | None, float | None], status: int, tmp_path: Path
) -> None:
    files = checks(tmp_path, "width", values, severities, unit="lanes", interval=None)
    assert cli.main(["compare", *files, "--json", str(tmp_path / "found")]) == status
    found = json.loads((tmp_path / "found").read_text())
    assert (found["counts"]["failed"], found["rows"][0]["new"]) == (status, values[1])


def test_a_figure_that_fails_keeps_its_ratio_and_is_red_in_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    files, page = checks(tmp_path, "to the host", (100.0, 99.0), ("pass", "critical")), tmp_path / "page.html"
    assert cli.main(["compare", *files, "--html", str(page)]) == 1
    assert re.findall(r'<span class="name">(.*)</span>\n<span class="(\w+)">', page.read_text()) == [
        ("to the host, gpu 0", "bad")
    ]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"schema": 7}, "schema 7"),
        ({"rows": [{"kind": "host"}]}, 'has no "schema"'),
        ({"schema": 1, "meta": {}, "rows": 5}, "new.json is not a result file: rows is 5, not a list"),
        (
            simulated.content("node1", []) | {"schema_version": 9},
            "of version 9; this vecadd reads version 2",
        ),
        (simulated.content("node1", []), "have no figure in common"),
    ],
)
def test_what_cannot_be_compared_is_status_2(
    other: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = run_of(tmp_path / "old.json", [row()])
    (tmp_path / "new.json").write_text(json.dumps(other))
    assert cli.main(["compare", old, str(tmp_path / "new.json")]) == 2
    assert said in capsys.readouterr().err


def test_the_page_shows_what_is_slower_first_with_its_interval(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    old = run_of(tmp_path / "old.json", [row(), row("float4"), row("gone")])
    new = run_of(tmp_path / "new.json", [row(), row("float4", 2e-3)])
    assert cli.main(["compare", old, new, "--html", str(tmp_path / "page.html")]) == 1
    page = (tmp_path / "page.html").read_text()
    assert page.index("ladder float4 float32 2^20") < page.index("ladder naive float32 2^20")
    assert "Only in the old run: 1" in page
    assert not [word for word in ("<script", "http://", "https://", " src=", "@import", "url(") if word in page]


@pytest.mark.parametrize(("same", "most"), [(39, 40), (5, 7)])
def test_the_picture_of_a_page_has_the_forty_figures_that_say_most_by_their_colours(
    same: int, most: int, tmp_path: Path
) -> None:
    """No undecided one is among them."""
    pytest.importorskip("jinja2")
    times = {"slower": 2.0, "faster": 0.5, "undecided": 1.1, **{f"same{at}": 1.0 for at in range(same)}}
    old = run_of(tmp_path / "old.json", [row(name, 1e-3, 0.5 * (name == "undecided")) for name in times])
    new = run_of(tmp_path / "new.json", [row(name, 1e-3 * x) for name, x in times.items()])
    assert cli.main(["compare", old, new, "--html", str(tmp_path / "page.html")]) == 1
    page = (tmp_path / "page.html").read_text()
    assert f"The {most} figures that say most, slower ones first" in page
    shown = re.findall(r'<span class="name">ladder (\w+) float32 2\^20</span>\n<span class="(\w+)">', page)
    assert shown[:3] == [("slower", "bad"), ("faster", "good"), ("same0", "plain")]
    assert len(shown) == most
    assert "undecided" not in dict(shown)


def test_a_verdict_or_an_advice_of_a_check_is_no_figure(tmp_path: Path) -> None:
    """It has no unit."""
    finding = simulated.finding("link/gpu 0/to the device", "to the device", "gpu 0", 50.0, "GB/s")
    check = check_of_content(Path("x"), simulated.content("node1", [finding, {**finding, "id": "a/b/c", "unit": ""}]))
    side = compare.side_of([check])
    assert ([figure.unit for figure in side.figures.values()], side.machines) == (["GB/s"], ["node1 (8 x H200)"])


def test_a_line_has_both_figures_their_ratio_and_its_interval() -> None:
    both = compare.Compared("a", 100.0, 80.0, "GB/s", 1.25, (1.2, 1.3), "slower")
    lost = compare.Compared("b", 100.0, None, "GB/s", None, None, "failed")
    assert [line.cells for line in compare.make_table("x", [both, lost]).lines if line] == [
        ("a", "100 GB/s", "80 GB/s", "1.25", "1.2 to 1.3", "slower"),
        ("b", "100 GB/s", "-", "-", "-", "failed"),
    ]


def test_what_is_slower_or_fails_is_marked_in_the_table() -> None:
    compared = [compare.Compared(name, 1.0, 1.0, "s", 1.0, (1.0, 1.0), name) for name in compare.VERDICTS]
    assert [line.style is Style.FAILED for line in compare.make_table("x", compared).lines if line] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_a_result_that_has_become_wrong_has_failed_though_it_was_timed(tmp_path: Path) -> None:
    wrong = replace(row(), error="wrong result")
    files = [run_of(tmp_path / "old.json", [row()]), run_of(tmp_path / "new.json", [wrong])]
    assert cli.main(["compare", *files]) == 1
    assert cli.main(["compare", *reversed(files)]) == 0


def test_each_recorded_file_is_compared_with_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)  # which pages alone need
    for file in (Path(__file__).parents[2] / "benchmarks" / "results").glob("*/*.json"):
        assert cli.main(["compare", str(file), str(file)]) == 0, file


def test_what_a_comparison_wrote_into_a_folder_is_passed_over_and_replaced(tmp_path: Path, capsys: Any) -> None:
    run_of(tmp_path / "run.json", [row()])
    for _ in range(2):
        assert cli.main(["compare", str(tmp_path), str(tmp_path), "--json", str(tmp_path / "found.json")]) == 0
    capsys.readouterr()
    assert cli.main(["compare", str(tmp_path / "found.json"), str(tmp_path)]) == 2
    assert "found.json is what vecadd compare found in result files, and not one itself" in capsys.readouterr().err


def test_runs_may_come_by_pipes(tmp_path: Path) -> None:
    """`vecadd compare <(...) <(...)`: a pipe can be read once."""
    content = Path(run_of(tmp_path / "old.json", [row()])).read_text()
    pipes = [tmp_path / name for name in ("old", "new")]
    for pipe in pipes:
        os.mkfifo(pipe)
    with ThreadPoolExecutor() as writers:
        for pipe in pipes:
            writers.submit(pipe.write_text, content)
        assert cli.main(["compare", *map(str, pipes)]) == 0
