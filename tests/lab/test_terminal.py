"""Tables as plain text: no cell is cut, however narrow the terminal is."""

import io
import os
import pty
import re
import select
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest
from made_up import FIGURES

from vecadd import _command
from vecadd.bench.sweeps import make_tables
from vecadd.tables import Screen, Style, Table, columns, prose, table_as_text

pytestmark = pytest.mark.no_native

WIDTHS = (30, 60, 80, 100, 140)
EVERY = [(sweep, at) for sweep in FIGURES for at in range(len(make_tables(FIGURES[sweep])))]
LEFT_OUT = re.compile(r"left out at \d+ columns: (.*) \(\d+ columns show all\)")


def fixed() -> Table:
    """Six columns that need 44 characters, two of which can be spared."""
    why = prose("why")
    table = Table(
        "made up", columns("row", "seconds", "spread", "GB/s", "gain", why), optional_columns=("spread", "why")
    )
    table.add("group", style=Style.HEAD)
    table.add("one", "735 us", "1 %", "4462", "-", "wide loads")
    table.add("another", "1.5 ms", "2 %", "38.6", "1.26 x", "none")
    table.add_gap()
    return table


def text(table: Table, width: int | None) -> str:
    return "\n".join(line for line, _ in table_as_text(table, width))


def unwrapped(shown: str) -> str:
    return " ".join(shown.split())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("sweep", "at"), EVERY)
def test_every_cell_is_whole_or_its_column_is_named_as_left_out_and_no_line_is_wider_than_the_terminal(
    sweep: str, at: int, width: int
) -> None:
    table = make_tables(FIGURES[sweep])[at]
    shown = text(table, width)
    words = max(len(word) for word in text(table, None).split() if not word.startswith("--"))
    assert max(map(len, shown.splitlines())) <= max(width, words)
    found = LEFT_OUT.search(unwrapped(shown))
    left_out = found[1].split(", ") if found else []
    assert left_out == list(table.optional_columns[: len(left_out)])
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells if line else (), strict=False):
            if column.name not in left_out and cell != "-":
                whole = cell.split() if column.wrap_weight else cell.split("\n")
                assert all(part in shown for part in whole), (column.name, cell)


GRID = """\
row      seconds  spread  GB/s    gain  why
--------------------------------------------------
group
one       735 us     1 %  4462       -  wide loads
another   1.5 ms     2 %  38.6  1.26 x  none"""

NARROWER = """\
row      seconds  GB/s    gain
------------------------------
group
one       735 us  4462       -
another   1.5 ms  38.6  1.26 x

left out at 41 columns: spread, why (50
  columns show all)"""

PARAGRAPHS = """\
group
one
  seconds: 735 us,
  spread: 1 %, GB/s: 4462,
  why: wide loads
another
  seconds: 1.5 ms,
  spread: 2 %, GB/s: 38.6,
  gain: 1.26 x, why: none"""


@pytest.mark.parametrize(("width", "shown"), [(None, GRID), (50, GRID), (41, NARROWER), (29, PARAGRAPHS)])
def test_a_table_is_a_grid_then_a_smaller_grid_then_paragraphs(width: int | None, shown: str) -> None:
    assert text(fixed(), width) == shown


# What a terminal is told


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TextIO, int]]:
    """A terminal of 60 columns to print to, and the descriptor from which to read what it was told."""
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (24, 60))
    with os.fdopen(writer, "w") as file:
        yield file, reader
    os.close(reader)


def told(terminal: tuple[TextIO, int]) -> str:
    file, reader = terminal
    file.flush()
    text = b""
    seconds = 10.0  # for the system to bring the first byte
    while select.select([reader], [], [], seconds)[0]:
        text += os.read(reader, 65536)
        seconds = 0.05
    return text.decode().replace("\r\n", "\n")


def test_a_terminals_own_width_counts_and_columns_says_otherwise(
    terminal: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _command.terminal_columns(terminal[0]) == 60
    monkeypatch.setenv("COLUMNS", "100")
    assert _command.terminal_columns(terminal[0]) == 100
    monkeypatch.setenv("COLUMNS", "wide")
    assert _command.terminal_columns(terminal[0]) == 60


def test_a_terminal_that_does_not_say_has_80_columns(terminal: tuple[TextIO, int]) -> None:
    termios.tcsetwinsize(terminal[0].fileno(), (0, 0))
    assert _command.terminal_columns(terminal[0]) == 80


def test_what_is_no_terminal_has_no_width() -> None:
    assert _command.terminal_columns(io.StringIO()) is None


def test_lines_continue_at_spaces_on_a_terminal(terminal: tuple[TextIO, int]) -> None:
    Screen(terminal[0]).say("method: " + "0123456789 " * 8)
    lines = told(terminal).splitlines()
    assert lines == [
        "method: 0123456789 0123456789 0123456789 0123456789",
        "  0123456789 0123456789 0123456789 0123456789",
    ]


def test_lines_stay_whole_in_a_pipe() -> None:
    pipe = io.StringIO()
    Screen(pipe).say("0123456789 " * 30)
    assert pipe.getvalue() == "0123456789 " * 30 + "\n"


def test_heads_and_failures_are_coloured_on_a_terminal(terminal: tuple[TextIO, int]) -> None:
    table = fixed()
    table.add("third", "failed", style=Style.FAILED)
    Screen(terminal[0]).show([table])
    shown = told(terminal)
    assert "\x1b[1mgroup\x1b[0m\n" in shown
    assert "\x1b[31mthird     failed\x1b[0m\n" in shown


def test_the_status_line_fits_and_is_erased(terminal: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal[0])
    with _command.status_line("bench") as tell:
        tell("12/50 ladder float32 2^26")
        assert told(terminal) == "\r\x1b[Kbench: 12/50 ladder float32 2^26"
        tell("12/50 " + "0123456789 " * 9)
        assert told(terminal) == "\r\x1b[Kbench: 12/50 0123456789 0123456789 0123456789 ..."
    assert told(terminal) == "\r\x1b[K"
