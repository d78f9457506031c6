"""The table of what tuning the host gains, for the documents and for the terminal."""

from collections.abc import Sequence

from vecadd.bench.axes import show_size
from vecadd.bench.formats import as_lines
from vecadd.bench.results import Row
from vecadd.bench.tables.table import Table, columns

WITHIN = 1.1  # an untuned addition should take at most so many times as long as a tuned one


def lines(rows: list[Row]) -> list[str]:
    """A line a form, and the cells in which an untuned addition surely takes longer than WITHIN."""
    behind = [f"{row.rung} {row.dtype} {show_size(row.n)}" for row in rows if _surely(row, "ratio_interval")]
    named = f": {', '.join(behind)}" if 0 < len(behind) <= 5 else ""
    by_chance = sum(_surely(row, "same_interval") for row in rows)
    said = (
        f"Of {len(rows)} cells the untuned addition surely takes more than {WITHIN:g} times as long as the tuned one "
        f"in {len(behind)}{named}; more than a second untuned one in {by_chance}. "
        f"{rows[0].params['generations']} generations of processes."
    )
    return [*as_lines(table(rows)), "", said]


def table(rows: Sequence[Row]) -> Table:
    """A line a form: the untuned time over the tuned one's, and over that of a second untuned process."""
    made = Table("what tuning the host gains", columns("form", "cells", "untuned / tuned", "untuned / the same again"))
    for form in dict.fromkeys(row.rung for row in rows):
        cells = [row for row in rows if row.rung == form]
        made.add(form, str(len(cells)), _range(cells, "ratio"), _range(cells, "same"))
    return made


def _range(rows: Sequence[Row], name: str) -> str:
    ratios = sorted(1 / row.params[name] for row in rows)
    return f"{ratios[len(ratios) // 2]:.3g} ({ratios[0]:.3g} to {ratios[-1]:.3g})"


def _surely(row: Row, name: str) -> bool:
    return bool(row.params[name][1] < 1 / WITHIN)
