"""Tables as data, and as text for a terminal, a pipe, Markdown and a notebook; numbers as text.

A terminal gets a table that is as wide as it is: columns are left out in the order of `Table.optional_columns`, and a
line below says which. Where that is not enough, each line of the table becomes a paragraph that has all of its cells.
No cell is ever cut. A pipe gets every column.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from itertools import zip_longest
from textwrap import wrap
from typing import TextIO

from vecadd._command import coloured, terminal_columns, writable

# Numbers as text

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))

# Units of time in result files, in seconds.
SECONDS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PREFIXES = {"generation": "PCIe ", "lanes": "x"}  # units that are written before the figure
_LONG = 1e5  # from here on with commas


def show_seconds(seconds: float) -> str:
    """Three significant digits and the unit: "735 us"."""
    scale, unit = next(((s, u) for s, u in _UNITS if seconds >= s), _UNITS[-1])
    return f"{seconds / scale:.3g} {unit}" if seconds / scale < 999.5 else f"{seconds / scale:.0f} {unit}"


def show_rate(gbps: float) -> str:
    """GB/s with three significant digits and no exponent: "4462", "38.6"."""
    return f"{gbps:.0f}" if gbps >= 100 else f"{gbps:.3g}"


def show_gain(gain: float) -> str:
    """How many times as fast: "1.26 x"."""
    return f"{gain:.0f} x" if gain >= 100 else f"{gain:.3g} x"


def show_size(n: int) -> str:
    """Powers of two from 2^10 on as such, other sizes in digits."""
    return f"2^{n.bit_length() - 1}" if n >= 1024 and n & (n - 1) == 0 else str(n)


def show_bytes(count: float | None) -> str:
    """Bytes in the largest binary unit that gives at least 1: "10 KiB"; "unknown" for None."""
    if count is None:
        return "unknown"
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.4g} {unit}"


def show_figure(value: float | None, unit: str) -> str:
    """A figure in any unit of a result file: "735 us", "38.6 GB/s", "PCIe 5", "65,536,000 bytes"; "-" for None."""
    if value is None:
        return "-"
    if unit in SECONDS:
        return show_seconds(value * SECONDS[unit]) if value > 0 else f"{value:g} {unit}"
    if unit in _PREFIXES:
        return f"{_PREFIXES[unit]}{value:.0f}"
    if unit == "GB/s":
        return f"{show_rate(value)} {unit}"
    shown = f"{value:.4g}" if abs(value) < _LONG else f"{value:,.0f}"
    return shown if unit in ("", "1") else f"{shown} {unit}"


def show_bounds(low: float | None, high: float | None, unit: str) -> str:
    """What a figure should be: "at least 45 GB/s"; None for an end that is open, "-" where both are."""
    ends = [
        f"{words} {show_figure(end, unit)}" for words, end in (("at least", low), ("at most", high)) if end is not None
    ]
    return ", ".join(ends) or "-"


# Names and their values

Pair = tuple[str, Sequence[str]]  # a name, and its values, one a line


class ShownAsPairs(ABC):
    """What prints as its ``_rows``, names beside their values, and is a table in a notebook."""

    @abstractmethod
    def _rows(self) -> Sequence[Pair]:
        """The names in their order."""

    def __str__(self) -> str:
        """One line a value, the names in a column."""
        pairs = self._rows()
        width = max(len(name) for name, _ in pairs)
        lines = []
        for name, values in pairs:
            heads = [name] + [""] * (len(values) - 1)
            lines += [f"{head:<{width}}  {value}" for head, value in zip(heads, values, strict=True)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table for a notebook; its text is escaped."""
        cells = "".join(
            f"<tr><th style='text-align:left;vertical-align:top'>{escape(name)}</th>"
            f"<td style='text-align:left'>{'<br>'.join(map(escape, values))}</td></tr>"
            for name, values in self._rows()
        )
        return f"<table>{cells}</table>"


# Tables


class Style(Enum):
    """What kind of line this is."""

    PLAIN = ""
    HEAD = "head"  # names the lines below it
    FAILED = "failed"
    EXPECTED_FAILURE = "expected failure"  # wrong on purpose, and found to be


@dataclass(frozen=True)
class Column:
    """``right`` aligns figures to the right; a column with a ``wrap_weight`` is prose that may wrap, in that share of
    the free width."""

    name: str
    right: bool = True
    wrap_weight: int = 0


@dataclass(frozen=True)
class Line:
    """A cell a column."""

    cells: tuple[str, ...]
    style: Style = Style.PLAIN


@dataclass
class Table:
    """``lines`` has None where a gap separates two groups; ``notes`` are sentences below the table;
    ``optional_columns`` are left out on a narrow terminal, the first to go first."""

    title: str
    columns: tuple[Column, ...]
    lines: list[Line | None] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    optional_columns: tuple[str, ...] = ()

    def add(self, *cells: str, style: Style = Style.PLAIN) -> None:
        """Adds a line; cells that are not given are empty."""
        self.lines.append(Line((*cells, *[""] * (len(self.columns) - len(cells))), style))

    def add_gap(self) -> None:
        """Leaves a gap below the lines so far; none below another gap or in an empty table."""
        if self.lines and self.lines[-1] is not None:
            self.lines.append(None)

    def only(self, *names: str) -> "Table":
        """This table with only these columns, in their order, and without the notes."""
        kept = [at for at, column in enumerate(self.columns) if column.name in names]
        lines = [line and Line(tuple(line.cells[at] for at in kept), line.style) for line in self.lines]
        return Table(self.title, tuple(self.columns[at] for at in kept), lines)

    def __str__(self) -> str:
        return "\n".join([self.title, "", *(text for text, _ in table_as_text(self, None)), *self.notes])

    def _repr_html_(self) -> str:
        """For a notebook; the text of cells is escaped."""
        lines = [[column.name for column in self.columns], *(line.cells for line in self.lines if line)]
        tags = ["th", *["td"] * len(self.lines)]
        rows = (
            "".join(f"<{tag} style='text-align:left'>{escape(cell)}</{tag}>" for cell in cells)
            for tag, cells in zip(tags, lines, strict=False)
        )
        body = "".join(f"<tr>{cells}</tr>" for cells in rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(self.title)}</p><table>{body}</table>{notes}"


def prose(name: str, weight: int = 1) -> Column:
    """A column of sentences, which wrap where the table is too wide."""
    return Column(name, right=False, wrap_weight=weight)


def columns(*names: str | Column) -> tuple[Column, ...]:
    """Columns of figures, but for the first, which has names; one that is aligned otherwise is given as a Column."""
    return tuple(
        name if isinstance(name, Column) else Column(name, right=index > 0) for index, name in enumerate(names)
    )


# Markdown


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]], right: Sequence[bool] | None = None) -> list[str]:
    """A Markdown table, a string a line; the first column is aligned to the left, the others as ``right`` says. A bar
    within a cell is escaped, or it would split the cell."""
    right = right or [index > 0 for index in range(len(head))]
    rule = ["---:" if side else "---" for side in right]
    escaped = ([cell.replace("|", "\\|") for cell in cells] for cells in (head, rule, *lines))
    return [f"| {' | '.join(cells)} |" for cells in escaped]


def table_as_markdown(table: Table) -> list[str]:
    """The table without its title and notes, a string a line."""
    lines = [_markdown_cells(line) for line in table.lines if line is not None]
    return markdown([column.name for column in table.columns], lines, [column.right for column in table.columns])


def _markdown_cells(line: Line) -> list[str]:
    cells = [cell.replace("\n", ",") for cell in line.cells]
    if cells[0].startswith(" "):  # parameters of the rung that a line above names
        cells[0] = f"… {cells[0]}"
    if line.style is Style.HEAD:
        cells[0] = f"**{cells[0]}**"
    return [" ".join(cell.split()) for cell in cells]


# Terminals and pipes

PIPE_WIDTH = 150  # columns of a table with prose that goes to a pipe; one that needs more of them gets more

_GAP = "  "
_NARROWEST = 20  # characters of a column of prose, where its prose is longer
_NOTHING = ("", "-")  # cells that a paragraph leaves out

_COLOURS = {Style.HEAD: "1", Style.FAILED: "31", Style.EXPECTED_FAILURE: "33"}  # bold, red, yellow


class Screen:
    """Prints to a file as wide as its terminal is; by default to stdout."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file or sys.stdout
        self._width = terminal_columns(self._file)
        self._coloured = coloured(self._file)

    def show(self, tables: Iterable[Table]) -> None:
        """Prints each table below its title and above its notes."""
        for table in tables:
            self._print(table.title, Style.HEAD)
            self._print("")
            for text, style in table_as_text(table, self._width):
                self._print(text, style)
            self._print("")
            self.say(*table.notes)

    def say(self, *lines: str) -> None:
        """Prints lines; those that a terminal is too narrow for continue on the next one, indented."""
        for line in lines:
            for part in _wrapped(line, self._width, _GAP) if self._width else [line]:
                self._print(part)

    def _print(self, text: str, style: Style = Style.PLAIN) -> None:
        colour = _COLOURS.get(style) if self._coloured and text else None
        print(writable(f"\x1b[{colour}m{text}\x1b[0m" if colour else text, self._file), file=self._file)


def table_as_text(table: Table, width: int | None) -> list[tuple[str, Style]]:
    """The lines of a table without its title and notes, at most ``width`` characters wide; None: for a pipe."""
    if width is None:
        return list(_grid(table, max(PIPE_WIDTH, _least_width(table))))
    shown, left_out = table, list[str]()
    for name in table.optional_columns:
        if _least_width(shown) <= width:
            break
        left_out.append(name)
        shown = table.only(*(column.name for column in table.columns if column.name not in left_out))
    if _least_width(shown) > width:
        return list(_paragraphs(table, width))
    lines = list(_grid(shown, width))
    if left_out:
        said = f"left out at {width} columns: {', '.join(left_out)} ({_least_width(table)} columns show all)"
        lines += [("", Style.PLAIN), *((part, Style.PLAIN) for part in _wrapped(said, width, _GAP))]
    return lines


def _grid(table: Table, width: int) -> Iterator[tuple[str, Style]]:
    widths = _widths(table, width)
    head = "\n".join(_side_by_side([[column.name] for column in table.columns], table.columns, widths))
    yield head, Style.HEAD
    yield "-" * (sum(widths) + len(_GAP) * (len(widths) - 1)), Style.PLAIN
    for line in _without_last_gap(table):
        if line is None:
            yield "", Style.PLAIN
        elif line.style is Style.HEAD:
            yield line.cells[0], line.style
        else:
            cells = [
                _wrapped(cell, size) if column.wrap_weight else cell.split("\n")
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
        yield _GAP.join(padded).rstrip()


def _paragraphs(table: Table, width: int) -> Iterator[tuple[str, Style]]:
    """Each line of the table as its first cell, and below it the names of the columns with their cells."""
    for line in _without_last_gap(table):
        if line is None:
            yield "", Style.PLAIN
            continue
        first = (part for text in line.cells[0].split("\n") if text for part in _wrapped(text, width, _GAP))
        yield from ((part, line.style) for part in first)
        row = ""
        for column, cell in zip(table.columns[1:], line.cells[1:], strict=True):
            pair = f"{column.name}: {' '.join(cell.split())}"
            if cell in _NOTHING:
                continue
            if row and len(f"{row}, {pair}") < width - len(_GAP):  # < leaves room for a comma
                row += f", {pair}"
                continue
            if row:
                yield from ((f"{_GAP}{part}", line.style) for part in _wrapped(f"{row},", width - len(_GAP), _GAP))
            row = pair
        if row:
            yield from ((f"{_GAP}{part}", line.style) for part in _wrapped(row, width - len(_GAP), _GAP))


def _without_last_gap(table: Table) -> Sequence[Line | None]:
    return table.lines[:-1] if table.lines and table.lines[-1] is None else table.lines


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """At spaces alone: a word that is longer than the width stays whole."""
    return wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def _cells(table: Table, at: int) -> list[str]:
    """The cells of a column, its name first. The head of a group may reach into the next column."""
    lines = [line for line in table.lines if line is not None and line.style is not Style.HEAD]
    return [table.columns[at].name, *(part for line in lines for part in line.cells[at].split("\n"))]


def _natural(table: Table, at: int) -> int:
    return max(map(len, _cells(table, at)))


def _least(table: Table, at: int) -> int:
    """The fewest characters that a column needs: prose wraps, but not within a word."""
    natural = _natural(table, at)
    if not table.columns[at].wrap_weight:
        return natural
    words = [word for cell in _cells(table, at) for word in cell.split()] or [""]
    return max(max(map(len, words)), min(_NARROWEST, natural))


def _least_width(table: Table) -> int:
    """The fewest characters that the table needs."""
    count = len(table.columns)
    return sum(_least(table, at) for at in range(count)) + len(_GAP) * (count - 1)


def _widths(table: Table, width: int) -> list[int]:
    """Of each column. What the others leave is divided among those of prose by their weights."""
    widths = [_least(table, at) for at in range(len(table.columns))]
    free = width - sum(widths) - len(_GAP) * (len(widths) - 1)
    weights = sum(column.wrap_weight for column in table.columns)
    for at, column in enumerate(table.columns):
        if column.wrap_weight:
            more = min(_natural(table, at) - widths[at], free * column.wrap_weight // weights)
            widths[at] += more
            free -= more
            weights -= column.wrap_weight
    return widths
