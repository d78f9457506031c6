"""Tables and lines as plain text: for a terminal of any width, and for a pipe.

No cell is ever cut. Where a terminal is too narrow for a table, columns are left out in the order of `Table.spare`, and
a line below says which. Where that is not enough, each line of the table becomes a paragraph that has all of its cells.
A pipe gets every column.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import TextIO

from vecadd._terminal import coloured, columns, writable
from vecadd.bench.tables.table import Column, Line, Style, Table

PIPE_WIDTH = 150  # columns of a table with prose that goes to a pipe; one that needs more of them gets more

GAP = "  "
NARROWEST = 20  # characters of a column of prose, where its prose is longer
NOTHING = ("", "-")  # cells that a paragraph leaves out

_COLOURS = {Style.HEAD: "1", Style.FAILED: "31", Style.CAUGHT: "33"}  # bold, red, yellow


class Screen:
    """Prints to a file as wide as its terminal is; by default to stdout."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file or sys.stdout
        self._width = columns(self._file)
        self._coloured = coloured(self._file)

    def show(self, tables: Iterable[Table]) -> None:
        """Prints each table below its title and above its notes."""
        for table in tables:
            self._print(table.title, Style.HEAD)
            self._print("")
            for text, style in drawn(table, self._width):
                self._print(text, style)
            self._print("")
            self.say(*table.notes)

    def say(self, *lines: str) -> None:
        """Prints lines; those that a terminal is too narrow for continue on the next one, indented."""
        for line in lines:
            for part in _wrapped(line, self._width, GAP) if self._width else [line]:
                self._print(part)

    def _print(self, text: str, style: Style = Style.PLAIN) -> None:
        colour = _COLOURS.get(style) if self._coloured and text else None
        print(writable(f"\x1b[{colour}m{text}\x1b[0m" if colour else text, self._file), file=self._file)


def drawn(table: Table, width: int | None) -> list[tuple[str, Style]]:
    """The lines of a table without its title and notes, at most so many characters wide; None: for a pipe."""
    if width is None:
        return list(_grid(table, max(PIPE_WIDTH, _needs(table))))
    shown, left_out = table, list[str]()
    for name in table.spare:
        if _needs(shown) <= width:
            break
        left_out.append(name)
        shown = table.only(*(column.name for column in table.columns if column.name not in left_out))
    if _needs(shown) > width:
        return list(_paragraphs(table, width))
    lines = list(_grid(shown, width))
    if left_out:
        said = f"left out at {width} columns: {', '.join(left_out)} ({_needs(table)} columns show all)"
        lines += [("", Style.PLAIN), *((part, Style.PLAIN) for part in _wrapped(said, width, GAP))]
    return lines


def _grid(table: Table, width: int) -> Iterator[tuple[str, Style]]:
    widths = _widths(table, width)
    head = "\n".join(_side_by_side([[column.name] for column in table.columns], table.columns, widths))
    yield head, Style.HEAD
    yield "-" * (sum(widths) + len(GAP) * (len(widths) - 1)), Style.PLAIN
    for line in _without_last_rule(table):
        if line is None:
            yield "", Style.PLAIN
        elif line.style is Style.HEAD:
            yield line.cells[0], line.style
        else:
            cells = [
                _wrapped(cell, size) if column.share else cell.split("\n")
                for cell, column, size in zip(line.cells, table.columns, widths, strict=True)
            ]
            for text in _side_by_side(cells, table.columns, widths):
                yield text, line.style


def _side_by_side(cells: Sequence[Sequence[str]], named: Sequence[Column], widths: Sequence[int]) -> Iterator[str]:
    for parts in zip_longest(*cells, fillvalue=""):
        padded = (
            part.rjust(size) if column.right else part.ljust(size)
            for part, column, size in zip(parts, named, widths, strict=True)
        )
        yield GAP.join(padded).rstrip()


def _paragraphs(table: Table, width: int) -> Iterator[tuple[str, Style]]:
    """Each line of the table as its first cell, and below it the names of the columns with their cells."""
    for line in _without_last_rule(table):
        if line is None:
            yield "", Style.PLAIN
            continue
        first = (part for text in line.cells[0].split("\n") if text for part in _wrapped(text, width, GAP))
        yield from ((part, line.style) for part in first)
        row = ""
        for column, cell in zip(table.columns[1:], line.cells[1:], strict=True):
            pair = f"{column.name}: {' '.join(cell.split())}"
            if cell in NOTHING:
                continue
            if row and len(f"{row}, {pair}") < width - len(GAP):  # < leaves room for a comma
                row += f", {pair}"
                continue
            if row:
                yield from ((f"{GAP}{part}", line.style) for part in _wrapped(f"{row},", width - len(GAP), GAP))
            row = pair
        if row:
            yield from ((f"{GAP}{part}", line.style) for part in _wrapped(row, width - len(GAP), GAP))


def _without_last_rule(table: Table) -> Sequence[Line | None]:
    return table.lines[:-1] if table.lines and table.lines[-1] is None else table.lines


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """At spaces alone: a word that is longer than the width stays whole."""
    return wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def _cells(table: Table, at: int) -> list[str]:
    """What stands in a column, its name first. The head of a group may reach into the next column."""
    lines = [line for line in table.lines if line is not None and line.style is not Style.HEAD]
    return [table.columns[at].name, *(part for line in lines for part in line.cells[at].split("\n"))]


def _natural(table: Table, at: int) -> int:
    return max(map(len, _cells(table, at)))


def _least(table: Table, at: int) -> int:
    """The fewest characters that a column needs: prose wraps, but not within a word."""
    natural = _natural(table, at)
    if not table.columns[at].share:
        return natural
    words = [word for cell in _cells(table, at) for word in cell.split()] or [""]
    return max(max(map(len, words)), min(NARROWEST, natural))


def _needs(table: Table) -> int:
    """The fewest characters that the table needs."""
    count = len(table.columns)
    return sum(_least(table, at) for at in range(count)) + len(GAP) * (count - 1)


def _widths(table: Table, width: int) -> list[int]:
    """Of each column. What the others leave is divided among those of prose by their shares."""
    widths = [_least(table, at) for at in range(len(table.columns))]
    free = width - sum(widths) - len(GAP) * (len(widths) - 1)
    shares = sum(column.share for column in table.columns)
    for at, column in enumerate(table.columns):
        if column.share:
            more = min(_natural(table, at) - widths[at], free * column.share // shares)
            widths[at] += more
            free -= more
            shares -= column.share
    return widths
