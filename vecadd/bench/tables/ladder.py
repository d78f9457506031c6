"""What each rung of the ladder changes, and its gain over the rung that it comes after."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from vecadd.bench.tables import parts
from vecadd.figures import Figure
from vecadd.model.theory import has_defaults, with_defaults
from vecadd.tables import Column, Style, Table, columns, prose, show_gain, show_size

_COLUMNS = columns(
    "rung",
    "seconds",
    "GB/s",
    "% limit",
    "gain",
    "KiB/SM",
    "occ. %",
    "regs",
    Column("load", right=False),
    prose("documents", 2),
    prose("what changed", 3),
)
_SPARE = ("documents", "what changed", "regs", "occ. %", "load", "KiB/SM")

GAIN = "gain: over the rung that it comes after, at the same parameters where it has them, else at its fastest"
IN_FLIGHT = (
    "KiB/SM: bytes that a multiprocessor waits for at one time, by Little's law's model: loads * bytes * threads"
)
OCCUPANCY = "occ. %: threads that a multiprocessor holds at once, of the most it can; in theory, from its resources"


def tables(sweep: str, rows: list[Figure]) -> list[Table]:
    """Every rung beside its document's figure and the gain over the one before."""
    table = Table(sweep, _COLUMNS, optional_columns=_SPARE)
    for (dtype, n), cell in groupby(rows, key=lambda row: (row.dtype, row.n)):
        table.add(f"{dtype} {show_size(n)}", style=Style.HEAD)
        before: dict[str, list[Figure]] = {}
        for rung, group in groupby(cell, key=lambda row: row.name):
            documents, changes = parts.told(rung, previous=next(reversed(before), None))
            variants = list(group)
            at = next(
                (
                    index
                    for index, row in enumerate(variants)
                    if has_defaults(_rung(row), row.params.get("parameters", {}))
                ),
                0,
            )
            for index, row in enumerate(variants):
                told = (documents if index == at else "", changes if index == 0 else "")
                table.add(parts.variant(row, named=index == 0), *_figures(row, before), *told, style=parts.style(row))
                if row.seconds:
                    before.setdefault(rung, []).append(row)
        table.add_gap()
    table.notes = [
        GAIN,
        IN_FLIGHT,
        OCCUPANCY,
        *parts.document_notes(rows),
        *parts.caught(rows),
    ]
    return [table]


def gain_over(row: Figure, before: Mapping[str, Sequence[Figure]]) -> float | None:
    """How many times as fast it is as the rung that it comes after, whose rows are in ``before``: the fastest of those
    that share most of its parameters' values."""
    rung = parts.rung_named(row.name)
    others = before.get(rung["after"], ()) if rung else ()
    if not others or not row.seconds:
        return None
    mine = _parameters(row)
    best = min(others, key=lambda other: (-len(mine & _parameters(other)), other.seconds or 0.0))
    return (best.seconds or 0.0) / row.seconds


def _parameters(row: Figure) -> set[tuple[str, int]]:
    """All parameters of a row's rung with their values."""
    return set(with_defaults(_rung(row), row.params.get("parameters", {})).items())


def _rung(row: Figure) -> Mapping[str, Any]:
    """The row's rung; without parameters where there is none of that name."""
    return {"params": {}, **(parts.rung_named(row.name) or {})}


def _figures(row: Figure, before: Mapping[str, Sequence[Figure]]) -> tuple[str, ...]:
    gain = gain_over(row, before)
    in_flight = row.params.get("bytes_in_flight")
    return (
        parts.seconds(row),
        parts.rate(row),
        parts.fraction(row),
        show_gain(gain) if gain else "-",
        f"{in_flight / 1024:.3g}" if in_flight is not None else "-",
        parts.percent(row.params.get("occupancy")),
        parts.param(row, "registers"),
        row.params.get("load") or "-",
    )
