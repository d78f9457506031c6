"""HTML pages that need nothing but a browser: one file each, no script, and nothing that is loaded from elsewhere.

`base.html` has the frame of all, `page.css` its looks in light, dark, narrow and print, `parts.html` the tables and the
pictures that the pages share. Needs Jinja2: ``pip install 'vecadd[fleet]'``.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from vecadd._extras import need_for
from vecadd.bench.tables.table import Style, Table

FARTHEST = 1e300  # the largest magnitude that is drawn: larger figures, and those that overflow, are drawn there
_SAME = 1e-9  # of a figure: those that differ by less are drawn as one

_EXTRAS = {"jinja2": "fleet", "matplotlib": "plot"}


def require(*packages: str) -> None:
    """Raises UnaskableError, which names the extras to install, where one of these packages is missing."""
    need_for("a page", {package: _EXTRAS[package] for package in packages})


def render(
    template: str, context: Mapping[str, Any], filters: Mapping[str, Callable[[Mapping[str, Any]], str]] | None = None
) -> str:
    """The page of that template, with filters of its own. What stands in the context is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("vecadd", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters or {}
    return environment.get_template(template).render(context)


def table(shown: Table) -> dict[str, Any]:
    """A table as `parts.html` shows it: a body for each group of lines that a line names."""
    bodies: list[dict[str, Any]] = []
    for line in filter(None, shown.lines):
        if line.style is Style.HEAD or not bodies:
            bodies.append({"head": line.cells[0] if line.style is Style.HEAD else "", "lines": []})
        if line.style is not Style.HEAD:
            first, *others = (", ".join(part.strip() for part in cell.split("\n")) for cell in line.cells)
            bodies[-1]["lines"].append([first or "-", *others])
    return {
        "caption": shown.title,
        "columns": [(column.name, "right" if column.right else "left") for column in shown.columns],
        "bodies": bodies,
        "notes": shown.notes,
    }


def strips(
    rows: Sequence[tuple[str, float, float, float, Sequence[float], str]], unit: str, level: float | None = None
) -> dict[str, Any]:
    """A picture of intervals, a line each: its label, low, middle, high, single marks, and a class for its colour.

    Lengths are in percent of the axis. ``level`` is where a line is drawn through all of them.
    """
    ends = [end for _, low, middle, high, marks, _ in rows for end in (low, middle, high, *marks)]
    ends += [] if level is None else [level]
    ticks = _ticks(_near(min(ends)), _near(max(ends)))
    first, last = ticks[0], ticks[-1]

    def place(value: float) -> float:
        return round(100 * (_near(value) - first) / (last - first), 2)

    return {
        "unit": unit,
        "ticks": [(place(tick), f"{tick:g}") for tick in ticks],
        "level": None if level is None else place(level),
        "rows": [
            {
                "label": label,
                "low": place(low),
                "middle": place(middle),
                "high": place(high),
                "marks": [place(mark) for mark in marks],
                "kind": kind,
            }
            for label, low, middle, high, marks, kind in rows
        ],
    }


def _near(value: float) -> float:
    return min(FARTHEST, max(-FARTHEST, value))


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers around both, four to ten of them."""
    span = high - low
    if span <= _SAME * abs(high):  # ticks so near would all be one number
        span = abs(high) or 1.0
    step = 10.0 ** floor(log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 8)
    return [round(step * at, 12) for at in range(floor(low / step), max(ceil(high / step), floor(low / step) + 1) + 1)]
