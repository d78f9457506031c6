"""A rung a line, a block size a column; below it, how many blocks are started at a time."""

from itertools import groupby
from math import prod

from vecadd.bench import recorded
from vecadd.bench.tables import parts
from vecadd.figures import Figure
from vecadd.tables import Style, Table, columns, show_rate, show_seconds, show_size

WAVES = "waves"  # the rung whose axis is not the block but the number of blocks

CELL = "a cell: GB/s (% of the limit) occupancy %; * the fastest block of its rung"


def tables(sweep: str, rows: list[Figure]) -> list[Table]:
    """Bandwidth by threads a block, and the cost of partial waves."""
    by_block = [row for row in rows if row.name != WAVES]
    by_waves = [row for row in rows if row.name == WAVES]
    return [table for table in (_blocks(sweep, by_block), _waves(sweep, by_waves)) if table.lines]


def _blocks(sweep: str, rows: list[Figure]) -> Table:
    blocks = sorted({row.params["block"] for row in rows})
    table = Table(f"{sweep}: threads a block", columns("rung", *map(str, blocks), "best"))
    for (dtype, n), cell in groupby(rows, key=lambda row: (row.dtype, row.n)):
        table.add(f"{dtype} {show_size(n)}", style=Style.HEAD)
        for _, group in groupby(cell, key=lambda row: row.label):
            line = {row.params["block"]: row for row in group}
            best = min((row for row in line.values() if row.seconds), key=lambda row: row.seconds or 0, default=None)
            cells = [_cell(line.get(block), best) for block in blocks]
            styles = [parts.style(row) for row in line.values()]
            first = next(iter(line.values()))
            table.add(
                first.label,
                *cells,
                str(best.params["block"]) if best else "-",
                style=Style.FAILED if Style.FAILED in styles else Style.PLAIN,
            )
        table.add_gap()
    table.notes = [CELL, *_starts(rows), *_documents({row.name for row in rows})] if table.lines else []
    return table


def _starts(rows: list[Figure]) -> list[str]:
    """The most blocks that a row started in a time, where the rows know how many they had."""
    rates = [prod(row.params["grid"]) / row.seconds for row in rows if row.seconds and row.params.get("grid")]
    if not rates:
        return []
    return [f"no row starts more than {1e-9 * max(rates):.3g} blocks a ns, which bounds small blocks at any occupancy"]


def _cell(row: Figure | None, best: Figure | None) -> str:
    if row is None:
        return "-"
    if row.gbps is None:
        return "failed"
    share = "" if row.fraction is None else f" ({100 * row.fraction:.0f})"
    mark = "*" if row is best else ""
    return f"{mark}{show_rate(row.gbps)}{share} {parts.percent(row.params.get('occupancy'))}"


def _documents(rungs: set[str]) -> list[str]:
    """What the documents recorded along this axis, a line a rung and setting."""
    found = [figure for figure in recorded.FIGURES if figure.block is not None and figure.rung in rungs]
    lines = []
    for (rung, setting), group in groupby(found, key=lambda figure: (figure.rung, figure.setting)):
        times = ", ".join(f"{figure.block}: {show_seconds(figure.seconds)}" for figure in group)
        lines.append(f"document {recorded.SETTINGS[setting].document}, {rung} on {recorded.SETTINGS[setting]}: {times}")
    return lines


def _waves(sweep: str, rows: list[Figure]) -> Table:
    table = Table(
        f"{sweep}: blocks, of those that fit at once",
        columns("percent", "blocks", "waves", "seconds", "GB/s", "% limit", "occ. %", "regs"),
    )
    for (dtype, n), cell in groupby(rows, key=lambda row: (row.dtype, row.n)):
        table.add(f"{dtype} {show_size(n)}", style=Style.HEAD)
        for row in cell:
            blocks, waves = row.params.get("grid"), row.params.get("waves")
            table.add(
                ", ".join(str(value) for value in row.params.get("parameters", {}).values()),
                "-" if blocks is None else str(blocks[0]),
                "-" if waves is None else f"{waves:.2f}",
                parts.seconds(row),
                parts.rate(row),
                parts.fraction(row),
                parts.percent(row.params.get("occupancy")),
                parts.param(row, "registers"),
                style=parts.style(row),
            )
        table.add_gap()
    if table.lines:
        table.notes = ["waves: blocks over those that all multiprocessors hold at once; what is left over runs alone"]
    return table
