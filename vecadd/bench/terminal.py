"""Tables on a terminal. Needs rich, an extra."""

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Drawn

from vecadd.bench.tables.table import Style, Table

_STYLES = {Style.PLAIN: None, Style.HEAD: "bold", Style.FAILED: "red", Style.CAUGHT: "yellow"}


def show(tables: Iterable[Table], console: Console) -> None:
    """Prints the tables as wide as the terminal allows."""
    for table in tables:
        console.print(_drawn(table))
        for note in table.notes:
            console.print(note, markup=False, highlight=False, soft_wrap=True)


def _drawn(table: Table) -> Drawn:
    # A single space between columns: the widest table has to fit into a pipe's width with two columns of prose.
    drawn = Drawn(
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title=table.title,
        title_justify="left",
        title_style="bold",
        expand=any(column.share for column in table.columns),
    )
    for column in table.columns:
        drawn.add_column(
            column.name,
            justify="right" if column.right else "left",
            no_wrap=not column.share,
            ratio=column.share or None,
        )
    for line in table.lines:
        if line is None:
            drawn.add_section()
        else:
            drawn.add_row(*map(escape, line.cells), style=_STYLES[line.style])
    return drawn
