"""Cells that several of the READMEs' tables share, and tables of rows by two of their properties."""

from collections.abc import Callable, Iterable, Sequence

from vecadd.figures import Figure
from vecadd.tables import markdown, show_rate, show_seconds

Cell = Callable[[Figure | None], str]  # "-" for None, a row that was not measured


def seconds(row: Figure | None) -> str:
    return "-" if row is None or row.seconds is None else show_seconds(row.seconds)


def rate(row: Figure | None) -> str:
    """GB/s, with the percentage of the limit where there is one."""
    if row is None or row.gbps is None:
        return "-"
    return show_rate(row.gbps) if row.fraction is None else f"{show_rate(row.gbps)} ({100 * row.fraction:.0f} %)"


def by_two(
    rows: Iterable[Figure],
    line: Callable[[Figure], str],
    column: Callable[[Figure], str],
    cell: Cell,
    *,
    corner: str = "",
    columns: Sequence[str] | None = None,
    more: Sequence[tuple[str, Callable[[str], str]]] = (),
) -> list[str]:
    """A line for each value of ``line``, a column for each of ``column``, or for those of ``columns``.

    ``more`` are further columns: a head, and the function that gives the cell of the line of that name.
    """
    cells = {(line(row), column(row)): row for row in rows}
    names = list(dict.fromkeys(name for _, name in cells)) if columns is None else columns
    lines = [
        [each, *(cell(cells.get((each, name))) for name in names), *(own(each) for _, own in more)]
        for each in dict.fromkeys(each for each, _ in cells)
    ]
    return markdown([corner, *names, *(head for head, _ in more)], lines)
