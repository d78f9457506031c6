"""HTML pages that need nothing but a browser: one file each, no script, and nothing that is loaded from elsewhere.

`page.html` is the template of all of them: sections of text, tables, strips of intervals and pictures. `page.css` has
their looks in light, dark, narrow and print; `pictures.py` makes a figure of matplotlib a part of a page. Needs Jinja2:
``pip install 'vecadd[fleet]'``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10
from typing import Any

from vecadd._command import package_version
from vecadd.tables import Style, Table

FARTHEST = 1e300  # the largest magnitude that is drawn: larger figures, and those that overflow, are drawn there
_SAME = 1e-9  # of a figure: those that differ by less are drawn as one

# What a page shows below a heading: a kind of `page.html`, and what it takes. "text", "heading", "code", "missing",
# "note" and "verdict good" or "bad" take a text; "list" texts; "table" what `table` gives; "strips" what `strips`
# gives; "picture" a name and an svg element; "folded" a summary and a part.
Part = tuple[str, Any]


@dataclass(frozen=True)
class Cell:
    """A table's cell that has more than its text: a small line below, what to do next, facts that are folded below a
    question, and a curve (`curve`)."""

    text: str
    small: str = ""
    next: str = ""
    question: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    curve: Mapping[str, str] | None = None


def render(
    title: str, subtitle: str, sections: Mapping[str, Sequence[Part]], method: Sequence[str], version: str | None = None
) -> str:
    """The page. ``sections`` are by their headings, to which the page's menu leads; the one called "" has none. All
    texts are escaped, but for the pictures. ``version`` is that of the vecadd that measured."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("vecadd", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("page.html").render(
        title=title, subtitle=subtitle, sections=sections, method=method, version=version or package_version()
    )
    return page.strip() + "\n"


def verdict(words: str, *, bad: bool) -> Part:
    """What the page comes to, in a sentence or two."""
    return f"verdict {'bad' if bad else 'good'}", words


def table(shown: Table) -> Part:
    """A table with a body for each group of lines that a line names."""
    bodies: list[dict[str, Any]] = []
    for line in filter(None, shown.lines):
        if line.style is Style.HEAD or not bodies:
            bodies.append({"head": line.cells[0] if line.style is Style.HEAD else "", "lines": []})
        if line.style is not Style.HEAD:
            first, *others = (", ".join(part.strip() for part in cell.split("\n")) for cell in line.cells)
            bodies[-1]["lines"].append(("", [first or "-", *others]))
    return "table", {
        "caption": shown.title,
        "columns": [(column.name, "right" if column.right else "left") for column in shown.columns],
        "bodies": bodies,
        "notes": shown.notes,
    }


def table_of_cells(
    caption: str, columns: Sequence[tuple[str, str]], lines: Sequence[tuple[str, Sequence[str | Cell]]]
) -> Part:
    """A table whose cells may have more than a text. ``columns`` are names and looks ("left", "right", "prose"),
    ``lines`` identifiers and cells."""
    return "table", {
        "caption": caption,
        "columns": columns,
        "bodies": [{"head": "", "lines": lines}],
        "notes": [],
    }


def curve(points: Sequence[tuple[float, float]], unit: str) -> Mapping[str, str]:
    """A small curve for a cell, over seconds from 0: points of (seconds, value)."""
    end, most = points[-1][0] or 1, max(value for _, value in points) or 1
    return {
        "text": f"The rate over {end:.0f} seconds, from {points[0][1]:.4g} to {points[-1][1]:.4g} {unit}",
        "points": " ".join(f"{300 * at / end:.1f},{62 - 60 * value / most:.1f}" for at, value in points),
    }


def strips(
    rows: Sequence[tuple[str, float, float, float, Sequence[float], str]], caption: str, unit: str, level: float
) -> Part:
    """Intervals, a line each: its label, low, middle, high, single marks, and a class for its colour.

    Lengths are in percent of the axis. ``level`` is where a line is drawn through all of them.
    """
    ends = [level, *(end for _, low, middle, high, marks, _ in rows for end in (low, middle, high, *marks))]
    ticks = _ticks(_near(min(ends)), _near(max(ends)))
    first, last = ticks[0], ticks[-1]

    def place(value: float) -> float:
        return round(100 * (_near(value) - first) / (last - first), 2)

    return "strips", {
        "caption": caption,
        "unit": unit,
        "ticks": [(place(tick), f"{tick:g}") for tick in ticks],
        "level": place(level),
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
