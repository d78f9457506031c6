"""vecadd bench on the command line: what it takes, prints and writes."""

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest

from vecadd import _core
from vecadd.bench import options, run, sweeps
from vecadd.bench.options import Options
from vecadd.bench.run import Session
from vecadd.bench.timing import Cell
from vecadd.cli import main

pytestmark = pytest.mark.no_native


def test_the_command_writes_every_format_and_the_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["host", "host", "--sizes", "1000", "--rungs", "numpy,add", "--seconds-per-cell", "0.01"]
    for name in ("csv", "markdown", "html"):
        arguments += [f"--{name}", str(tmp_path / name)]
    assert main(["bench", *arguments, "--plot", str(tmp_path / "pictures")]) in (0, 1)  # 1: beyond a limit in noise
    head, *rows = (tmp_path / "csv").read_text().splitlines()
    assert head.startswith("sweep,rung,dtype,n,seconds,")
    assert [row.split(",")[1] for row in rows] == ["numpy", "add"]
    assert (tmp_path / "markdown").read_text().startswith("# vecadd bench\n\n- machine: ")
    assert (tmp_path / "html").read_text().count('<svg class="picture"') == 1
    assert [path.name for path in sorted((tmp_path / "pictures").iterdir())] == ["host.png", "host.svg"]
    printed = capsys.readouterr().out
    assert printed.startswith("machine: ")
    assert sweeps.SWEEPS["host"].clock in printed
    assert [line for line in printed.splitlines() if line.startswith("written to ")] == [
        f"written to {tmp_path / name}"
        for name in ("csv", "markdown", "html", "pictures/host.png", "pictures/host.svg")
    ]


def test_a_file_that_cannot_be_written_keeps_no_picture_from_being_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    assert main(["bench", *BRIEF, "--json", "/dev/full", "--plot", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "vecadd bench: /dev/full: No space left on device\n"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["host.png", "host.svg"]


def test_all_missing_packages_are_named_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["bench", "host", "--dtypes", "float32,bfloat16", "--html", str(tmp_path / "x.html")]) == 2
    assert capsys.readouterr() == (
        "",
        "vecadd bench: this needs matplotlib and jinja2 and ml_dtypes: pip install 'vecadd[plot,fleet,bench]'\n",
    )


BRIEF = ("host", "--sizes", "1000", "--rungs", "numpy,add", "--seconds-per-cell", "0.01")


@pytest.mark.parametrize(
    ("option", "begins"),
    [
        ("--json", '{\n "schema": 1,'),
        ("--csv", "sweep,rung,"),
        ("--markdown", "# vecadd bench\n"),
        ("--html", "<!doctype html>\n"),
    ],
)
def test_a_dash_is_stdout_and_the_tables_are_on_stderr(
    option: str, begins: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["bench", *BRIEF, option, "-"])
    printed = capsys.readouterr()
    assert printed.out.startswith(begins)
    assert "machine: " not in printed.out.partition("\n")[0]
    assert printed.err.startswith("machine: ")
    assert "written to" not in printed.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_written_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(Session, "measure", lambda *nothing: pytest.fail("measured"))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["bench", *BRIEF, "--json", str(tmp_path / "x.json")])
    assert f"the folder '{tmp_path}' may not be written: name a file in another" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(
            (f"--plot one --{option} one", "--plot one is a folder, and a file is to have that name: name another")
            for option in ("json", "csv", "markdown", "html")
        ),
        ("--csv - --json -", "only one of --json and --csv can be -, which is stdout"),
        ("--csv run --json folder/../run", "--json and --csv name one file: give each its own"),
    ],
)
def test_files_that_would_take_each_others_place_are_refused_before_anything_is_measured(
    options: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(Session, "measure", lambda *nothing: pytest.fail("measured"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert main(["bench", *BRIEF, *options.split()]) == 2
    assert capsys.readouterr().err == f"vecadd bench: {said}\n"


def test_a_file_called_dash_can_still_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    main(["bench", *BRIEF, "--csv", "./-"])
    assert (tmp_path / "-").read_text().startswith("sweep,rung,")


def test_rungs_that_the_sweep_has_not_are_said_to_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "host", "--rungs", "naive", "--sizes", "1000"]) == 1
    assert "\nnothing was measured: --rungs and --dtypes leave nothing of host\n" in capsys.readouterr().out


def test_bench_alone_runs_every_sweep_on_few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def measure(self: Session, chosen: Any, tell: Any) -> None:
        asked.extend([self.options, [sweep.name for sweep in chosen]])

    monkeypatch.setattr(Session, "measure", measure)
    main(["bench"])
    brief, names = asked
    assert brief.brief
    assert brief.seconds == options.BRIEF_SECONDS
    assert names in (["host"], list(sweeps.SWEEPS))
    machine = run.Machine()
    cells = list(sweeps.SWEEPS["host"].cells(brief, machine))
    assert max(cell.n for cell in cells) < max(run.DEFAULT_SIZES)


def test_the_command_fails_when_a_row_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_core, "run_rung", lambda name, a, b, out, **how: 1e-3)
    path = tmp_path / "host.json"
    arguments = ["host", "--sizes", "1000", "--seconds-per-cell", "0.01", "--json", str(path)]
    assert main(["bench", *arguments]) == 1
    rows = {row["rung"]: row for row in json.loads(path.read_text())["rows"]}
    assert not rows["threads"]["checked"]
    assert rows["numpy"]["checked"]
    assert "host threads float32 1000 failed: wrong result" in capsys.readouterr().out


def test_the_command_writes_what_it_has_when_interrupted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = Session._measure_cell

    def interrupt(self: Session, cell: Cell, *rest: Any) -> None:
        if cell.n == 2000:
            raise KeyboardInterrupt
        real(self, cell, *rest)

    monkeypatch.setattr(Session, "_measure_cell", interrupt)
    path = tmp_path / "host.json"
    arguments = ["host", "--sizes", "1000,2000,3000", "--seconds-per-cell", "0.01", "--json", str(path)]
    assert main(["bench", *arguments]) == 130
    assert {row["n"] for row in json.loads(path.read_text())["rows"]} == {1000}
    assert "interrupted" in capsys.readouterr().out


def test_a_gpu_sweep_without_a_gpu_is_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.executable", "")
    assert main(["bench", "size", "--sizes", "1000"]) == 1
    assert "size needs a GPU: " in capsys.readouterr().err


def test_the_default_sweep_is_the_one_that_is_promised() -> None:
    assert (min(run.DEFAULT_SIZES), max(run.DEFAULT_SIZES)) == (1 << 10, 1 << 28)
    assert {str(cell.dtype) for cell in sweeps.SWEEPS["host"].cells(Options(), run.Machine())} == {"float32"}
