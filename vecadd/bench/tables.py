"""Rows as tables for a terminal."""

from collections.abc import Iterable
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.table import Table

from vecadd.bench.axes import show_size
from vecadd.bench.results import Row

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def tables(rows: Iterable[Row]) -> list[Table]:
    """One table a sweep, in the order of the rows."""
    return [_table(sweep, list(group)) for sweep, group in groupby(rows, key=lambda row: row.sweep)]


def show_seconds(seconds: float) -> str:
    """Three significant digits and the unit: "735 us"."""
    scale, unit = next(((s, u) for s, u in _UNITS if seconds >= s), _UNITS[-1])
    return f"{seconds / scale:.3g} {unit}" if seconds / scale < 999.5 else f"{seconds / scale:.0f} {unit}"


def show_fraction(row: Row) -> str:
    if row.fraction is None:
        return "-"
    return f"{100 * row.fraction:.1f}" + (" !" if row.impossible else "")


def _table(sweep: str, rows: list[Row]) -> Table:
    table = Table(box=SIMPLE_HEAD, title=sweep, title_justify="left", title_style="bold")
    table.add_column("rung", no_wrap=True)
    table.add_column("dtype", no_wrap=True)
    for name in ("n", "seconds", "spread", "GB/s", "% of limit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("checked", no_wrap=True)
    for (_, n), group in groupby(rows, key=lambda row: (row.dtype, row.n)):
        for row in group:
            table.add_row(row.label, row.dtype, show_size(n), *_figures(row), style=None if row.ok else "red")
        table.add_section()
    return table


def _figures(row: Row) -> tuple[str, ...]:
    if row.seconds is None or row.spread is None or row.gbps is None:
        return "-", "-", "-", "-", "failed"
    low, high = row.spread
    return (
        show_seconds(row.seconds),
        f"{100 * (low / row.seconds - 1):+.1f} .. {100 * (high / row.seconds - 1):+.1f} %",
        f"{row.gbps:.4g}",
        show_fraction(row),
        "yes",
    )
