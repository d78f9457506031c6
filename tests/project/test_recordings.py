"""What is recorded beside the sweeps: benchmarks.why's and benchmarks.stores' files are result files like others, those
of `vecadd check` are as its schema says, and the documents' tables show them."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from made_up import META

from benchmarks import gpu_stages, why
from benchmarks.tables import documents
from vecadd.check import outputs
from vecadd.figures import Figure, check_of_content, content_of_check, json_text, write_json, write_run

pytestmark = pytest.mark.no_native


def shown(table: str, rows: list[Figure], folder: Path) -> list[str]:
    """The lines of that table of these rows, by way of a file."""
    (folder / "here").mkdir()
    meta = {**META, "method": "made up", "clocks": {table: "by hand"}}
    write_run(folder / "here" / "one.json", meta, rows)
    return documents.fill(f"<!-- table: {table} -->\n<!-- /table -->\n", folder).splitlines()


def receipts(monkeypatch: pytest.MonkeyPatch, mended_seconds: float, gain: float) -> None:
    """Every program's slow version takes a second, and its receipt predicts that gain for short rows."""
    changes = [{"reason": "short rows", "gain": gain}]
    slow = {"lines": [{"seconds": 1.0, "bytes": 12 << 20, "reason": "short rows", "changes": changes}]}
    mended = {"lines": [{"seconds": mended_seconds, "bytes": 12 << 20}]}
    monkeypatch.setattr(why, "receipt", lambda name, version: slow if version == "slow" else mended)


def test_a_prediction_is_shown_beside_what_was_gained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = []
    for name, gain in (("near", 4.4), ("far", 4.8)):
        receipts(monkeypatch, 0.25, gain)
        rows.append(why.measured(why.Program(name, "short rows", 1 << 20, "float32"), 3))
    lines = shown("why-programs", rows, tmp_path)
    assert "| near | short rows | 1 s | 250 ms | 4.4 x | 4 x | +10 % |" in lines
    assert "| far | short rows | 1 s | 250 ms | 4.8 x | 4 x | +20 % |" in lines
    assert "Of 2 predictions 1 are within 15 % of the measured gain; 3 rounds." in lines
    assert "*Made-up GPU, driver 580.1; 2026-01-02, commit 0123456789ab. By hand.*" in lines


def test_a_reason_that_was_not_found_predicts_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    receipts(monkeypatch, 0.5, 2.0)
    row = why.measured(why.Program("other", "one thread", 1 << 20, "float32"), 1)
    assert "| other | one thread | 1 s | 500 ms | - | 2 x | - |" in shown("why-programs", [row], tmp_path)


def test_the_cost_of_a_receipt_is_that_of_each_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of 100 additions, after 65 and a quarter of as many that are not timed."""
    recorded: list[bool] = []
    turns: list[int] = []
    costs = {1000: 1.01, 1 << 16: 1.03}

    def session(a: Any, b: Any, calls: int) -> float:
        turns.append(calls)
        return calls * 1e-4 * (costs[a.size] if recorded else 1)

    monkeypatch.setattr(why.recording, "start", lambda: recorded.append(True))
    monkeypatch.setattr(why.recording, "stop", recorded.clear)
    monkeypatch.setattr(why, "_session", session)
    lines = shown("why-costs", [why.cost(n) for n in costs], tmp_path)
    assert "| 1000 | 100 us | 101 us | +1.0 % | +1.0 to +1.0 % | +0.0 to +0.0 % |" in lines
    assert "| 2^16 | 100 us | 103 us | +3.0 % | +3.0 to +3.0 % | +0.0 to +0.0 % |" in lines
    assert "The medians are between +1.0 and +3.0 %." in lines
    assert turns == [10, 10, *[65 + 25, 100] * (3 * 211)] * 2


def test_stores_are_shown_beside_the_disk(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    from benchmarks import stores

    asked: dict[str, Any] = {"mib": 512, "chunk": 1024, "compressor": "none", "workers": 2}
    seconds = {stores.REFERENCE: 2.0, "cubed, threads": 3.0, stores.DISK: 1.0}
    runs = [
        {"contestant": name, "seconds": each + turn, "peak": 150e6, "tasks": 1}
        for name, each in seconds.items()
        for turn in (-0.5, 0.0, 1.0)
    ]
    rows = [stores.row_of(name, runs, asked) for name in seconds]
    assert [(row.spread, row.bytes) for row in rows] == [(None, 3 << 29)] * 3
    lines = shown("stores", rows, tmp_path)
    setting = (
        "Two arrays of 512 MiB, float64, in chunks of 1024 by 1024, compressor none; the clusters have 2 workers of"
    )
    assert f"{setting} one thread; 3 rounds." in lines
    assert "| vecadd, threads | 2 s | 1 x | 50 % | 150 MB | 1 |" in lines
    assert "| cubed, threads | 3 s | 1.5 x | 33 % | 150 MB | 1 |" in lines
    assert "| the disk, moving as much | 1 s | 0.5 x | 100 % | 150 MB | 1 |" in lines
    again = [stores.row_of(name, [*runs, *runs], asked) for name in seconds]
    assert [row.spread for row in again] == [(1.5, 3.0), (2.5, 4.0), (0.5, 2.0)]


CHECKS = sorted(documents.CHECKS.rglob("*.json"))


@pytest.mark.parametrize("path", CHECKS, ids=lambda path: path.stem)
def test_a_recorded_check_is_as_its_schema_says(path: Path) -> None:
    content = json.loads(path.read_text())
    jsonschema.validate(content, json.loads(outputs.read_schema()))
    assert content["status"] == "passed"
    assert json_text(content_of_check(check_of_content(path, content))) == path.read_text()


def test_a_checks_tables_show_its_values() -> None:
    tables = {
        name: documents.fill(f"<!-- check: {name} 2xh200 -->\n<!-- /check -->") for name in documents.CHECK_TABLES
    }
    found = {each["id"]: each for each in json.loads((documents.CHECKS / "2xh200.json").read_text())["findings"]}
    assert f"| read alone | {found['device memory/gpu 0/read']['value']:.0f} GB/s |" in tables["normal"]
    ways = (f"{found[f'pair/gpu 1 to gpu 0/{way}']['value']:.0f} GB/s" for way in ("copy", "read", "write"))
    assert f"| GPU 1 to GPU 0 | {' | '.join(ways)} | NVLink, 18 links" in tables["pairs"]
    assert f"| GPU 1 | {found['soak/gpu 1/memory']['meaning']} |" in tables["soak"]
    for table in tables.values():
        assert "2 × NVIDIA H200" in table
        assert "(../benchmarks/checks/2xh200.json)" in table


@pytest.mark.parametrize(
    ("marker", "message"),
    [("normal nowhere", "is not a file of vecadd check"), ("another 2xh200", "there is no table 'another'")],
)
def test_a_marker_that_names_nothing_is_an_error(marker: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        documents.fill(f"<!-- check: {marker} -->\n<!-- /check -->")


def test_proofs_and_tests_are_listed_with_their_commits(tmp_path: Path) -> None:
    write_json(tmp_path / "fuzz-here.json", {"machine": "here", "date": "2026-11-23", "commit": "0123+"})
    file = tmp_path / "here" / gpu_stages.FILE
    file.parent.mkdir()
    ended = {"verdict": "passed", "seconds": 1, "date": "2026-11-24", "commit": "45"}
    file.write_text("".join(f"{json.dumps({'stage': stage, **ended})}\n" for stage in ("test", "bench")))
    assert list(documents.verified_lines(tmp_path))[2:] == [
        "| [`fuzz-here.json`](results/fuzz-here.json) | 2026-11-23, commit 0123 with uncommitted changes |",
        "| `make gpu STAGE=test`, here: passed | 2026-11-24, commit 45 |",
    ]


def test_a_stages_last_run_counts_and_the_others_stay(tmp_path: Path) -> None:
    file = tmp_path / gpu_stages.FILE
    gpu_stages.main([str(file), "build", "passed", "9", "test", "FAILED", "80"])
    gpu_stages.main([str(file), "test", "passed", "103"])
    found = [(stage["stage"], stage["verdict"], stage["seconds"]) for stage in gpu_stages.read(file)]
    assert found == [("build", "passed", 9), ("test", "passed", 103)]
