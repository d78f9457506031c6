"""The model beside recorded cells: what is compared, what is not, and what is said of it."""

import json

import pytest
from modelled import H200, LIMITS, expect

from benchmarks import model_check
from vecadd.model import Curve

pytestmark = pytest.mark.no_native


@pytest.fixture
def recording(tmp_path):
    """A result file whose naive cell took what the model expects, and whose float4 cell twice that."""
    rows = [
        {"sweep": "ladder", "rung": rung, "dtype": "float32", "n": 2**20, "params": params, "seconds": seconds}
        for rung, params, seconds in (
            ("naive", {"bytes_in_flight": 1}, expect("naive", 2**20)),
            ("float4", {}, 2 * expect("float4", 2**20)),
            ("float4", {}, None),
            ("race", {"parameters": {}, "block": [256, 1, 1]}, expect("race", 2**20)),
        )
    ]
    rows.append({**rows[0], "sweep": "host", "rung": "threads"})
    rows.append({**rows[0], "sweep": "latency", "rung": "batched"})
    rows.append({**rows[0], "sweep": "transfer", "rung": "pageable"})
    path = tmp_path / "ladder.json"
    path.write_text(json.dumps({"meta": {"gpu": [H200], "limits": {}}, "rows": rows}))
    return path


def test_recorded_cells_are_compared_one_by_one(recording, capsys):
    known = {name: getattr(LIMITS, name) for name in model_check.LIMITS if name != "table"}
    assumed = [f"--assume={name}={value}" for name, value in known.items() if not isinstance(value, Curve)]
    assert model_check.main([str(recording), *assumed, "--misses"]) == 1
    said = capsys.readouterr().out
    assert "2 of 3 cells within 10 %" in said
    assert "ladder float4 float32 1048576" in said
    assert "-50.0 %" in said
    assert "ladder naive" not in said
    assert "missed, 1 rows of float4 (-50 %): nothing explains it" in said
    assert "not covered, 1 rows: failed" in said
    assert "not covered, 1 rows: this run did not measure table" in said
    assert "pageable" not in said
    assert "assumed, not measured: dram" in said


def test_a_recording_without_limits_covers_nothing(recording, capsys):
    assert model_check.main([str(recording)]) == 1
    assert "0 of 0 cells" in capsys.readouterr().out


def test_a_curve_is_assumed_by_its_start_and_its_rate(recording, capsys):
    scalars = {"kernel": 3e-6, "dram": 4e-7}
    assumed = [f"--assume={name}={value}" for name, value in scalars.items()]
    model_check.main([str(recording), *assumed, "--assume=fresh_node=1e-6+4e12"])
    assert "assumed, not measured: fresh_node" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        model_check.main([str(recording), "--assume=fresh_node=70e-6"])
    assert "fresh_node must be SECONDS+RATE" in capsys.readouterr().err
