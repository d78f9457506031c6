"""The rows of the acceptance test as a table."""

from collections.abc import Iterable
from itertools import groupby

from vecadd.check.rows import Row
from vecadd.tables import Column, Style, Table, columns, prose, show_figure

NOTHING = "-"


def table(rows: Iterable[Row], rounds: int) -> Table:
    """A line a row, by kind; with more than one round the median and the drift beside the worst."""
    measured = ("median", "worst", "drift") if rounds > 1 else ("measured",)
    verdict, source = Column("verdict", right=False), prose("expected from")
    result = Table(
        "check",
        columns("row", *measured, "expected", "bound", verdict, source),
        optional_columns=("expected from", "drift", "worst", "expected"),
    )
    for _, group in groupby(rows, key=lambda row: row.kind):
        for row in group:
            figures = [show_figure(row.value, row.unit)]
            if rounds > 1:
                figures += [
                    show_figure(row.worst, row.unit),
                    NOTHING if row.drift is None else f"{100 * row.drift:+.1f} %",
                ]
            result.add(
                row.title,
                *figures,
                show_figure(row.expected.value if row.expected else None, row.unit),
                show_figure(row.bound, row.unit),
                row.severity,
                row.expected.source if row.expected else "unknown",
                style=Style.FAILED if row.severity == "critical" else Style.PLAIN,
            )
        result.add_gap()
    return result
