"""A table as data: for a terminal, for Markdown, for a test."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum


class Style(Enum):
    """What kind of line this is."""

    PLAIN = ""
    HEAD = "head"  # names the lines below it
    FAILED = "failed"
    CAUGHT = "caught"  # wrong on purpose, and found to be


@dataclass(frozen=True)
class Column:
    """``right`` aligns figures to the right; a column with a ``share`` is prose that may wrap, in that share of the
    free width."""

    name: str
    right: bool = True
    share: int = 0


@dataclass(frozen=True)
class Line:
    """A cell a column."""

    cells: tuple[str, ...]
    style: Style = Style.PLAIN


@dataclass
class Table:
    """``lines`` has None where a gap separates two groups; ``notes`` are sentences below the table; ``spare`` names the
    columns that a narrow terminal does without, the first to go first."""

    title: str
    columns: tuple[Column, ...]
    lines: list[Line | None] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    spare: tuple[str, ...] = ()

    def add(self, *cells: str, style: Style = Style.PLAIN) -> None:
        """A line; cells that are not given are empty."""
        self.lines.append(Line((*cells, *[""] * (len(self.columns) - len(cells))), style))

    def only(self, *names: str) -> "Table":
        """This table with only these columns, in their order, and without the notes."""
        kept = [at for at, column in enumerate(self.columns) if column.name in names]
        lines = [line and Line(tuple(line.cells[at] for at in kept), line.style) for line in self.lines]
        return Table(self.title, tuple(self.columns[at] for at in kept), lines)

    def rule(self) -> None:
        """Leaves a gap below the lines so far; none below another gap or in an empty table."""
        if self.lines and self.lines[-1] is not None:
            self.lines.append(None)


def columns(*names: str | Column) -> tuple[Column, ...]:
    """The first column holds names, the others figures, unless they say otherwise."""
    return tuple(
        name if isinstance(name, Column) else Column(name, right=index > 0) for index, name in enumerate(names)
    )


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]], right: Sequence[bool] | None = None) -> list[str]:
    """A Markdown table, a string a line; the first column stands on the left, the others as ``right`` says. A bar
    within a cell is escaped, or it would split the cell."""
    right = right or [index > 0 for index in range(len(head))]
    rule = ["---:" if side else "---" for side in right]
    escaped = ([cell.replace("|", "\\|") for cell in cells] for cells in (head, rule, *lines))
    return [f"| {' | '.join(cells)} |" for cells in escaped]
