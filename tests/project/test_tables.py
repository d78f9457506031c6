"""What the tables of the documents say of several runs: who is ahead, what the model expects, where a run is from."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up import META, plain_figure

from benchmarks import model_check
from benchmarks.tables import documents
from vecadd.figures import Figure, write_run

pytestmark = pytest.mark.no_native

H200 = documents.RESULTS / "h200"


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
    write_run(folder / "h200" / f"{sweep}.json", {**META, **meta}, rows)


def test_who_is_surely_ahead_has_a_line_with_the_range_and_the_cells(tmp_path: Path) -> None:
    small = [("triton", "int8", 1 << power, ratio) for power, ratio in ((10, 0.98), (11, 0.97), (12, 0.99), (13, 0.95))]
    compared(tmp_path, "peer-device", *small, ("triton", "int8", 1 << 20, 0.997), ("torch", "float32", 1 << 24, 0.99))
    compared(tmp_path, "peer-host", ("numpy", "float32", 1 << 10, 2.0))
    lines = filled("ahead h200", tmp_path).splitlines()
    assert "- triton (one addition on a GPU): 1 to 5 % less time in 4 of 5 cells, all of up to 2^13 elements" in lines
    assert "- torch (one addition on a GPU): 1 % less time in 1 of 1 cells (2^24 float32)" in lines
    assert not any("numpy" in line for line in lines)
    assert lines[-3:-1] == ["*Made-up GPU, driver 580.1; 2026-01-02, commit 0123456789ab.*", ""]


def test_where_nobody_is_ahead_the_list_says_so(tmp_path: Path) -> None:
    compared(tmp_path, "peer-host", ("numpy", "float32", 1 << 10, 0.999))
    assert "- None." in filled("ahead h200", tmp_path).splitlines()


def test_a_comparison_names_the_others_versions_and_what_a_ratio_means(tmp_path: Path) -> None:
    versions = {"vecadd": "0.1.0", "numpy": "2.4.6", "kernel": "6.18", "torch": "2.9.1"}
    compared(tmp_path, "peer-device", ("torch", "float32", 1 << 24, 0.99), versions=versions)
    text = filled("peer-device", tmp_path)
    assert "; numpy 2.4.6, torch 2.9.1.*" in text
    assert text.count(documents.RATIO) == 1
    assert "- on the device: torch 2.9.1" in filled("recorded-peers h200", tmp_path).splitlines()


def test_a_run_says_its_commit_and_whether_there_were_changes(tmp_path: Path) -> None:
    ratios = ("torch", "float32", 1 << 24, 0.99)
    for commit, words in (("0a1b+", ", commit 0a1b with uncommitted changes"), ("0a1b", ", commit 0a1b"), (None, "")):
        compared(tmp_path, "peer-device", ratios, commit=commit)
        assert f"*Made-up GPU, driver 580.1; 2026-01-02{words}.*" in filled("peer-device", tmp_path)


@pytest.mark.parametrize("sweep", ["transpose", "sgemm"])
def test_the_model_column_of_matrices_is_computed_and_not_what_was_recorded(sweep: str, tmp_path: Path) -> None:
    """An older model's figures may stand in the file."""
    recorded = json.loads((H200 / f"{sweep}.json").read_text())
    for row in recorded["rows"]:
        if row["params"].get("model_seconds"):
            row["params"]["model_seconds"] = 1.0
    (tmp_path / "h200").mkdir()
    (tmp_path / "h200" / f"{sweep}.json").write_text(json.dumps(recorded))
    assert filled(f"{sweep} h200", tmp_path) == filled(f"{sweep} h200", documents.RESULTS)


def test_the_models_share_of_cells_is_what_model_check_prints(capsys: pytest.CaptureFixture[str]) -> None:
    lines = filled("model h200", documents.RESULTS).splitlines()
    model_check.main([str(H200 / f"{sweep}.json") for sweep in ("ladder", "sgemm")])
    said = capsys.readouterr().out
    for sweep in ("ladder", "sgemm"):
        (line,) = (line for line in lines if line.startswith(f"| {sweep} |"))
        within, cells = line.split(" | ")[1:3]
        assert f"{sweep}: {within} of {cells} cells within 10 %" in said
