"""vecadd profile without Nsight Compute: the time of a launch by its events, and where the table goes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import child_environment

from vecadd import cli
from vecadd.bench.operands import Buffers
from vecadd.profile import command, ncu, own
from vecadd.profile.spec import Spec

pytestmark = pytest.mark.no_native


def test_a_launch_takes_the_median_of_nine_runs(device: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([9e-6, 1e-6, 8e-6, 2e-6, 7e-6, 3e-6, 4e-6, 40e-6, 50e-6])

    def run(spec: Spec, watched: Callable[[Buffers], None]) -> None:
        watched(Buffers(None, None, None, 0))

    monkeypatch.setattr(own.child, "run", run)
    monkeypatch.setattr(own._core, "run_rung", lambda *arguments, **options: next(seconds))
    found = own.profile(Spec("naive", "float32", 1000), 4e12, "because").found
    assert found["duration"] == 7e-6
    assert found["needed"] == pytest.approx(100 * 12_000 / 7e-6 / 4e12)
    assert next(seconds, None) is None


def test_the_table_is_on_stderr_where_the_file_is_stdout(
    device: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(ncu, "FOLDERS", ())
    monkeypatch.setenv("PYTHONPATH", child_environment()["PYTHONPATH"])
    assert cli.main(["profile", "naive", "--n", "1000", "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert [row["rung"] for row in json.loads(printed.out)["rows"]] == ["naive"]
    assert f"method: {command.METHOD_OF_EVENTS}" in " ".join(printed.err.split())
