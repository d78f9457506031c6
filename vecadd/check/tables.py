"""The rows of the acceptance test as a table for a terminal."""

from collections.abc import Iterable
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.table import Table

from vecadd.bench.show import show_seconds
from vecadd.check.rows import Row

NOTHING = "-"


def table(rows: Iterable[Row], rounds: int) -> Table:
    """A line a row, by kind; with more than one round the median and the drift beside the worst."""
    result = Table(box=SIMPLE_HEAD, title="check", title_justify="left", title_style="bold")
    result.add_column("row", no_wrap=True)
    for name in ("worst", "median", "drift") if rounds > 1 else ("measured",):
        result.add_column(name, justify="right", no_wrap=True)
    for name in ("expected", "bound"):
        result.add_column(name, justify="right", no_wrap=True)
    result.add_column("verdict", no_wrap=True)
    result.add_column("expected from")
    for _, group in groupby(rows, key=lambda row: row.kind):
        for row in group:
            measured = [_show(row, row.value)]
            if rounds > 1:
                measured += [_show(row, row.middle), NOTHING if row.drift is None else f"{100 * row.drift:+.1f} %"]
            result.add_row(
                row.title,
                *measured,
                _show(row, row.expected.value if row.expected else None),
                _show(row, row.bound),
                {True: "pass", False: "FAIL", None: NOTHING}[row.passed],
                row.expected.source if row.expected else "nobody says",
                style="red" if row.passed is False else None,
            )
        result.add_section()
    return result


def _show(row: Row, value: float | None) -> str:
    if value is None:
        return NOTHING
    if row.unit == "s":
        return show_seconds(value)
    if row.unit == "GB/s":
        return f"{value:.4g} GB/s"
    return f"x{value:.0f}" if row.unit == "lanes" else f"PCIe {value:.0f}"
