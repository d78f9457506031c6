"""What each rung of the ladder changes, and its gain over the rung that it comes after."""

from collections.abc import Mapping
from itertools import groupby

from vecadd.bench.axes import show_size
from vecadd.bench.results import Row
from vecadd.bench.show import show_gain
from vecadd.bench.tables import parts
from vecadd.bench.tables.table import Column, Style, Table, columns

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
    Column("documents", right=False, share=2),
    Column("what changed", right=False, share=3),
)
_SPARE = ("documents", "what changed", "regs", "occ. %", "load", "KiB/SM")

GAIN = "gain: over the rung that it comes after, at its fastest"
IN_FLIGHT = (
    "KiB/SM: bytes that a multiprocessor waits for at one time, by Little's law's model: loads * bytes * threads"
)
OCCUPANCY = "occ. %: threads that a multiprocessor holds at once, of the most it can; in theory, from its resources"


def tables(sweep: str, rows: list[Row]) -> list[Table]:
    """Every rung beside its document's figure and the gain over the one before."""
    table = Table(sweep, _COLUMNS, spare=_SPARE)
    for (dtype, n), cell in groupby(rows, key=lambda row: (row.dtype, row.n)):
        table.add(f"{dtype} {show_size(n)}", style=Style.HEAD)
        fastest: dict[str, float] = {}
        for rung, variants in groupby(cell, key=lambda row: row.rung):
            told: tuple[str, ...] = parts.told(rung, previous=next(reversed(fastest), None))
            for index, row in enumerate(variants):
                table.add(parts.variant(row, named=index == 0), *_figures(row, fastest), *told, style=parts.style(row))
                told = ()
                if row.seconds:
                    fastest[rung] = min(row.seconds, fastest.get(rung, row.seconds))
        table.rule()
    table.notes = [
        GAIN,
        IN_FLIGHT,
        OCCUPANCY,
        *parts.document_notes(rows),
        *parts.caught(rows),
    ]
    return [table]


def gain_over(row: Row, fastest: Mapping[str, float]) -> float | None:
    """How many times as fast as the fastest row of the rung that it comes after."""
    rung = parts.rung_named(row.rung)
    before = fastest.get(rung["after"]) if rung else None
    return before / row.seconds if before and row.seconds else None


def _figures(row: Row, fastest: Mapping[str, float]) -> tuple[str, ...]:
    gain = gain_over(row, fastest)
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
