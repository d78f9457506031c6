"""vecadd report: a page of what a machine does, by whatever result files there are."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import bench_rows
import pictured
import pytest
import simulated_fleet as simulated

from vecadd import cli
from vecadd.bench import results
from vecadd.bench.results import Row
from vecadd.compare.figures import Bench
from vecadd.fleet import checks
from vecadd.report import parts, pictures, sentences
from vecadd.report.runs import Runs

pytestmark = pytest.mark.no_native

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results"
PARTS = ["limits", "ladder", "sizes", "transfers", "latency", "peers", "conditions", "method"]
ELSEWHERE = ("<script", "<link", "@import", " src=", "url(http", 'href="http')


def reported(folder: Path, rows: list[Row], check: dict[str, Any] | None = None) -> str:
    """The page of these rows and this check."""
    given = folder / "given"
    given.mkdir()
    if rows:
        results.write(given / "rows.json", bench_rows.META, rows)
    if check:
        (given / "check.json").write_text(json.dumps(check))
    assert cli.main(["report", str(given), "-o", str(folder / "report.html")]) == 0
    return (folder / "report.html").read_text()


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with the pictures of two of its parts."""
    rows = [row for row in pictured.ladder() + pictured.size() if row.n <= 2**12]
    return reported(tmp_path_factory.mktemp("drawn"), rows)


def part(page: str, anchor: str) -> str:
    return page.partition(f'<section aria-labelledby="{anchor}">')[2].partition("</section>")[0]


def a_check(**changed: Any) -> dict[str, Any]:
    finding = simulated.finding("link/gpu 0/width", "width", "gpu 0", 8.0, "lanes")
    told = {"severity": "critical", "expected": [16, None], "meaning": "Half of the lanes <b>", "next": "Reseat it"}
    return simulated.content("node7", [finding | told | changed]) | {"status": "failed"}


def test_a_page_has_every_part_and_says_what_is_missing(drawn: str) -> None:
    page = drawn
    assert re.findall(r'<h2 id="(\w+)">', page) == PARTS
    assert 'role="img" aria-labelledby="ladder-title ladder-description"' in part(page, "ladder")
    assert "<summary>The figures: ladder" in part(page, "ladder")
    for anchor in ("transfers", "latency", "peers", "conditions"):
        assert "is in the files that the page was made from. To record it: <code>" in part(page, anchor)
    assert [word for word in ELSEWHERE if word in page] == []


def test_no_two_elements_of_a_page_have_one_id_and_every_reference_leads_to_one(drawn: str) -> None:
    found = re.findall(r'\bid="([^"]+)"', drawn)
    assert len(found) == len(set(found))
    referred = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)|aria-labelledby="([^"]+)"', drawn)
    assert {name for names in referred for each in names for name in each.split()} <= set(found)


def test_a_picture_has_the_pages_colours_and_no_black_or_white_of_its_own(drawn: str) -> None:
    picture = part(drawn, "sizes").partition('<svg class="picture"')[2].partition("</svg>")[0]
    assert "var(--paper)" in picture
    assert "var(--blue)" in picture
    assert not re.search(r"#(000000|ffffff|0072b2|dddddd)\b", picture, re.IGNORECASE)


def test_a_check_alone_makes_a_page_with_its_findings_escaped(tmp_path: Path) -> None:
    page = reported(tmp_path, [], a_check())
    found = part(page, "conditions")
    assert "on node7: failed; 1 critical." in found
    assert "Half of the lanes &lt;b&gt;" in found
    assert "at least x16" in found


def test_of_several_checks_the_newest_counts_and_one_without_a_fault_has_nothing_to_report() -> None:
    days = [checks.of(Path("x"), a_check(severity="pass") | {"time": f"2026-11-0{day}T10:30:00"}) for day in (1, 2)]
    newest = Runs([], days).check
    assert newest is days[1]
    assert sentences.conditions({}, newest) == ["The check of 2026-11-02 10:30 on node7: failed; nothing to report."]
    severities = ("unknown", "info", "pass", "critical", "warning", "info")
    found = [each for severity in severities for each in a_check(severity=severity)["findings"]]
    (line,) = sentences.conditions({}, checks.of(Path("x"), a_check() | {"findings": found}))
    assert line.endswith("failed; 1 critical, 1 warning, 2 info, 1 unknown.")


def test_a_page_says_from_when_to_when_its_files_are_and_how_each_was_measured(tmp_path: Path) -> None:
    for at, (date, sweep) in enumerate((("2026-03-02", "size"), ("2026-01-05", "transfer"), ("2026-02-01", "size"))):
        meta = bench_rows.META | {"date": f"{date}T00:00:00", "clocks": {sweep: f"by the clock of {date}"}}
        results.write(tmp_path / f"{at}.json", meta, [])
    assert cli.main(["report", str(tmp_path), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "Recorded 2026-01-05 to 2026-03-02." in page
    assert [f"by the clock of {date}" in page for date in ("2026-03-02", "2026-01-05", "2026-02-01")] == [True] * 3


def test_no_file_that_is_read_becomes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.json"
    results.write(file, bench_rows.META, [])
    before = file.read_bytes()
    assert cli.main(["report", str(file), "-o", str(file)]) == 2
    assert f"--out {file} is one of the files that are read: name another" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_a_run_of_slow_rungs_alone_has_its_pictures(tmp_path: Path) -> None:
    """Beside others they are too low in the roofline to be drawn."""
    rows = [replace(row, gbps=0.001 * (row.limit_gbps or 1)) for row in pictured.ladder() if row.rung == "naive"]
    assert "roofline" in part(reported(tmp_path, rows), "ladder")


def test_a_row_of_small_additions_without_the_time_of_one_is_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pictured.latency()
    del rows[1].params["seconds_per_add"]
    results.write(tmp_path / "x.json", bench_rows.META, rows)
    assert cli.main(["report", str(tmp_path / "x.json"), "-o", str(tmp_path / "report.html")]) == 2
    assert f"{rows[1].name} has no seconds_per_add" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"cpu": {"model": "x"}}, "does not say its cpu.threads"),
        ({"gpu": [{}]}, "does not say its gpu.l2, gpu.multiprocessors, gpu.name"),
        (
            {"contamination": bench_rows.META["contamination"] | {"link_width": [{"generation": 5}]}},
            "does not say its contamination.link_width.generation_max, contamination.link_width.width",
        ),
        ({"limits": {"device": {"gbps": 1.0, "read_gbps": 1.0}}}, "does not say its limits.device.write_gbps"),
        ({"limits": {"loaded": {"seconds": [1, 2], "gbps": [1]}}}, "meta.limits.loaded has lists of 1 and 2 entries"),
        ({"contamination": {"throttled": 3}}, "meta.contamination.throttled is 3, not an object"),
    ],
    ids=[
        "no count of threads",
        "a GPU without a name",
        "half a link",
        "half a limit",
        "uneven lists",
        "conditions of another kind",
    ],
)
def test_a_file_with_other_meta_data_is_status_2(
    changed: dict[str, Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results.write(tmp_path / "x.json", bench_rows.META | changed, [bench_rows.plain_row()])
    assert cli.main(["report", str(tmp_path / "x.json"), "-o", str(tmp_path / "report.html")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def row_with(**params: Any) -> dict[str, Any]:
    return {"params": {"ratio": 1.0, "ratio_interval": [0.9, 1.1], "reference": "vecadd"} | params}


NOT_DRAWN: dict[str, tuple[dict[str, Any], str]] = {
    "one end of an interval": (row_with(ratio_interval=[1.0]), "ratio_interval has 1 entries, not 2"),
    "a ratio without an interval": ({"params": {"ratio": 1.0, "reference": "x"}}, "has no ratio_interval"),
    "a ratio to nothing": ({"params": {"ratio": 1.0, "ratio_interval": [0.9, 1.1]}}, "has no reference"),
    "a ratio of zero": (row_with(ratio=0), "ratio is 0, not above zero"),
    "a text for seconds": (row_with(destroy="x"), 'params.destroy is "x", not a whole number or another number'),
    "a short step": (row_with(timeline=[["kernel", 0, 0, 0.0]]), "timeline[0] has 4 entries, not 5"),
    "a step of another kind": (row_with(timeline=[[0, 0, 0, 0.0, 0.1]]), "timeline[0][0] is 0, not a text"),
    "many digits": ({"spread": [1, 10**29]}, "spread[1] is 100000000000000000000000000000, which is no number in"),
    "no number": ({"gbps": float("nan")}, "gbps is NaN, which is no number in range"),
    "negative seconds": ({"seconds": -1.0}, "seconds is -1.0, not above zero"),
    "many digits of a parameter": (row_with(parameters={"adds": -1, "chain": 10**29}), "parameters.chain is 1000"),
}


@pytest.mark.parametrize(("changed", "says"), NOT_DRAWN.values(), ids=NOT_DRAWN.keys())
def test_a_row_that_cannot_be_drawn_is_status_2(
    changed: dict[str, Any], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.json"
    results.write(file, bench_rows.META, [bench_rows.plain_row(sweep="peer-x", **changed)])
    assert cli.main(["report", str(file), "-o", str(tmp_path / "report.html")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"vecadd report: {file} is not a result file: ")
    assert says in said
    assert said.count("\n") == 1


def test_a_chain_of_another_number_is_a_chain(tmp_path: Path) -> None:
    rows = [row for row in pictured.latency() if row.n <= 2**12]
    for row in rows:
        row.params["parameters"]["chain"] *= 5
    assert "float32 2560 chain" in part(reported(tmp_path, rows), "latency")


@pytest.mark.parametrize("kind", ["two machines", "two hosts", "nothing", "another kind", "of nowhere"])
def test_what_is_no_report_of_one_machine_is_status_2(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {
        "two machines": "of several machines, here, there",
        "two hosts": "of several hosts, node7, node8",
        "nothing": "has no file *.json in it",
        "another kind": "is not a result file",
        "of nowhere": "x.json does not say its commit, contamination, cpu, date, driver, gpu, method, versions",
    }
    for at, name in enumerate(("here", "there") if kind == "two machines" else ()):
        results.write(tmp_path / f"{at}.json", bench_rows.META | {"machine": name}, pictured.size())
    for host in ("node7", "node8") if kind == "two hosts" else ():
        (tmp_path / f"{host}.json").write_text(json.dumps(a_check() | {"host": host}))
    if kind == "another kind":
        (tmp_path / "x.json").write_text("[]")
    if kind == "of nowhere":
        results.write(tmp_path / "x.json", {"machine": "here"}, [])
    assert cli.main(["report", str(tmp_path), "-o", str(tmp_path / "out.html")]) == 2
    assert said[kind] in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()


# Several runs


def ran(date: str, *sweeps: str, **limits: dict[str, float]) -> Bench:
    """A file of that date with a row of each sweep."""
    rows = [pictured.row(sweep, f"of {date}", 1024, 1e-6) for sweep in sweeps]
    return Bench(Path(f"{date}.json"), bench_rows.META | {"date": date, "limits": limits}, rows)


def test_of_a_sweep_that_was_run_twice_the_newest_counts() -> None:
    meta, rows = Runs([ran("Monday", "size", "host"), ran("Friday", "size")], []).of("size", "host")
    assert meta["date"] == "Friday"
    assert [(row.sweep, row.rung) for row in rows] == [("size", "of Friday"), ("host", "of Monday")]


def test_of_a_limit_that_was_probed_twice_the_newest_counts() -> None:
    runs = Runs([ran("Monday", device={"gbps": 1.0, "read_gbps": 2.0}), ran("Friday", device={"gbps": 3.0})], [])
    assert runs.meta["limits"] == {"device": {"gbps": 3.0, "read_gbps": 2.0}}


def test_a_sweep_that_no_part_is_about_is_named_and_a_comparison_is_of_one() -> None:
    rows = [pictured.row(sweep, "add", 1024, 1e-6) for sweep in ("size", "peer-torch", "cold", "peers")]
    assert parts.others(rows) == ["cold", "peers"]


# What the figures say


def test_the_ladder_is_told_by_its_fastest_and_its_slowest_rung() -> None:
    rows = [replace(row, fraction=row.gbps and row.gbps / 4500) for row in pictured.ladder() if row.n == 2**26]
    first, second = sentences.ladder(rows)
    assert first.startswith("At 2^26 elements of float32 tuned is the fastest rung: ")
    assert "The slowest that was timed there is grid_stride (blocks_per_sm 1): 89" in first
    assert second.startswith("2 of 4 rungs reach 90 % of the limit: float2, tuned.")


def test_nine_tenths_of_the_limit_are_near_it() -> None:
    rows = [
        replace(pictured.row("ladder", rung, 2**26, 1e-3), fraction=share)
        for rung, share in (("near", 0.9), ("far", 0.899))
    ]
    assert sentences.ladder(rows)[1] == "1 of 2 rungs reach 90 % of the limit: near."


def test_the_largest_size_of_the_first_dtype_is_told_with_its_share_of_the_limit() -> None:
    rows = [
        replace(pictured.row("ladder", rung, n, 12 * n / gbps / 1e9), dtype=dtype, gbps=gbps, fraction=gbps / 1000)
        for rung, n, dtype, gbps in (
            ("best", 2**20, "float32", 800.0), ("small", 2**10, "float32", 900.0), ("worst", 2**20, "float32", 200.0),
            ("other", 2**26, "float64", 950.0),
        )
    ]  # fmt: skip
    assert sentences.ladder(rows) == [
        "At 2^20 elements of float32 best is the fastest rung: 800 GB/s, 80 % of the limit. The slowest that was timed "
        "there is worst: 200 GB/s, 20 % of the limit."
    ]


def test_a_finding_stands_in_the_table_by_what_it_is_of_and_how_severe_it_is() -> None:
    (line,) = (line for line in parts._findings(checks.of(Path("x"), a_check())).lines if line)
    assert line.cells == ("width, gpu 0", "critical", "x8", "at least x16", "Half of the lanes <b>", "Reseat it")


def test_a_rung_whose_sum_is_wrong_is_neither_the_fastest_nor_the_slowest() -> None:
    right = [pictured.row("ladder", f"rung{at}", 2**26, pictured.at(gbps, 2**26)) for at, gbps in enumerate((900, 800))]
    wrong = [pictured.row("ladder", "race", 2**26, pictured.at(gbps, 2**26), caught="x") for gbps in (9000, 1)]
    assert sentences.ladder([*wrong, *right]) == sentences.ladder(right)


def test_the_limits_are_beside_theory() -> None:
    assert [line.cells for line in sentences.theory(bench_rows.META).lines if line] == [
        ("device memory, reading", "4480", "4800", "93"),
        ("device memory, writing", "4650", "4800", "97"),
        ("device memory, an addition", "4535", "4800", "94"),
        ("link, to the device", "55", "63", "87"),
        ("link, to the host", "54", "63", "86"),
        ("link, both ways at once", "100", "126", "79"),
    ]


def test_sizes_are_told_by_where_the_rate_is_near_its_best_and_beside_numpy() -> None:
    rows = [pictured.row("host", "add", n, seconds) for n, seconds in ((1024, 1e-6), (4096, 1.1e-6), (16384, 4.4e-6))]
    rows += [replace(row, rung="numpy", seconds=k * (row.seconds or 0)) for k, row in zip((2, 5), rows, strict=False)]
    first, second = sentences.sizes(rows)
    assert first.startswith("On the host vecadd.add of float32 is fastest at ")
    assert first.endswith("the smallest size with 90 % of that rate is 2^12.")
    assert second == "NumPy takes 2 times as long at 2^10 elements and 5 times at 2^12, the least and the most."


def test_the_smallest_size_near_the_best_rate_is_told_and_not_the_slowest_of_them() -> None:
    rows = [
        pictured.row("host", "add", n, n / gbps * 12e-9)
        for n, gbps in ((1024, 1), (4096, 98), (16384, 92), (65536, 100))
    ]
    assert sentences.sizes(rows)[0].endswith("the smallest size with 90 % of that rate is 2^12.")


def test_the_fastest_way_is_told_of_each_kind_of_memory() -> None:
    rates = {"slow": ("pageable", 2), "staged": ("pageable", 8), "copies": ("pinned", 40), "hybrid": ("pinned", 60)}
    rows = [
        pictured.row("transfer", rung, 1024, 12 * 1024e-9 / gbps, memory=memory)
        for rung, (memory, gbps) in rates.items()
    ]
    assert sentences.transfers(rows)[1:] == [
        "With pageable memory the fastest is staged, at 8 GB/s.",
        "With pinned memory the fastest is hybrid, at 60 GB/s.",
    ]


def test_peers_are_counted_by_their_intervals() -> None:
    ends = [(1.1, 1.2), (0.9, 1.1), (0.8, 0.9), (1.3, 1.4), (1.0, 1.1), (0.9, 1.0)]
    rows = [
        pictured.row("peer-x", f"peer{at}", 1024, 1e-6, ratio=1.0, ratio_interval=end, reference="vecadd")
        for at, end in enumerate(ends)
    ]
    rows.append(pictured.row("peer-x", "vecadd", 1024, 1e-6))
    rows += [replace(row, sweep="peer-y") for row in rows[:2]]
    assert sentences.peers(rows) == [
        "peer-x: of 6 times beside that of vecadd, 2 are surely longer, 1 surely shorter, and 3 level.",
        "peer-y: of 2 times beside that of vecadd, 1 are surely longer, 0 surely shorter, and 1 level.",
    ]


def test_the_cheapest_of_many_small_additions_stands_beside_a_loop() -> None:
    (line,) = sentences.latency(pictured.latency())
    assert re.fullmatch(r"Of many .* each takes .* by \w+, and .* in a loop of launches\.", line)
    rows = [
        pictured.row("latency", rung, n, 1e-3, seconds_per_add=each)
        for rung, n, each in (
            ("launch_loop", 256, 4e-6), ("graph", 256, 2e-6), ("batched", 256, 1e-7), ("graph", 16, 1e-6),
            ("launch_loop", 16, 3e-6), ("batched", 4096, 1e-8),
        )
    ]  # fmt: skip
    assert sentences.latency(rows) == [
        "Of many independent additions of 16 elements each takes 1 us by graph, and 3 us in a loop of launches."
    ]


def test_additions_that_wait_for_each_other_are_not_told_as_independent_ones() -> None:
    alone, chained = (
        pictured.row("latency", "graph", 256, 1e-3, parameters={"adds": 1000, "chain": chain}, seconds_per_add=each)
        for chain, each in ((0, 1e-6), (1, 9e-6))
    )
    assert sentences.latency([alone, chained]) == sentences.latency([alone])


def test_each_recorded_file_makes_a_page_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "inline", lambda figure, name: "")  # the pictures' letters take ten times as long
    for file in RECORDED.glob("*/*.json"):
        assert cli.main(["report", str(file), "-o", str(tmp_path / "report.html")]) == 0, file


@pytest.mark.slow
def test_all_that_is_recorded_makes_a_page(tmp_path: Path) -> None:
    assert cli.main(["report", str(RECORDED / "h200"), "-o", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    assert page.count("Nothing of this is in the files") == 0
    assert page.count('<svg class="picture"') >= 9
