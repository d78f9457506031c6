"""benchmarks.tuned_host: additions with what `vecadd tune host` finds and without, in processes that take turns."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import tuned_host
from benchmarks.tables import tuned_host as tables
from vecadd.bench import results
from vecadd.tune import store
from vecadd.tune.part import Found

pytestmark = pytest.mark.no_native

CELL = ("out=", "float32", 16)


def samples(**ratios: float) -> tuned_host.Samples:
    """Of six generations: those of the sides over the untuned one's."""
    untuned = [1e-6, 2e-6, 3e-6, 4e-6, 5e-6, 6e-6]
    return {side: [ratios.get(side, 1.0) * each for each in untuned] for side in tuned_host.SIDES}


@pytest.mark.parametrize("form", tuned_host.FORMS)
def test_each_form_is_timed_and_its_sum_checked(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned_host, "LONG", 1e-3)
    assert 0 < tuned_host.measured(form, "float64", 1000) < 1


def test_a_wrong_sum_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned_host.vecadd, "add", lambda a, b, out=None: np.subtract(a, b, out))
    with pytest.raises(RuntimeError, match="out= float32 16: the sum is not NumPy's"):
        tuned_host.measured(*CELL)


def test_a_process_answers_until_it_ends(tmp_path: Path) -> None:
    with tuned_host.process(str(tmp_path)) as child:
        assert 0 < tuned_host.ask(child, CELL) < 1
        child.kill()
        child.wait()
        with pytest.raises(RuntimeError, match="has ended"):
            tuned_host.ask(child, CELL)


def test_every_side_has_every_cell_in_each_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    started, asked = [], []

    @contextlib.contextmanager
    def process(folder: str) -> Iterator[str]:
        started.append(folder)
        yield folder

    def ask(child: Any, cell: tuned_host.Cell) -> float:
        asked.append((child, cell))
        return 1.0

    monkeypatch.setattr(tuned_host, "process", process)
    monkeypatch.setattr(tuned_host, "ask", ask)
    cells = [CELL, ("a + b", "float64", 4)]
    taken = tuned_host.generations(cells, 0, "none", "tuned")
    count = tuned_host.FEWEST
    assert {cell: {side: len(each) for side, each in sides.items()} for cell, sides in taken.items()} == {
        cell: dict.fromkeys(tuned_host.SIDES, count) for cell in cells
    }
    assert sorted(started) == ["none"] * 2 * count + ["tuned"] * count
    assert all(asked.count(("tuned", cell)) == count for cell in cells)


def test_ratios_are_to_the_untuned_time_of_the_same_generation() -> None:
    row = tuned_host.row_of(CELL, samples(tuned=0.8, again=1.25))
    assert row.seconds == 3.5e-6
    assert row.params["ratio"] == pytest.approx(0.8)
    assert row.params["ratio_interval"] == pytest.approx([0.8, 0.8])
    assert row.params["same"] == pytest.approx(1.25)


def test_the_table_names_the_cells_that_tuning_surely_gains() -> None:
    rows = [
        tuned_host.row_of(("out=", "float32", 16), samples()),
        tuned_host.row_of(("out=", "float32", 1 << 20), samples(tuned=0.8)),
        tuned_host.row_of(("a + b", "float32", 16), samples(again=0.5)),
    ]
    lines = tables.lines(rows)
    assert lines[2:4] == ["| out= | 2 | 1.25 (1 to 1.25) | 1 (1 to 1) |", "| a + b | 1 | 1 (1 to 1) | 2 (2 to 2) |"]
    assert lines[-1] == (
        "Of 3 cells the untuned addition surely takes more than 1.1 times as long as the tuned one in 1: out= float32 "
        "2^20; more than a second untuned one in 1. 6 generations of processes."
    )


def test_what_a_search_finds_is_written_whether_it_gains_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [("threads_awake", (65536,)), ("block", (1 << 18,))]
    monkeypatch.setattr(tuned_host.host, "search", lambda tell: [Found("host", "a processor", rows)])
    assert tuned_host.main(["--search", str(tmp_path / "tuned")]) == 0
    monkeypatch.setenv("VECADD_CACHE_DIR", str(tmp_path / "tuned"))
    assert store.read("host", "a processor") == rows


def test_the_command_tunes_first_and_writes_a_result_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[str] = []
    monkeypatch.setattr(tuned_host, "tune", folders.append)
    monkeypatch.setattr(tuned_host, "generations", lambda cells, *given: {cell: samples() for cell in cells})
    file = tmp_path / "tuned-host.json"
    words = ["--minutes", "0", "--sizes", "16,2^26", "--dtypes", "int8", "--json", str(file)]
    assert tuned_host.main(words) == 0
    assert len(folders) == 1
    meta, rows = results.read(file)
    assert list(meta["clocks"]) == ["tuned-host"]
    paused = [form for form in tuned_host.FORMS if "ms" in form]
    assert [(row.rung, row.n) for row in rows if row.rung in paused] == [(form, 16) for form in paused]
    assert len(rows) == 2 * len(tuned_host.FORMS) - len(paused)
