"""What the tables of several sweeps share: cells, groups, notes, the gain over an earlier rung, and the plain table."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from vecadd.bench import recorded
from vecadd.bench.contestants import find_rung
from vecadd.figures import Figure
from vecadd.model.theory import with_defaults
from vecadd.tables import Column, Style, Table, columns, show_rate, show_seconds, show_size

GAIN = "gain: over the rung that it comes after, at the same parameters where it has them, else at its fastest"
OCCUPANCY = "occ. %: threads that a multiprocessor holds at once, of the most it can; in theory, from its resources"

# Cells


def seconds_cell(figure: Figure) -> str:
    """The median, "failed", or "-" where nothing was timed."""
    return show_seconds(figure.seconds) if figure.seconds is not None else "failed" if figure.error else "-"


def rate_cell(figure: Figure) -> str:
    """GB/s; "-" where there is none."""
    return "-" if figure.gbps is None else show_rate(figure.gbps)


def limit_cell(figure: Figure) -> str:
    """Percent of the limit, marked above 100, where the method must be wrong."""
    if figure.fraction is None:
        return "-"
    return f"{100 * figure.fraction:.1f}" + (" !" if figure.is_impossible else "")


def measured_cells(figure: Figure) -> tuple[str, str, str]:
    """The median, GB/s and the percentage of the limit."""
    return seconds_cell(figure), rate_cell(figure), limit_cell(figure)


def percent_cell(share: float | None) -> str:
    """A share of 1 in whole percent."""
    return "-" if share is None else f"{100 * share:.0f}"


def param_cell(figure: Figure, name: str) -> str:
    """A parameter of the figure's; "-" where it has none."""
    value = figure.params.get(name)
    return "-" if value is None else str(value)


def choose_style(figure: Figure) -> Style:
    """What is marked: a figure that failed, and a race that was caught."""
    if not figure.ok:
        return Style.FAILED
    return Style.EXPECTED_FAILURE if "caught" in figure.params else Style.PLAIN


def each_cell(
    table: Table, figures: Iterable[Figure], show: Callable[[Figure], str] = lambda figure: show_size(figure.n)
) -> Iterator[list[Figure]]:
    """The figures of each dtype and size, or of what else ``show`` names, to be added to the table: below a line that
    names both, and above a gap."""
    for head, cell in groupby(figures, key=lambda figure: f"{figure.dtype} {show(figure)}"):
        table.add(head, style=Style.HEAD)
        yield list(cell)
        table.add_gap()


# Rungs


def gain_over(figure: Figure, before: Mapping[str, Sequence[Figure]]) -> float | None:
    """How many times as fast it is as the rung that it comes after, whose figures are in ``before``: the fastest of
    those that share most of its parameters' values."""
    rung = find_rung(figure.name)
    others = before.get(rung["after"], ()) if rung else ()
    if not others or not figure.seconds:
        return None
    mine = _all_parameters(figure)
    best = min(others, key=lambda other: (-len(mine & _all_parameters(other)), other.seconds or 0.0))
    return (best.seconds or 0.0) / figure.seconds


def _all_parameters(figure: Figure) -> set[tuple[str, int]]:
    """All parameters of a figure's rung with their values."""
    return set(with_defaults(rung_of(figure), figure.params.get("parameters", {})).items())


def rung_of(figure: Figure) -> Mapping[str, Any]:
    """The figure's rung; without parameters where there is none of that name."""
    return {"params": {}, **(find_rung(figure.name) or {})}


# Documents


def document_times(figures: Iterable[recorded.Figure]) -> str:
    """The documents' figures, in the order given."""
    return ", ".join(map(str, figures))


def document_cells(rung: str, previous: str | None) -> tuple[str, str]:
    """The last two cells of a rung's first line: the documents' figures; and what the rung changes, and over which rung
    where that is not the one above it in the table."""
    row, changes = find_rung(rung), ""
    if row is not None:
        changes = str(row["changes"]) if row["after"] in (None, previous) else f"after {row['after']}: {row['changes']}"
    return document_times(recorded.figures(rung)), changes


def document_notes(figures: Iterable[Figure], times: Iterable[recorded.Figure] | None = None) -> list[str]:
    """Notes on these figures' rungs, and what the documents' figures were measured on: by default all of the rungs'."""
    rungs = dict.fromkeys(figure.name for figure in figures)
    if times is None:
        times = [time for rung in rungs for time in recorded.figures(rung)]
    notes = [f"{rung}: {recorded.NOTES[rung]}" for rung in rungs if rung in recorded.NOTES]
    legend = recorded.legend(time.setting for time in times)
    return [*notes, f"the documents: {legend}"] if legend else notes


# The plain table

_PLAIN = columns(
    "rung", Column("dtype", right=False), "n", "seconds", "spread", "GB/s", "% of limit", Column("checked", right=False)
)


def plain_tables(figures: Sequence[Figure]) -> list[Table]:
    """Seconds, spread and rate of each figure of a sweep."""
    table = Table(figures[0].sweep, _PLAIN, optional_columns=("spread", "checked"))
    for _, cell in groupby(figures, key=lambda figure: (figure.dtype, figure.n)):
        for figure in cell:
            cells = _plain_cells(figure)
            table.add(figure.label, figure.dtype, show_size(figure.n), *cells, style=choose_style(figure))
        table.add_gap()
    return [table]


def _plain_cells(figure: Figure) -> tuple[str, ...]:
    if figure.seconds is None or figure.spread is None:
        return "-", "-", "-", "-", "failed"
    low, high = figure.spread
    return (
        show_seconds(figure.seconds),
        f"{100 * (low / figure.seconds - 1):+.1f} .. {100 * (high / figure.seconds - 1):+.1f} %",
        rate_cell(figure),
        limit_cell(figure),
        "yes" if figure.checked else "caught",
    )
