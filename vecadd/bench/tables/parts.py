"""Cells and notes that several layouts share."""

from collections.abc import Iterable
from typing import Any

from vecadd import _core
from vecadd.bench import recorded
from vecadd.figures import Figure
from vecadd.tables import Style, show_rate, show_seconds


def rung_named(name: str) -> dict[str, Any] | None:
    """The rung's row; None for numpy and add, which are not rungs."""
    return next((rung for rung in _core.rungs() if rung["name"] == name), None)


def seconds(row: Figure) -> str:
    """The median, "failed", or "-" where nothing was timed."""
    return show_seconds(row.seconds) if row.seconds is not None else "failed" if row.error else "-"


def rate(row: Figure) -> str:
    """GB/s; "-" where there is none."""
    return "-" if row.gbps is None else show_rate(row.gbps)


def fraction(row: Figure) -> str:
    """Percent of the limit, marked above 100, where the method must be wrong."""
    if row.fraction is None:
        return "-"
    return f"{100 * row.fraction:.1f}" + (" !" if row.is_impossible else "")


def percent(share: float | None) -> str:
    """A share of 1 in whole percent."""
    return "-" if share is None else f"{100 * share:.0f}"


def param(row: Figure, name: str) -> str:
    """A parameter of the row's; "-" where it has none."""
    value = row.params.get(name)
    return "-" if value is None else str(value)


def style(row: Figure) -> Style:
    """What stands out: a row that failed, and a race that was caught."""
    if not row.ok:
        return Style.FAILED
    return Style.EXPECTED_FAILURE if "caught" in row.params else Style.PLAIN


def variant(row: Figure, *, named: bool = True) -> str:
    """The rung and its parameters, a line each; only the parameters where a line above names the rung."""
    parameters = [f"  {name} {value}" for name, value in row.params.get("parameters", {}).items()]
    return "\n".join([row.name, *parameters] if named else parameters or [row.name])


def changes(rung: str, previous: str | None) -> str:
    """What the rung changes, and over which rung where that is not the one above it in the table."""
    row = rung_named(rung)
    if row is None:
        return ""
    return str(row["changes"]) if row["after"] in (None, previous) else f"after {row['after']}: {row['changes']}"


def documents(figures: Iterable[recorded.Figure]) -> str:
    """The figures, in the order given."""
    return ", ".join(map(str, figures))


def told(rung: str, previous: str | None) -> tuple[str, str]:
    """The last two cells of a rung's first line: the documents' figures, and what the rung changes."""
    return documents(recorded.figures(rung)), changes(rung, previous)


def document_notes(rows: Iterable[Figure], figures: Iterable[recorded.Figure] | None = None) -> list[str]:
    """Notes on these rows' rungs, and what the figures were measured on: by default the figures of `told`."""
    rungs = dict.fromkeys(row.name for row in rows)
    if figures is None:
        figures = [figure for rung in rungs for figure in recorded.figures(rung)]
    notes = [f"{rung}: {recorded.NOTES[rung]}" for rung in rungs if rung in recorded.NOTES]
    legend = recorded.legend(figure.setting for figure in figures)
    return [*notes, f"the documents: {legend}"] if legend else notes


def caught(rows: Iterable[Figure]) -> list[str]:
    """What the check found in rungs that are wrong on purpose."""
    return [f"{row.title} is caught: {row.params['caught']}" for row in rows if "caught" in row.params]
