"""vecadd.why.receipt: what the receipt says of the lines, by additions and findings that are given here."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import test_why_reasons

from vecadd.why import noted, reasons
from vecadd.why.noted import Noted, Place, Run
from vecadd.why.reasons import AT_LIMIT, UNKNOWN, Change, Finding
from vecadd.why.receipt import SHOWN, Line, Receipt, stop

pytestmark = pytest.mark.no_native

X = np.ones(8)


def addition(line: int = 1, **more: Any) -> Noted:
    """What would be noted of 10 calls, the first of 3 s and the others of 1 s each."""
    given = {"place": Place("program.py", line, "f"), "nbytes": 240, "seconds": 12.0, "first_seconds": 3.0}
    return test_why_reasons.addition(X, X, X, **(given | more))


def receipt(*lines: Line, missed: int = 0, missed_seconds: float = 0.0) -> Receipt:
    """Of a run of 100 s."""
    run = Run([part for line in lines for part, _ in line.parts], 100.0, missed, missed_seconds)
    return Receipt(run, lines)


PLAIN = Line(((addition(), Finding(AT_LIMIT, "", limit=0.5)),))


def test_the_heading_counts_additions_that_there_was_no_room_for() -> None:
    assert receipt(PLAIN).heading() == "10 additions above 64 KiB took 12 s of 100 s"
    assert receipt(PLAIN, missed=5, missed_seconds=8.0).heading() == "15 additions above 64 KiB took 20 s of 100 s"


def test_lines_that_are_not_shown_are_told_with_their_time() -> None:
    lines = [Line(((addition(line), Finding(UNKNOWN, "")),)) for line in range(SHOWN + 2)]
    table = receipt(*lines).table()
    assert (len(table.lines), table.notes) == (SHOWN, ["2 more lines took 24 s"])


def test_the_limit_of_a_line_is_known_where_that_of_each_part_is() -> None:
    known, unknown = (addition(), Finding(AT_LIMIT, "", limit=0.5)), (addition(), Finding(AT_LIMIT, ""))
    assert Line((known, known)).limit == 10 * 0.5 + 10 * 0.5
    assert Line((known, unknown)).limit is None


def test_the_files_limit_is_that_of_all_calls() -> None:
    (row,) = receipt(PLAIN).as_dict()["lines"]
    assert (row["calls"], row["limit_seconds"]) == (10, 5.0)


def test_a_change_does_not_save_what_the_first_call_alone_took() -> None:
    change = Change("one thread", "", "", gain=2.0)
    line = Line(((addition(), Finding("one thread", "", (change,))),))
    assert line.saved == 10 * 1.0 / 2
    assert line.gain == 12 / (12 - 5)


def test_additions_of_one_line_with_two_reasons_are_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [addition(seconds=20.0), addition(seconds=12.0, via="add"), addition(seconds=15.0)]
    monkeypatch.setattr(noted, "stop", lambda: Run(parts, 100.0, 0, 0.0))
    monkeypatch.setattr(reasons, "find", lambda part: Finding("one thread" if part.via == "numpy" else UNKNOWN, ""))
    found = [(line.finding.reason, line.seconds) for line in stop().lines]
    assert found == [("one thread", 35.0), (UNKNOWN, 12.0)]


def test_what_took_longest_is_rehearsed_first_until_five_seconds_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what took less than one part in 200 of the additions' time is not."""
    seconds = {1: 4.0, 2: 400.0, 3: 1.0, 4: 300.0, 5: 100.0, 6: 200.0}
    parts = [addition(line, seconds=taken) for line, taken in seconds.items()]
    rehearsed: list[int] = []
    told: list[str] = []

    def find(part: Noted) -> Finding:
        rehearsed.append(part.place.line)
        return Finding(AT_LIMIT, "")

    clock = itertools.count(0, 2)  # two seconds pass from look to look
    monkeypatch.setattr("vecadd.why.receipt.time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    monkeypatch.setattr(noted, "stop", lambda: Run(parts, 2000.0, 0, 0.0))
    monkeypatch.setattr(reasons, "find", find)
    found = stop(told.append)
    assert (rehearsed, told) == ([2, 4], ["rehearses program.py:2", "rehearses program.py:4"])
    late, little = "other lines took longer, and were rehearsed first", "it took too little of the run to be rehearsed"
    assert [(line.where, line.finding.reason, line.finding.evidence) for line in found.lines] == [
        ("program.py:2", AT_LIMIT, ""),
        ("program.py:4", AT_LIMIT, ""),
        ("program.py:6", UNKNOWN, late),
        ("program.py:5", UNKNOWN, late),
        ("program.py:1", UNKNOWN, little),
        ("program.py:3", UNKNOWN, little),
    ]


def test_a_notebook_shows_names_and_reasons_as_they_are() -> None:
    odd = addition(place=Place("/<b>.py", 1, "f"), estimated=True)
    shown = receipt(Line(((odd, Finding("a & b", "")),)))._repr_html_()
    assert shown.startswith("<p>why: about 10 additions above 64 KiB took 12 s of 100 s</p><table>")
    assert "<td style='text-align:left'>/&lt;b&gt;.py:1</td>" in shown
    assert "<td style='text-align:left'>a &amp; b</td>" in shown


def test_a_file_is_named_from_the_working_directory_where_that_is_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(Place(str(tmp_path / "folder" / "program.py"), 7, "f")) == "folder/program.py:7"
    assert str(Place("/program.py", 7, "f")) == "/program.py:7"
