"""vecadd compare: which figures of two runs are matched, what their ratio says, and what it prints and writes."""

import json
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from math import inf
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


def figure(value: float | None, interval: Range | None = None, unit: str = "s", error: str | None = None) -> Figure:
    return Figure("ladder", "x", value=value, unit=unit, interval=interval, error=error)


BARE, GONE = figure(16.0, None, "lanes"), figure(None)


def timed(seconds: float, low: float, high: float, unit: str = "s") -> Figure:
    return figure(seconds, (low, high), unit)


def run_of(path: Path, rows: list[Figure]) -> str:
    write_run(path, made_up.META, rows)
    return str(path)


STEADY = timed(1.0, 0.999, 1.001)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (STEADY, timed(1.2, 1.18, 1.22), "slower"),
        (STEADY, timed(0.8, 0.79, 0.81), "faster"),
        (STEADY, timed(1.01, 1.0, 1.02), "same"),
        (STEADY, timed(1.07, 1.02, 1.12), "undecided"),  # not significantly by 5 %
        (STEADY, timed(0.93, 0.88, 0.98), "undecided"),
        (STEADY, timed(1.0, 0.8, 1.25), "undecided"),
        (replace(STEADY, unit="GB/s"), timed(0.8, 0.79, 0.81, "GB/s"), "slower"),  # of rates less is slower
        (replace(STEADY, unit="GB/s"), timed(1.2, 1.19, 1.21, "GB/s"), "faster"),
        # Without an interval, or with one that is open, only what is equal is decided.
        (BARE, BARE, "same"),
        (BARE, replace(BARE, value=8.0), "undecided"),
        *((STEADY, figure(8.5, ends), "undecided") for ends in ((0.0, 9.0), (-inf, 9.0), (8.0, inf))),
        # What failed, or is gone without an error; what fails in both is no worse.
        *((STEADY, figure(None, error=error), "failed") for error in ("wrong result", None)),
        (GONE, GONE, "undecided"),
        (figure(None, error="wrong result"), STEADY, "undecided"),
        # What has no ratio.
        *(
            (figure(a, (a, a), "°C"), figure(b, (b, b), "°C"), "undecided")
            for a in (-1.0, 0.0, 1.0)
            for b in (-2.0, 0.0)
        ),
    ],
)
def test_the_whole_interval_decides(old: Figure, new: Figure, said: str) -> None:
    assert compare.compare_figures(old, new, 0.05).verdict == said


def test_the_smallest_difference_of_interest_is_the_zone() -> None:
    new = timed(1.04, 1.039, 1.041)
    assert [compare.compare_figures(STEADY, new, least).verdict for least in (0.02, 0.05)] == ["slower", "same"]


def test_the_ratio_of_two_intervals_adds_their_widths_in_quadrature() -> None:
    compared = compare.compare_figures(timed(1.0, 1 / 1.03, 1.03), timed(2.0, 2 / 1.04, 2 * 1.04), 0.05)
    assert compared.ratio == pytest.approx(2.0)
    assert compared.interval == pytest.approx((2 / 1.0505, 2 * 1.0505), rel=1e-3)  # ln 1.03 and ln 1.04, as 3, 4 and 5


def test_an_interval_that_is_lopsided_counts_by_the_end_that_matters() -> None:
    old = timed(100, 50, 100, "GB/s")
    assert compare.compare_figures(old, timed(100, 100, 100, "GB/s"), 0.05).interval == pytest.approx((0.5, 1.0))
    assert compare.compare_figures(timed(1, 0.5, 1), timed(1, 1, 1), 0.05).interval == pytest.approx((1.0, 2.0))


def test_the_interval_of_a_row_is_students_of_six_rounds() -> None:
    """By hand: ln(p90 / p10) / 2.563 is sigma, 1.2533 sigma / sqrt(6) the median's error, 2.571 times it the half."""
    ((_, found),) = compare.side_of([Run({}, [row(seconds=1.0, spread=0.1)])]).figures.items()
    assert found.interval == pytest.approx((0.9021, 1.1085), abs=1e-4)
    ((_, found),) = compare.side_of([Run({}, [replace(row(), spread=(0.0, 2e-3))])]).figures.items()
    assert (found.value, found.interval) == (1e-3, None)  # the clock may not have moved: nothing has no logarithm


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
    found = compare.side_of(compare.read_runs(tmp_path))
    assert [figure.value for figure in found.figures.values()] == [3e-3]
    assert found.machines == ["machine 1", "machine 0"]  # of those days, each once


def test_no_two_recorded_rows_have_one_name() -> None:
    recorded = Path(__file__).parents[2] / "benchmarks" / "results"
    for folder in (recorded / "h200", recorded / "amd-epyc-2t"):
        read = compare.read_runs(folder)
        rows = [row for each in read for row in each.figures]
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


@pytest.mark.parametrize(
    ("values", "severities", "of", "verdict", "ratio"),
    [
        ((100.0, 70.0), ("pass", "pass"), {}, "slower", 10 / 7),
        ((100.0, 40.0), ("pass", "unknown"), {}, "undecided", 2.5),  # other work has disturbed it
        ((100.0, 99.0), ("pass", "critical"), {}, "failed", 100 / 99),
        ((16.0, 8.0), ("pass", "critical"), {"unit": "lanes", "interval": None}, "failed", 2.0),
        ((16.0, 16.0), ("warning", "critical"), {"unit": "lanes", "interval": None}, "failed", 1.0),
        ((0.0, 3.0), ("pass", "critical"), {}, "failed", None),
        ((None, 3.0), ("unknown", "critical"), {}, "failed", None),
        ((8.0, 8.0), ("critical", "critical"), {"interval": None}, "same", 1.0),
        ((None, None), ("critical", "critical"), {}, "undecided", None),
        ((8.0, 16.0), ("critical", "pass"), {"interval": None}, "undecided", 0.5),
    ],
)
def test_two_checks_are_compared_by_their_findings(
    values: Sequence[float | None],
    severities: Sequence[str],
    of: dict[str, Any],
    verdict: str,
    ratio: float | None,
    tmp_path: Path,
) -> None:
    files = [tmp_path / "old.json", tmp_path / "new.json"]
    for file, value, severity in zip(files, values, severities, strict=True):
        found = simulated.finding("link/gpu 0/both ways", value, severity=severity, **of)
        file.write_text(json.dumps(simulated.content("node1", [found])))
    page = ["--html", str(tmp_path / "page.html")] if find_spec("jinja2") else []
    status = cli.main(["compare", *map(str, files), "--json", str(tmp_path / "found"), *page])
    assert status == (verdict in compare.BAD)
    (found,) = json.loads((tmp_path / "found").read_text())["rows"]
    assert (found["name"], found["verdict"], found["new"]) == ("both ways, gpu 0", verdict, values[1])
    assert found["ratio"] == (ratio and pytest.approx(ratio))
    if page and verdict in compare.BAD and found["interval"]:
        assert '<span class="name">both ways, gpu 0</span>\n<span class="bad">' in Path(page[1]).read_text()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"schema": 7}, "schema 7"),
        ({"rows": [{"kind": "host"}]}, 'has no "schema"'),
        ({"schema": 1, "meta": {}, "rows": 5}, "new.json is not a result file: rows is 5, not a list"),
        (
            simulated.content("node1", [], schema_version=9),
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


@pytest.mark.parametrize(("same", "most"), [(39, 40), (5, 7)])
def test_a_page_has_all_figures_and_a_picture_of_the_forty_that_say_most_by_their_colours(
    same: int, most: int, tmp_path: Path
) -> None:
    """What is slower is first. No undecided one is in the picture."""
    pytest.importorskip("jinja2")
    times = {"slower": 2.0, "faster": 0.5, "undecided": 1.1, **{f"same{at}": 1.0 for at in range(same)}}
    old = run_of(
        tmp_path / "old.json", [row("gone"), *(row(name, 1e-3, 0.5 * (name == "undecided")) for name in times)]
    )
    new = run_of(tmp_path / "new.json", [row(name, 1e-3 * x) for name, x in times.items()])
    assert cli.main(["compare", old, new, "--html", str(tmp_path / "page.html")]) == 1
    page = (tmp_path / "page.html").read_text()
    assert f"The {most} figures that say most, slower ones first" in page
    shown = re.findall(r'<span class="name">ladder (\w+) float32 2\^20</span>\n<span class="(\w+)">', page)
    assert shown[:3] == [("slower", "bad"), ("faster", "good"), ("same0", "plain")]
    assert len(shown) == most
    assert "undecided" not in dict(shown)
    lines = re.findall(r'<th scope="row">ladder (\w+) ', page)
    assert (lines[0], sorted(lines)) == ("slower", sorted(times))
    assert "Only in the old run: 1" in page
    assert not [word for word in ("<script", "http://", "https://", " src=", "@import", "url(") if word in page]


def test_a_verdict_or_an_advice_of_a_check_is_no_figure(tmp_path: Path) -> None:
    """It has no unit."""
    finding = simulated.finding("link/gpu 0/to the device", 50.0)
    check = check_of_content(Path("x"), simulated.content("node1", [finding, {**finding, "id": "a/b/c", "unit": ""}]))
    side = compare.side_of([check])
    assert ([figure.unit for figure in side.figures.values()], side.machines) == (["GB/s"], ["node1 (8 x H200)"])


def test_a_line_has_both_figures_their_ratio_and_its_interval_and_is_marked_where_it_is_worse() -> None:
    old, new, lost = (replace(row(), value=value, unit="GB/s") for value in (100.0, 80.0, None))
    rows = [
        compare.Compared(old, new, "slower", 1.25, (1.2, 1.3)),
        compare.Compared(old, lost, "failed"),
        *(compare.Compared(old, new, verdict) for verdict in ("faster", "same", "undecided")),
    ]
    lines = [line for line in compare.make_table("x", rows).lines if line]
    assert [line.cells[1:] for line in lines[:2]] == [
        ("100 GB/s", "80 GB/s", "1.25", "1.2 to 1.3", "slower"),
        ("100 GB/s", "-", "-", "-", "failed"),
    ]
    assert [line.style is Style.FAILED for line in lines] == [True, True, False, False, False]


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
