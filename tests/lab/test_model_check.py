"""The model beside recorded cells: what is compared, what is not, and what is said of it."""

from dataclasses import replace

import pytest
from modelled import H200, LIMITS, expect

from benchmarks import model_check
from vecadd.figures import Figure, write_run

pytestmark = pytest.mark.no_native


@pytest.fixture
def recording(tmp_path):
    """A result file whose naive cell took what the model expects, and whose float4 cell twice that."""
    rows = [
        Figure("ladder", rung, "float32", 2**20, params, value=seconds)
        for rung, params, seconds in (
            ("naive", {"bytes_in_flight": 1}, expect("naive", 2**20)),
            ("float4", {}, 2 * expect("float4", 2**20)),
            ("float4", {}, None),
            ("race", {"parameters": {}, "block": 256}, expect("race", 2**20)),
        )
    ]
    others = {"host": "threads", "latency": "batched", "transfer": "pageable"}
    rows += [replace(rows[0], sweep=sweep, name=name) for sweep, name in others.items()]
    path = tmp_path / "ladder.json"
    write_run(path, {"gpu": [{**H200, "name": "H200"}], "limits": {}}, rows)
    return path


def test_recorded_cells_are_compared_one_by_one(recording, monkeypatch, capsys):
    monkeypatch.setattr(model_check.Limits, "of", lambda meta_limits: replace(LIMITS, table=None))
    assert model_check.main([str(recording), "--misses"]) == 1
    said = capsys.readouterr().out
    assert "2 of 3 cells within 10 %" in said
    assert "ladder float4 float32 1048576" in said
    assert "-50.0 %" in said
    assert "ladder naive" not in said
    assert "missed, 1 rows of float4: -50 %" in said
    assert "not covered, 1 rows: failed" in said
    assert "not covered, 1 rows: this run did not measure table" in said
    assert "pageable" not in said


def test_a_recording_without_limits_covers_nothing(recording, capsys):
    assert model_check.main([str(recording)]) == 1
    assert "0 of 0 cells" in capsys.readouterr().out
