"""Seconds, spread and rate of each row."""

from itertools import groupby

from vecadd.bench.tables import parts
from vecadd.figures import Figure
from vecadd.tables import Column, Table, columns, show_seconds, show_size

_COLUMNS = columns(
    "rung", Column("dtype", right=False), "n", "seconds", "spread", "GB/s", "% of limit", Column("checked", right=False)
)


def tables(sweep: str, rows: list[Figure]) -> list[Table]:
    """The sweeps that have no layout of their own."""
    table = Table(sweep, _COLUMNS, optional_columns=("spread", "checked"))
    for _, group in groupby(rows, key=lambda row: (row.dtype, row.n)):
        for row in group:
            table.add(row.label, row.dtype, show_size(row.n), *_figures(row), style=parts.style(row))
        table.add_gap()
    return [table]


def _figures(row: Figure) -> tuple[str, ...]:
    if row.seconds is None or row.spread is None:
        return "-", "-", "-", "-", "failed"
    low, high = row.spread
    return (
        show_seconds(row.seconds),
        f"{100 * (low / row.seconds - 1):+.1f} .. {100 * (high / row.seconds - 1):+.1f} %",
        parts.rate(row),
        parts.fraction(row),
        "yes" if row.checked else "caught",
    )
