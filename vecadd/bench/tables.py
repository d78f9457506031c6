"""Rows as tables for a terminal."""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from vecadd import _core
from vecadd.bench import ladder, recorded
from vecadd.bench.axes import show_size
from vecadd.bench.results import Row

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def tables(rows: Iterable[Row]) -> list[Table]:
    """One table a sweep, in the order of the rows."""
    return [
        _LAYOUTS.get(sweep, _table)(sweep, list(group)) for sweep, group in groupby(rows, key=lambda row: row.sweep)
    ]


def notes(rows: Iterable[Row]) -> list[str]:
    """What is to be said about rungs of the ladder, a line each, and what was caught of those that race."""
    rows = [row for row in rows if row.sweep == "ladder"]
    named = dict.fromkeys(row.rung for row in rows)
    lines = [f"{rung}: {recorded.NOTES[rung]}" for rung in named if rung in recorded.NOTES]
    if rows:
        lines.append(f"gain: {ladder.GAIN}; KiB/SM: {ladder.IN_FLIGHT}")
    if legend := recorded.legend(named):
        lines.append(f"the documents: {legend}")
    return lines + [f"{row.name} is caught: {row.params['caught']}" for row in rows if "caught" in row.params]


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


def _ladder(sweep: str, rows: list[Row]) -> Table:
    """What each rung changes, and what that brings over the one it comes after."""
    table = Table(
        box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title=sweep, title_justify="left", title_style="bold", expand=True
    )
    table.add_column("rung", no_wrap=True)
    for name in ("seconds", "GB/s", "% limit", "gain", "KiB/SM"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("documents", ratio=2)
    table.add_column("what changed", ratio=3)
    for (dtype, n), cell in groupby(rows, key=lambda row: (row.dtype, row.n)):
        table.add_row(f"[bold]{dtype} {show_size(n)}")
        fastest: dict[str, float] = {}
        for rung, variants in groupby(cell, key=lambda row: row.rung):
            described = [_documents(rung), _changes(rung, previous=next(reversed(fastest), None))]
            for index, row in enumerate(list(variants)):
                table.add_row(_variant(row, named=index == 0), *_gain(row, fastest), *described, style=_style(row))
                described = ["", ""]
                if row.seconds:
                    fastest[rung] = min(row.seconds, fastest.get(rung, row.seconds))
        table.add_section()
    return table


def _variant(row: Row, *, named: bool) -> str:
    """The rung, its parameters a line each; these alone where a row above names it."""
    parameters = [f"  {name} {value}" for name, value in row.params.get("parameters", {}).items()]
    return "\n".join([row.rung, *parameters] if named else parameters or [row.rung])


def _changes(rung: str, previous: str | None) -> str:
    row = _rung(rung)
    return str(row["changes"]) if row["after"] in (None, previous) else f"after {row['after']}: {row['changes']}"


def _rung(name: str) -> dict[str, Any]:
    return next(rung for rung in _core.rungs() if rung["name"] == name)


def _gain(row: Row, fastest: Mapping[str, float]) -> tuple[str, ...]:
    in_flight = f"{row.params['bytes_in_flight'] / 1024:.3g}"
    if row.seconds is None or row.gbps is None:
        return "failed", "-", "-", "-", in_flight
    before = fastest.get(_rung(row.rung)["after"])
    gain = f"{before / row.seconds:.3g} x" if before else "-"
    return show_seconds(row.seconds), f"{row.gbps:.4g}", show_fraction(row), gain, in_flight


def _documents(rung: str) -> str:
    figures = recorded.FIGURES.get(rung, {})
    return ", ".join(f"{show_seconds(seconds)} ({setting})" for setting, seconds in figures.items())


def _style(row: Row) -> str | None:
    return "red" if not row.ok else "yellow" if "caught" in row.params else None


_LAYOUTS: dict[str, Callable[[str, list[Row]], Table]] = {"ladder": _ladder}


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
