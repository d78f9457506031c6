"""Transposes and products of matrices: each rung beside the model, its occupancy and the document's figures; and of
products document 004's last step, from sgemm_tiled to sgemm_tuned, put to the test."""

import math
from collections.abc import Sequence
from itertools import groupby

from vecadd.bench import recorded
from vecadd.bench.tables import parts
from vecadd.bench.tables.ladder import GAIN, OCCUPANCY, gain_over
from vecadd.figures import Figure
from vecadd.model import product_operations
from vecadd.tables import Style, Table, columns, prose, show_gain, show_rate, show_seconds, show_size

_COLUMNS = (
    "% limit",
    "gain",
    "model",
    "block",
    "blocks",
    "waves",
    "occ. %",
    "regs",
    "shared",
    prose("documents", 2),
    prose("what changed", 3),
)

BEFORE, AFTER = "sgemm_tiled", "sgemm_tuned"  # the step whose occupancy doubled in the document

MODEL = "model: an empty kernel and the longest of memory, L2, arithmetic and loads, from this run's probes"
SHARED = "shared: bytes of shared memory a block"
LIMIT = {
    "transpose": "% limit: of the memory's own rates of reading one array and writing one",
    "sgemm": "% limit: of the cores' multiplications and additions in theory, or of the memory where that is less",
}
ITS = (
    f"its: document 004's digits, {recorded.SETTINGS['004c']}; KB of shared memory a block; achieved occupancy and the "
    "throughput of DRAM, memory, compute and L2, are its profiler's percentages"
)
VOID = (
    f"document 004's step from {BEFORE} to {AFTER}, 130 to 122 ms with twice the occupancy, compares nothing: by its "
    "grids the first makes 64 * 128 * 128 = 2^20 elements of a product and the second 32768 * 64 * 64 = 2^27. The grid "
    "of 64 is no slip: its profiler says 0.9 waves, which are 64 blocks on 34 multiprocessors of two blocks each. "
    "Either the 130 ms are a slip, or its first product has 128 times as many inner elements"
)


def tables(sweep: str, rows: list[Figure]) -> list[Table]:
    """The rungs of a sweep at each shape; of products also the document's columns."""
    table = Table(sweep, columns("rung", "seconds", "TFLOP/s" if sweep == "sgemm" else "GB/s", *_COLUMNS))
    for (dtype, shape), cell in groupby(rows, key=lambda row: (row.dtype, tuple(row.params["shape"]))):
        table.add(f"{dtype} {' x '.join(map(str, shape))}", style=Style.HEAD)
        before: dict[str, list[Figure]] = {}
        for row in cell:
            told = parts.told(row.name, next(reversed(before), None))
            table.add(row.label, *_figures(row, before), *told, style=parts.style(row))
            if row.seconds:
                before.setdefault(row.name, []).append(row)
        table.add_gap()
    table.notes = [LIMIT[sweep], GAIN, MODEL, OCCUPANCY, SHARED, *parts.document_notes(rows)]
    return [table, _columns(rows)] if sweep == "sgemm" else [table]


def rate(row: Figure) -> float | None:
    """What a row's picture and table show: 1e12 operations a second of a product, else GB/s."""
    shape = row.params["shape"]
    return product_operations(*shape) / row.seconds / 1e12 if len(shape) == 3 and row.seconds else row.gbps


def steps(rows: Sequence[Figure]) -> list[str]:
    """The step from BEFORE to AFTER at each shape that both ran at: occupancy and time, a line each."""
    lines = []
    for shape in dict.fromkeys(tuple(row.params["shape"]) for row in rows):
        found = {row.name: row for row in rows if tuple(row.params["shape"]) == shape and row.seconds}
        before, after = found.get(BEFORE), found.get(AFTER)
        if before and after and before.seconds and after.seconds:
            lines.append(
                f"{BEFORE} to {AFTER} at {' x '.join(map(str, shape))}: occupancy "
                f"{parts.percent(before.params['occupancy'])} to {parts.percent(after.params['occupancy'])} %, "
                f"{show_seconds(before.seconds)} to {show_seconds(after.seconds)}, "
                f"{show_gain(before.seconds / after.seconds)} as fast"
            )
    return lines


def _columns(rows: list[Figure]) -> Table:
    """Document 004's own columns of each rung, beside ours of the largest product."""
    names = ("rung", "its ms", "its block", "its grid", "its elements", "its KB", "its regs", "regs")
    shares = ("its occ. %", "achieved", "occ. %", "DRAM", "memory", "compute", "L2")
    table = Table("sgemm: document 004's columns", columns(*names, *shares))
    largest = {row.name: row for row in sorted(rows, key=lambda row: row.n)}
    for rung, its in recorded.SGEMM.items():
        if (row := largest.get(rung)) is None:
            continue
        known = parts.rung_named(rung)
        elements = int(its["grid"]) * math.prod(known["tile"][:2]) if known else 0
        table.add(
            rung,
            *(its[key] for key in ("ms", "block", "grid")),
            show_size(elements) if elements else "-",
            *(its[key] for key in ("shared", "registers")),
            parts.param(row, "registers"),
            *(its[key] for key in ("occupancy", "achieved")),
            parts.percent(row.params.get("occupancy")),
            *(its[key] for key in ("dram", "memory", "compute", "l2")),
            style=parts.style(row),
        )
    table.notes = [ITS, VOID, *steps(rows)]
    return table


def _figures(row: Figure, before: dict[str, list[Figure]]) -> tuple[str, ...]:
    gain, value, model = gain_over(row, before), rate(row), row.params.get("model_seconds")
    grid, waves = row.params.get("grid"), row.params.get("waves")
    return (
        parts.seconds(row),
        show_rate(value) if value else "-",
        parts.fraction(row),
        show_gain(gain) if gain else "-",
        show_seconds(model) if model else "-",
        parts.param(row, "block"),
        str(math.prod(grid)) if grid else "-",
        f"{waves:.3g}" if waves else "-",
        parts.percent(row.params.get("occupancy")),
        parts.param(row, "registers"),
        parts.param(row, "shared"),
    )
