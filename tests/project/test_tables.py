"""The documents: their tables are those of the recorded results.

`PYTHONPATH=.:tests python tests/project/test_tables.py` writes the golden files anew; read what
has changed before you keep it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up import FIGURES, RUNGS, plain_figure
from made_up import META as MADE_UP

from benchmarks import model_check
from benchmarks.tables import documents
from vecadd import _core
from vecadd.figures import Figure, write_run

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

H200 = documents.RESULTS / "h200"
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


def test_each_table_says_where_and_when_it_was_recorded_and_how_where_that_is_not_said_above(recorded: Path) -> None:
    """A size sweep, a comparison of another day with libraries, the size sweep again, the comparison again."""
    ours = plain_figure(sweep="peer-device", name="vecadd", n=1 << 28)
    later = {**META, "date": "2026-02-01T00:00:00+00:00", "commit": "later", "versions": {"torch": "2.11"}}
    later["clocks"] = {"peer-device": "the host"}
    write_run(recorded / "h200" / "peer-device.json", later, [ours])
    text = "".join(f"# One\n<!-- table: {name} -->\n<!-- /table -->\n" for name in 2 * ["size", "peer-device"])
    where = "*NVIDIA H200, driver 580.95.05; "
    assert [
        line for line in documents.fill(text, recorded).splitlines() if line.startswith(("*NVIDIA", "*Method"))
    ] == [
        f"{where}2026-01-02, commit abc. CUDA events.*",
        "*Method: median of rounds.*",
        f"{where}2026-02-01, commit later; torch 2.11. The host.*",
        f"{where}2026-01-02, commit abc. CUDA events.*",
        f"{where}2026-02-01, commit later. The host.*",
    ]


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


def filled(table: str, folder: Path) -> str:
    return documents.fill(f"<!-- table: {table} -->\n<!-- /table -->\n", folder)


def compared(folder: Path, sweep: str, *ratios: tuple[str, str, int, float], **meta: Any) -> None:
    """A file of a comparison: for each (library, dtype, n, ratio) our row and the other's."""
    rows: list[Figure] = []
    for library, dtype, n, ratio in ratios:
        ours = plain_figure(sweep=sweep, name="vecadd", dtype=dtype, n=n, value=1e-6, params={})
        params = {"reference": "vecadd", "ratio": ratio, "ratio_interval": [ratio - 0.004, ratio + 0.004]}
        rows += [ours, replace(ours, name=library, params=params)]
    (folder / "h200").mkdir(exist_ok=True)
    write_run(folder / "h200" / f"{sweep}.json", {**MADE_UP, **meta}, rows)


def test_where_no_peer_is_ahead_the_list_says_so(tmp_path: Path) -> None:
    compared(tmp_path, "peer-host", ("numpy", "float32", 1 << 10, 0.999))
    assert "- None." in filled("ahead h200", tmp_path).splitlines()


def test_a_run_says_its_commit_and_whether_there_were_changes(tmp_path: Path) -> None:
    ratios = ("torch", "float32", 1 << 24, 0.99)
    for commit, words in (("0a1b+", ", commit 0a1b with uncommitted changes"), ("0a1b", ", commit 0a1b"), (None, "")):
        compared(tmp_path, "peer-device", ratios, commit=commit)
        assert f"*Made-up GPU, driver 580.1; 2026-01-02{words}.*" in filled("peer-device", tmp_path)


def test_the_models_share_of_cells_is_what_model_check_prints(capsys: pytest.CaptureFixture[str]) -> None:
    lines = filled("model h200", documents.RESULTS).splitlines()
    model_check.main([str(H200 / f"{sweep}.json") for sweep in ("ladder", "size")])
    said = capsys.readouterr().out
    for sweep in ("ladder", "size"):
        (line,) = (line for line in lines if line.startswith(f"| {sweep} |"))
        within, cells = line.split(" | ")[1:3]
        assert f"{sweep}: {within} of {cells} cells within 10 %" in said


GOLDEN = Path(__file__).parents[1] / "golden" / "tables"
GENERATED = ("ladder", "blocksize", "precision", "transfer", "stages", "latency", "steps")


def generated(table: str, folder: Path) -> str:
    """The table's lines as a document gets them from the fixed rows of every sweep, a file each."""
    (folder / "made-up").mkdir(exist_ok=True)
    for sweep, rows in FIGURES.items():
        write_run(folder / "made-up" / f"{sweep}.json", MADE_UP, rows)
    return filled(table, folder)


@pytest.mark.parametrize("table", GENERATED)
def test_fixed_rows_give_exactly_the_table_of_the_golden_file(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_core, "rungs", lambda: list(RUNGS.values()))
    assert generated(table, tmp_path) == (GOLDEN / f"{table}.md").read_text()


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    _core.rungs = lambda: list(RUNGS.values())
    for name in GENERATED:
        with TemporaryDirectory() as place:
            (GOLDEN / f"{name}.md").write_text(generated(name, Path(place)))
