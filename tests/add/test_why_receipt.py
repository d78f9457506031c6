"""vecadd.why.receipt: what the receipt says of the lines, by additions and diagnoses that are given here."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import test_why_diagnosis

from vecadd.why import diagnosis, recording
from vecadd.why.diagnosis import AT_LIMIT, GAP, UNKNOWN, USE_PLAN, Change, Diagnosis
from vecadd.why.receipt import SHOWN, Line, Receipt, stop
from vecadd.why.recording import AdditionGroup, Recording, SourceLine

pytestmark = pytest.mark.no_native

X = np.ones(8)


def addition(number: int = 1, **more: Any) -> AdditionGroup:
    """What would be recorded of 10 calls, the first of 3 s and the others of 1 s each."""
    given = {"line": SourceLine("program.py", number, "f"), "nbytes": 240, "seconds": 12.0, "first_seconds": 3.0}
    return test_why_diagnosis.addition(X, X, X, **(given | more))


def receipt(*lines: Line, missed: int = 0, missed_seconds: float = 0.0, small: int = 0) -> Receipt:
    """Of a run of 100 s."""
    groups = [group for line in lines for group, _ in line.parts]
    return Receipt(Recording(groups, 100.0, missed, missed_seconds, small), lines)


PLAIN = Line(((addition(), Diagnosis(AT_LIMIT, "", limit=0.5)),))


def test_the_heading_counts_additions_for_which_there_was_no_room_and_small_ones() -> None:
    assert receipt(PLAIN).heading() == "10 additions above 64 KiB took 12 s of 100 s"
    full = receipt(PLAIN, missed=5, missed_seconds=8.0)
    assert full.heading() == "15 additions above 64 KiB took 20 s of 100 s"
    assert full.table().notes == ["there was no room for 5 additions, which took 8 s"]
    none = receipt(small=1234)
    assert none.heading() == "no addition above 64 KiB was made; smaller ones, not timed: 1,234"
    assert none.as_dict()["small"] == 1234


def test_lines_that_are_not_shown_are_told_with_their_time() -> None:
    lines = [Line(((addition(line), Diagnosis(UNKNOWN, "")),)) for line in range(SHOWN + 2)]
    table = receipt(*lines).table()
    assert (len(table.lines), table.notes) == (SHOWN, ["2 more lines took 24 s"])


def test_the_limit_of_a_line_is_known_where_that_of_each_part_is() -> None:
    known, unknown = (addition(), Diagnosis(AT_LIMIT, "", limit=0.5)), (addition(), Diagnosis(AT_LIMIT, ""))
    assert Line((known, known)).limit == 10 * 0.5 + 10 * 0.5
    assert Line((known, unknown)).limit is None


def test_the_files_rows() -> None:
    """Seconds of all calls, faults of one."""
    group = addition(
        through=SourceLine("/library.py", 7, "g"),
        new=True,
        later_faults=4.0,
        first_faults=9,
        loops=2,
        loop_elements=4.0,
    )
    found = Diagnosis(
        "one thread", "NumPy adds", (Change("one thread", "NumPy adds", "install", 4.0),), 0.5, 0.25, 0.75
    )
    document = receipt(Line(((group, found),)), missed=5, missed_seconds=8.0, small=3).as_dict()
    rows = document.pop("lines")
    assert document == {"seconds": 100.0, "additions_seconds": 20.0, "missed": 5, "small": 3}
    change = {"reason": "one thread", "evidence": "NumPy adds", "change": "install", "gain": 4.0, "saved_seconds": 7.5}
    assert rows == [
        {
            "file": "program.py", "line": 1, "function": "f", "through": "/library.py:7", "via": "numpy",
            "operands": ["float64 (8,)", "float64 (8,)", "a new float64 (8,)"], "calls": 10, "bytes": 240,
            "seconds": 12.0, "first_seconds": 3.0, "faults": 4.0, "first_faults": 9, "faulted": 1.0, "loops": 2,
            "loop_elements": 4.0, "installed": False, "reason": "one thread", "evidence": "NumPy adds",
            "limit_seconds": 5.0, "replayed_seconds": 7.5, "from_memory": 0.25, "changes": [change],
        }
    ]  # fmt: skip


def test_a_change_does_not_save_what_the_first_call_alone_took() -> None:
    change = Change("one thread", "", "", gain=2.0)
    line = Line(((addition(), Diagnosis("one thread", "", (change,))),))
    assert line.saved == 10 * 1.0 / 2
    assert line.gain == 12 / (12 - 5)


def test_a_change_that_was_not_replayed_is_told_without_a_gain() -> None:
    change = Change(GAP, "", USE_PLAN, None)
    shown = receipt(Line(((addition(), Diagnosis(GAP, "", (change,), 0.5)),)))
    assert (shown.lines[0].gain, shown.as_dict()["lines"][0]["changes"][0]["saved_seconds"]) == (None, None)
    assert [line.cells[-3:] for line in shown.table().lines if line] == [(USE_PLAN, "-", "-")]


def test_additions_of_one_line_with_two_reasons_are_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [addition(seconds=20.0), addition(seconds=12.0, via="add"), addition(seconds=15.0)]
    monkeypatch.setattr(recording, "stop", lambda: Recording(parts, 100.0, 0, 0.0, 0))
    monkeypatch.setattr(
        diagnosis, "diagnose", lambda part: Diagnosis("one thread" if part.via == "numpy" else UNKNOWN, "")
    )
    found = [(line.diagnosis.reason, line.seconds) for line in stop().lines]
    assert found == [("one thread", 35.0), (UNKNOWN, 12.0)]


def test_what_took_longest_is_replayed_first_until_five_seconds_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what took less than one part in 200 of the additions' time is not."""
    seconds = {1: 4.0, 2: 400.0, 3: 1.0, 4: 300.0, 5: 100.0, 6: 200.0}
    parts = [addition(line, seconds=taken) for line, taken in seconds.items()]
    replayed: list[int] = []
    told: list[str] = []

    def find(group: AdditionGroup) -> Diagnosis:
        replayed.append(group.line.line)
        return Diagnosis(AT_LIMIT, "")

    clock = itertools.count(0, 2)  # two seconds pass from look to look
    monkeypatch.setattr("vecadd.why.receipt.time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    monkeypatch.setattr(recording, "stop", lambda: Recording(parts, 2000.0, 0, 0.0, 0))
    monkeypatch.setattr(diagnosis, "diagnose", find)
    found = stop(told.append)
    assert (replayed, told) == ([2, 4], ["replays program.py:2", "replays program.py:4"])
    late, little = "other lines took longer, and were replayed first", "it took too little of the run to be replayed"
    assert [(line.where, line.diagnosis.reason, line.diagnosis.evidence) for line in found.lines] == [
        ("program.py:2", AT_LIMIT, ""),
        ("program.py:4", AT_LIMIT, ""),
        ("program.py:6", UNKNOWN, late),
        ("program.py:5", UNKNOWN, late),
        ("program.py:1", UNKNOWN, little),
        ("program.py:3", UNKNOWN, little),
    ]


def test_a_notebook_shows_names_and_reasons_as_they_are() -> None:
    odd = addition(line=SourceLine("/<b>.py", 1, "f"))
    shown = receipt(Line(((odd, Diagnosis("a & b", "")),)))._repr_html_()
    assert shown.startswith("<p>why: 10 additions above 64 KiB took 12 s of 100 s</p><table>")
    assert "<td style='text-align:left'>/&lt;b&gt;.py:1</td>" in shown
    assert "<td style='text-align:left'>a &amp; b</td>" in shown


def test_a_file_is_named_from_the_working_directory_where_that_is_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(SourceLine(str(tmp_path / "folder" / "program.py"), 7, "f")) == "folder/program.py:7"
    assert str(SourceLine("/program.py", 7, "f")) == "/program.py:7"
