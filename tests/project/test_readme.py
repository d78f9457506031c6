"""README.md: its tables are those of the recorded results.

`PYTHONPATH=.:tests python tests/project/test_readme.py` writes the golden files anew; read what
has changed before you keep it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up import FIGURES, RUNGS, plain_figure
from made_up import META as MADE_UP

from benchmarks.tables import documents
from vecadd.bench.tables import parts
from vecadd.figures import write_run

pytestmark = pytest.mark.no_native

META: dict[str, Any] = {
    "gpu": [{"name": "NVIDIA H200"}],
    "cpu": {"model": "Xeon", "threads": 16},
    "driver": "580.95.05",
    "date": "2026-01-02T03:04:05+00:00",
    "commit": "abc",
    "method": "median of rounds",
    "clocks": dict.fromkeys(["size", "peer-device", "peer-overhead"], "CUDA events"),
}

EMPTY = "before\n<!-- table: size -->\nstale\n<!-- /table -->\nafter\n"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A folder of results: a size sweep on one machine."""
    rows = [
        plain_figure(sweep="size", name=rung, n=1 << 28, gbps=gbps, fraction=gbps / 4600)
        for rung, gbps in (("naive", 3450.0), ("tuned", 4462.0))
    ]
    (tmp_path / "h200").mkdir()
    write_run(tmp_path / "h200" / "size.json", META, rows)
    return tmp_path


@pytest.mark.parametrize("document", documents.DOCUMENTS, ids=lambda path: str(path.relative_to(documents.ROOT)))
def test_the_tables_are_those_of_the_recorded_results(document: Path) -> None:
    text, method_at = document.read_text(), documents.DOCUMENTS[document]
    assert documents.fill(text, method_at=method_at) == text, "run python -m benchmarks.tables"


def test_a_table_shows_rates_and_shares_of_the_limit(recorded: Path) -> None:
    assert documents.fill(EMPTY, recorded).splitlines() == [
        "before",
        "<!-- table: size -->",
        "",
        "| n, GB/s (% of limit) | naive | tuned |",
        "| --- | ---: | ---: |",
        "| 2^28 | 3450 (75 %) | 4462 (97 %) |",
        "",
        "*NVIDIA H200, driver 580.95.05; 2026-01-02, commit abc. CUDA events.*",
        "",
        "*Method: median of rounds.*",
        "",
        "<!-- /table -->",
        "after",
    ]


def test_filling_again_changes_nothing(recorded: Path) -> None:
    once = documents.fill(EMPTY, recorded)
    assert documents.fill(once, recorded) == once


SECTIONS = """# One
<!-- table: size -->
<!-- /table -->
between
<!-- table: peer-device -->
<!-- /table -->
```
# no heading, a comment
```
after
## Two
<!-- table: size -->
<!-- /table -->
### None
"""


@pytest.fixture
def sectioned(recorded: Path) -> Path:
    """The same folder with a comparison of another day beside the size sweep."""
    ours = plain_figure(sweep="peer-device", name="vecadd", n=1 << 28)
    later = {**META, "date": "2026-02-01T00:00:00+00:00", "commit": "later"}
    write_run(recorded / "h200" / "peer-device.json", later, [ours])
    return recorded


def test_each_table_says_where_and_when_it_was_recorded_and_a_section_once_how(sectioned: Path) -> None:
    first, second = documents.fill(SECTIONS, sectioned).split("## Two")
    where = "*NVIDIA H200, driver 580.95.05; "
    assert [line for line in first.splitlines() if line.startswith(("*NVIDIA", "*Method"))] == [
        f"{where}2026-01-02, commit abc. CUDA events.*",
        f"{where}2026-02-01, commit later.*",
        "*Method: median of rounds.*",
    ]
    assert first.index("*Method") < first.index("```")
    assert f"{where}2026-01-02, commit abc. CUDA events.*\n\n*Method: median of rounds.*" in second


def test_a_table_of_several_runs_names_the_commit_and_the_versions_of_each(recorded: Path) -> None:
    for sweep, commit, versions in (
        ("ladder", "abc", {"numpy": "2.5.2", "cuda": "13.0", "kernel": "6.18"}),
        ("blocksize", "def", {"numpy": "2.5.2", "cuda": "13.0"}),
    ):
        meta = {**META, "commit": commit, "versions": versions}
        write_run(recorded / "h200" / f"{sweep}.json", meta, [plain_figure(sweep=sweep, name="naive", n=1 << 28)])
    text = documents.fill(EMPTY.replace("size", "steps"), recorded)
    commits = "2026-01-02, commit abc; 2026-01-02, commit def"
    assert f"*NVIDIA H200, driver 580.95.05; {commits}; numpy 2.5.2, cuda 13.0.*" in text


def test_a_machine_without_a_gpu_has_no_version_of_cuda(recorded: Path) -> None:
    (recorded / "xeon").mkdir()
    on_host = {**META, "gpu": [], "versions": {"numpy": "2.5.2", "cuda": "13.0"}}
    write_run(recorded / "xeon" / "size.json", on_host, [plain_figure(sweep="size", name="tuned", n=1 << 28)])
    lines = documents.fill(EMPTY.replace("size", "size xeon"), recorded).splitlines()
    assert "*Xeon, 16 threads; 2026-01-02, commit abc; numpy 2.5.2. CUDA events.*" in lines


def test_the_newest_record_of_a_machine_counts(recorded: Path) -> None:
    newer = plain_figure(sweep="size", name="tuned", n=1 << 28, gbps=4500.0, fraction=None)
    write_run(recorded / "h200" / "later.json", {**META, "date": "2026-02-01T00:00:00+00:00"}, [newer])
    assert "| 2^28 | 4500 |" in documents.fill(EMPTY, recorded)


def test_several_machines_must_be_told_apart(recorded: Path) -> None:
    (recorded / "l4").mkdir()
    (recorded / "l4" / "size.json").write_text((recorded / "h200" / "size.json").read_text())
    with pytest.raises(ValueError, match="recorded on h200, l4; say which"):
        documents.fill(EMPTY, recorded)
    assert "4462" in documents.fill(EMPTY.replace("size", "size l4"), recorded)


@pytest.mark.parametrize(
    ("marker", "text"),
    [("sideways", "no table 'sideways'"), ("size l4", "no result of this sweep is recorded on l4")],
)
def test_a_marker_of_no_table_and_of_no_machine_is_an_error(marker: str, text: str, recorded: Path) -> None:
    with pytest.raises(ValueError, match=text):
        documents.fill(EMPTY.replace("size", marker), recorded)


def test_a_table_that_no_machine_has_recorded_says_so(recorded: Path) -> None:
    text = documents.fill(EMPTY.replace("size", "host"), recorded)
    assert "<!-- table: host -->\n\n*Not recorded yet.*\n\n<!-- /table -->" in text
    both = documents.fill(f"{EMPTY}\n{EMPTY.replace('size', 'host')}", recorded)
    assert both.index("4462") < both.index("*Not recorded yet.*") < both.index("*Method")


def test_peers_are_shown_as_ratios_by_size(recorded: Path) -> None:
    ours = plain_figure(sweep="peer-device", name="vecadd", n=1 << 28, value=720e-6)
    params = {"reference": "vecadd", "ratio": 1.023, "ratio_interval": [1.02, 1.03]}
    torch = replace(ours, name="torch", value=737e-6, params=params)
    write_run(recorded / "h200" / "peer-device.json", META, [ours, torch])
    text = documents.fill(EMPTY.replace("size", "peer-device"), recorded)
    assert "|  | vecadd: time | torch / ours |\n| --- | ---: | ---: |\n| 2^28 | 720 us | 1.02 |" in text


def test_peers_of_several_dtypes_are_shown_by_the_nearest(recorded: Path) -> None:
    rows = []
    for dtype, n, ratio, interval in (
        ("float32", 1 << 26, 1.023, [1.02, 1.03]),
        ("int8", 1 << 26, 0.98, [0.97, 0.99]),
        ("float32", 1 << 10, 1.004, [0.99, 1.02]),
    ):
        ours = plain_figure(sweep="peer-device", name="vecadd", dtype=dtype, n=n, value=100e-6, params={})
        params = {"reference": "vecadd", "ratio": ratio, "ratio_interval": interval}
        rows += [ours, replace(ours, name="torch", params=params)]
        rows += [replace(ours, name="cupy", params={**params, "ratio": 2.0, "ratio_interval": [1.9, 2.1]})]
        rows += [replace(ours, name="vecadd (torch tensors)", params={**params, "ratio": 0.5})]
    write_run(recorded / "h200" / "peer-device.json", META, rows)
    lines = documents.fill(EMPTY.replace("size", "peer-device"), recorded).splitlines()
    assert "| 2^26 | 100 us, torch 1.02 | 100 us, **torch 0.98** |" in lines
    assert "| 2^10 | 100 us, torch 1 | - |" in lines
    assert (
        "Of 3 cells the nearest peer is behind in 1, level in 1 and ahead in 1; our time over its, geometric mean: "
        "0.998, from 2^26 up 0.999, at most 1.020." in lines
    )


def test_additions_one_behind_the_other_have_a_table_of_their_own(recorded: Path) -> None:
    rows = []
    for sweep, dtype, seconds, ratio in (
        ("peer-device", "float32", 3.5e-6, 0.995),
        ("peer-device", "int8", 3.4e-6, 0.99),
        ("peer-queued", "float32", 1.1e-6, 1.7),
        ("peer-queued", "int8", 1.2e-6, 1.6),
    ):
        ours = plain_figure(sweep=sweep, name="vecadd", dtype=dtype, n=1 << 10, value=seconds, params={})
        params = {"reference": "vecadd", "ratio": ratio, "ratio_interval": [ratio - 0.001, ratio + 0.001]}
        rows += [ours, replace(ours, name="triton", params=params)]
    write_run(recorded / "h200" / "peer-device.json", META, rows)
    alone = documents.fill(EMPTY.replace("size", "peer-device"), recorded)
    queued = documents.fill(EMPTY.replace("size", "peer-queued"), recorded)
    assert "| 2^10 | 3.5 us, **triton 0.995** | 3.4 us, **triton 0.99** |" in alone
    assert "|  | vecadd: time | triton / ours |" in queued
    assert "| float32 2^10 | 1.1 us | 1.7 |\n| int8 2^10 | 1.2 us | 1.6 |" in queued


def test_a_comparison_says_what_with_and_how_surely(recorded: Path) -> None:
    ours = plain_figure(sweep="peer-many", name="a loop", n=1024, value=2.5e-6, params={})
    params = {"reference": "a loop", "ratio": 2.28, "ratio_interval": [2.27, 2.31]}
    torch = replace(ours, name="torch", value=5.7e-6, params=params)
    write_run(recorded / "h200" / "peer-many.json", META, [ours, torch])
    text = documents.fill(EMPTY.replace("size", "peer-many"), recorded)
    assert "|  | time | time / a loop (95 % interval) |" in text
    assert "| a loop | 2.5 us | 1 |\n| torch | 5.7 us | 2.28 (2.27 to 2.31) |" in text


def test_each_line_names_what_it_is_compared_with_where_there_are_several(recorded: Path) -> None:
    rows = []
    for name in ("a loop", "a list"):
        ours = plain_figure(sweep="peer-many", name=name, n=1024, value=2.5e-6, params={})
        params = {"reference": name, "ratio": 2.28, "ratio_interval": [2.27, 2.31]}
        rows += [ours, replace(ours, name=f"torch, {name}", params=params)]
    write_run(recorded / "h200" / "peer-many.json", META, rows)
    lines = documents.fill(EMPTY.replace("size", "peer-many"), recorded).splitlines()
    assert "|  | time | time, as a multiple of another row's (95 % interval) |" in lines
    assert "| torch, a list | 2.5 us | 2.28 (2.27 to 2.31) x a list |" in lines


def test_forms_on_the_host_are_columns_and_sizes_lines(recorded: Path) -> None:
    rows = []
    for dtype, n, ratio in (("float32", 16, 2.5), ("float32", 1024, 0.9), ("int8", 16, 2.0)):
        for form in ("out=", "a + b"):
            ours = plain_figure(
                sweep="peer-host", name=f"vecadd {form}", dtype=dtype, n=n, value=1e-7, params={}, fraction=None
            )
            params = {"reference": ours.name, "ratio": ratio, "ratio_interval": [0.99 * ratio, 1.01 * ratio]}
            rows += [ours, replace(ours, name=f"numpy {form}", params=params)]
    write_run(recorded / "h200" / "peer-host.json", META, rows)
    lines = documents.fill(EMPTY.replace("size", "peer-host"), recorded).splitlines()
    assert "|  | out=: time | numpy out= / ours | a + b: time | numpy a + b / ours |" in lines
    assert "| 16 | 100 ns | 2.5 | 100 ns | 2.5 |" in lines
    assert "| 2^10 | 100 ns | **0.9** | 100 ns | **0.9** |" in lines
    others = documents.fill(EMPTY.replace("size", "peer-host-dtypes"), recorded).splitlines()
    assert "| int8 16 | 100 ns | 2 | 100 ns | 2 |" in others


def test_of_several_others_the_nearest_stands_beside_numpy(recorded: Path) -> None:
    rows = []
    for n, ratios in ((16, {"numpy": 2.5, "torch": 3.0, "jax": 4.0}), (1024, {"numpy": 2.0, "torch": 1.5, "jax": 0.9})):
        ours = plain_figure(sweep="peer-host", name="vecadd a + b", n=n, value=1e-7, params={})
        rows.append(ours)
        for peer, ratio in ratios.items():
            params = {"reference": ours.name, "ratio": ratio, "ratio_interval": [0.99 * ratio, 1.01 * ratio]}
            rows.append(replace(ours, name=f"{peer} a + b", params=params))
    write_run(recorded / "h200" / "peer-host.json", META, rows)
    lines = documents.fill(EMPTY.replace("size", "peer-host"), recorded).splitlines()
    assert "|  | a + b: time | numpy a + b / ours | nearest other a + b / ours |" in lines
    assert "| 16 | 100 ns | 2.5 | torch 3 |" in lines
    assert "| 2^10 | 100 ns | 2 | jax **0.9** |" in lines


def test_a_size_that_was_held_against_the_machines_limit_shows_its_share(recorded: Path) -> None:
    rows = []
    for n, share in ((1024, {}), (1 << 24, {"limit_share": 0.957})):
        ours = plain_figure(sweep="peer-host", name="vecadd out=", n=n, value=1e-7, params=share)
        params = {"reference": "vecadd out=", "ratio": 2.5, "ratio_interval": [2.4, 2.6]}
        rows += [ours, replace(ours, name="numpy out=", params=params)]
    write_run(recorded / "h200" / "peer-host.json", META, rows)
    lines = documents.fill(EMPTY.replace("size", "peer-host h200"), recorded).splitlines()
    assert "|  | out=: time | out=: % of streaming limit | numpy out= / ours |" in lines
    assert "| 2^10 | 100 ns | - | 2.5 |" in lines
    assert "| 2^24 | 100 ns | 96 % | 2.5 |" in lines


def test_a_chosen_route_stands_beside_those_that_it_was_chosen_from(recorded: Path) -> None:
    here: dict[str, Any] = {"memory": "pinned"}
    ours = plain_figure(sweep="peer-transfer", name="add as routed", n=1 << 20, value=1e-4, params=here)
    params = {**here, "reference": "add as routed", "ratio": 3.0, "ratio_interval": [2.9, 3.1]}
    whole = plain_figure(sweep="peer-transfer", name="add", n=10**8, value=1.5e-2, params=here)
    other_routes = [("add as routed, again", 0.99), ("add on the host", 0.9), ("add by hybrid", 0.95)]
    write_run(
        recorded / "h200" / "peer-transfer.json",
        META,
        [
            *(whole, ours, replace(ours, name="add by transfer", params=params)),
            *(replace(ours, name=name, params={**params, "ratio": ratio}) for name, ratio in other_routes),
        ],
    )
    routes = documents.fill(EMPTY.replace("size", "peer-routes"), recorded).splitlines()
    assert "| float32 2^20, pinned | 100 us | 3 | 0.99 | 0.9 | 0.95 |" in routes
    assert (
        "Of 1 cells the chosen route takes at most 1.05 of the best fixed choice's time in 0, at most 1.111 (float32 "
        "2^20, pinned); the same call, timed twice, differs by 0.990 to 0.990. Hybrid takes at most 1.02 of the better "
        "one's time in 0 of 1 cells, 1.056 to 1.056 (float32 2^20, pinned)." in routes
    )
    assert "15 ms" in documents.fill(EMPTY.replace("size", "peer-transfer"), recorded)


def test_files_are_shown_with_their_rate_and_its_share(recorded: Path) -> None:
    here: dict[str, Any] = {"memory": "on disk"}
    ours = plain_figure(1.61, 0.94, sweep="peer-files", name="vecadd.add_files", n=1 << 25, params=here)
    ours = replace(ours, bytes=round(1.61e9 * 0.25), value=0.25)
    params = {**here, "reference": "vecadd.add_files", "ratio": 1.6, "ratio_interval": [1.5, 1.7]}
    other = replace(ours, name="numpy.memmap", params=params, limit=None)
    write_run(recorded / "h200" / "peer-files.json", META, [ours, other])
    lines = documents.fill(EMPTY.replace("size", "peer-files"), recorded).splitlines()
    assert "|  | time | GB/s (% of limit) | time / vecadd.add_files (95 % interval) |" in lines
    assert "| vecadd.add_files (on disk) | 250 ms | 1.61 (94 %) | 1 |" in lines
    assert any(line.endswith("| - | 1.6 (1.5 to 1.7) |") for line in lines)


@pytest.fixture
def calls(recorded: Path) -> Path:
    """The same folder with what calls cost: a bare launch, a call of two libraries, and the stages of ours."""
    bare = plain_figure(sweep="peer-overhead", name="vecadd (bare launch from C)", n=1024, value=4e-6)
    params = {"reference": bare.label, "ratio": 1.05, "ratio_interval": [1.04, 1.06]}
    seconds = {"parse": 10e-9, "describe": 40e-9, "plan": 30e-9, "allocate": 150e-9, "launch": 3.9e-6}
    rows = [bare, replace(bare, name="vecadd", value=4.2e-6, params=params)]
    rows += [replace(bare, name="torch", value=8e-6, params={**params, "ratio": 2.0, "ratio_interval": [1.9, 2.1]})]
    rows += [replace(bare, name=f"vecadd stage: {name}", value=each) for name, each in seconds.items()]
    write_run(recorded / "h200" / "peer-overhead.json", META, rows)
    return recorded


def test_calls_are_shown_beside_a_bare_launch(calls: Path) -> None:
    lines = documents.fill(EMPTY.replace("size", "peer-overhead"), calls).splitlines()
    assert lines[3:8] == [
        "|  | time | time / vecadd (bare launch from C) (95 % interval) |",
        "| --- | ---: | ---: |",
        "| vecadd (bare launch from C) | 4 us | 1 |",
        "| vecadd | 4.2 us | 1.05 (1.04 to 1.06) |",
        "| torch | 8 us | 2 (1.9 to 2.1) |",
    ]
    assert not any("stage" in line for line in lines)


def test_the_stages_of_a_call_add_up_to_it(calls: Path) -> None:
    lines = documents.fill(EMPTY.replace("size", "call-stages"), calls).splitlines()
    shown = {line.split(" | ")[0].strip("| "): line.split(" | ")[-1].strip("| ") for line in lines[5:13]}
    assert shown == {"parse": "10", "describe": "40", "plan": "30", "launch": "3900", "rest": "220", "call": "4200",
                     "bare": "4000", "allocate": "150"}  # fmt: skip


def test_stages_that_were_not_recorded_are_no_numbers(calls: Path) -> None:
    bare = plain_figure(sweep="peer-overhead", name="vecadd (bare launch from C)", n=1024, value=4e-6)
    write_run(calls / "h200" / "peer-overhead.json", META, [bare])
    lines = documents.fill(EMPTY.replace("size", "call-stages"), calls).splitlines()
    assert sum(line.endswith("| - |") for line in lines) == 7


GOLDEN = Path(__file__).parents[1] / "golden" / "readme"
GENERATED = ("ladder", "blocksize", "precision", "transfer", "stages", "latency", "steps")


def generated(table: str, folder: Path) -> str:
    """The table's lines as README.md gets them from the fixed rows of every sweep, a file each."""
    (folder / "made-up").mkdir(exist_ok=True)
    for sweep, rows in FIGURES.items():
        write_run(folder / "made-up" / f"{sweep}.json", MADE_UP, rows)
    return documents.fill(f"<!-- table: {table} -->\n<!-- /table -->\n", folder)


@pytest.mark.parametrize("table", GENERATED)
def test_fixed_rows_give_exactly_the_table_of_the_golden_file(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "rung_named", RUNGS.get)
    assert generated(table, tmp_path) == (GOLDEN / f"{table}.md").read_text()


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    parts.rung_named = RUNGS.get  # type: ignore[assignment]
    for name in GENERATED:
        with TemporaryDirectory() as place:
            (GOLDEN / f"{name}.md").write_text(generated(name, Path(place)))
