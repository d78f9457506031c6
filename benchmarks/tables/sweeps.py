"""The READMEs' tables of vecadd bench's own sweeps: the bench's tables at one size, or several sizes a line."""

from collections.abc import Sequence

from benchmarks.tables import cells
from vecadd.bench.tables import blocksize as blocksize_layout
from vecadd.bench.tables import documents as documents_layout
from vecadd.bench.tables import inflight as inflight_layout
from vecadd.bench.tables import ladder as ladder_layout
from vecadd.bench.tables import latency as latency_layout
from vecadd.bench.tables import matrices as matrices_layout
from vecadd.bench.tables import transfer as transfer_layout
from vecadd.bench.tables.precision import speedups
from vecadd.figures import Figure
from vecadd.tables import Table, show_gain, show_seconds, show_size, table_as_markdown

RATE = "GB/s (% of limit)"

# Sizes of the wide tables; the files have the others.
PRECISION_SIZES = (2**10, 2**14, 2**18, 2**20, 2**24, 2**28)
LATENCY_SIZES = (2560, 2**16, 2**20, 2**24, 2**28)


def rates(rows: list[Figure]) -> list[str]:
    """GB/s of each rung by size; one line a size."""
    several = len({row.dtype for row in rows}) > 1
    return cells.by_two(
        rows,
        lambda row: f"{row.dtype} {show_size(row.n)}" if several else show_size(row.n),
        lambda row: row.label,
        cells.rate,
        corner=f"n, {RATE}",
    )


def ladder(rows: list[Figure]) -> list[str]:
    """Each rung at the largest size that was recorded: its time, its gain, and the documents' time of it."""
    (table,) = ladder_layout.tables("ladder", _largest(rows))
    return table_as_markdown(table.only("rung", "seconds", "GB/s", "% limit", "gain", "documents"))


def inflight(rows: list[Figure]) -> list[str]:
    """The memory's rate and latency by the bytes in flight."""
    (table, *_) = inflight_layout.tables("inflight", rows)
    return table_as_markdown(table)


def blocksize(rows: list[Figure]) -> list[str]:
    """Each rung by the threads of a block, and below it the waves, at the largest size that was recorded."""
    return _each(blocksize_layout.tables("blocksize", _largest(rows)))


def precision(rows: list[Figure]) -> list[str]:
    """Time by size of each rung and dtype; the speed-ups over the processor and over naive float32 at 2^20."""
    sizes = _shown(rows, PRECISION_SIZES)
    at = min(sizes, key=lambda n: abs(n - 2**20))
    times = {(row.name, row.dtype): row.seconds for row in rows if row.n == at and row.seconds}
    gains = {
        f"{row.name}, {row.dtype}": [show_gain(gain) if gain else "-" for gain in speedups(row.name, row.dtype, times)]
        for row in rows
    }
    return cells.by_two(
        rows,
        lambda row: f"{row.name}, {row.dtype}",
        lambda row: show_size(row.n),
        cells.seconds,
        columns=[show_size(n) for n in sizes],
        more=[
            (f"CPU / this at {show_size(at)}", lambda line: gains[line][0]),
            (f"fp32 naive / this at {show_size(at)}", lambda line: gains[line][1]),
        ],
    )


def transfer(rows: list[Figure]) -> list[str]:
    """GB/s of each rung by size, and at the largest size how long it took against the model."""
    rows = [row for row in rows if row.params.get("memory") and "stage" not in row.params and row.gbps]
    sizes = sorted({row.n for row in rows})
    shown = [n for n in sizes if n >= 2**16][:: 2 if len(sizes) > 6 else 1] or sizes
    largest = {row.label: row for row in rows if row.n == sizes[-1]}
    return cells.by_two(
        rows,
        lambda row: row.label,
        lambda row: show_size(row.n),
        cells.rate,
        corner=f"n, {RATE}",
        columns=[show_size(n) for n in shown],
        more=[("time / model", lambda label: _of_model(largest.get(label)))],
    )


def stages(rows: list[Figure]) -> list[str]:
    """Document 004's stages, measured again, beside the document's figures."""
    return _each([table for table in transfer_layout.tables("transfer", rows) if "stages" in table.title])


def cold_start(rows: list[Figure]) -> list[str]:
    """What a process that has just begun pays, beside document 004's figures."""
    return _each([transfer_layout.cold_start(rows)])


def latency(rows: list[Figure]) -> list[str]:
    """Seconds of one addition by size, with the gain over a loop of launches; a graph's break-even at the smallest."""
    rows = [row for row in rows if row.seconds]
    sizes = _shown(rows, LATENCY_SIZES)
    smallest = {_kind(row): row for row in rows if row.n == sizes[0]}
    return cells.by_two(
        rows,
        _kind,
        lambda row: show_size(row.n),
        _one_add,
        corner="one addition (gain)",
        columns=[show_size(n) for n in sizes],
        more=[("pays after", lambda kind: latency_layout.break_even(smallest[kind]) if kind in smallest else "-")],
    )


def documents(rows: list[Figure]) -> list[str]:
    """The documents' experiments, a table each."""
    return _each(documents_layout.tables("documents", rows))


def matrices(rows: list[Figure]) -> list[str]:
    """Transposes, or products and below them document 004's columns and its last step put to the test."""
    first, *others = matrices_layout.tables(rows[0].sweep, rows)
    rate = first.columns[2].name
    shown = first.only("rung", "seconds", rate, "% limit", "gain", "model", "blocks", "occ. %", "regs", "documents")
    return _each([shown, *others])


def _each(tables: Sequence[Table]) -> list[str]:
    """The tables as they are, each with its notes below it, and with its title above it where there are several."""
    lines: list[str] = []
    for table in tables:
        lines += [f"**{table.title}**", ""] if len(tables) > 1 else []
        lines += [*table_as_markdown(table), "", *(f"- {note}" for note in table.notes), ""]
    return lines[:-1]


def _largest(rows: list[Figure]) -> list[Figure]:
    """The rows of the first dtype at its largest size."""
    rows = [row for row in rows if row.dtype == rows[0].dtype]
    return [row for row in rows if row.n == max(other.n for other in rows)]


def _shown(rows: list[Figure], wanted: tuple[int, ...]) -> list[int]:
    """The wanted sizes that were recorded; all recorded sizes where none was."""
    sizes = sorted({row.n for row in rows})
    return [n for n in sizes if n in wanted] or sizes


def _of_model(row: Figure | None) -> str:
    if row is None or not row.seconds or not row.params.get("model_seconds"):
        return "-"
    return f"{row.seconds / row.params['model_seconds']:.3g}"


def _kind(row: Figure) -> str:
    return f"{row.name}, {latency_layout.KINDS[latency_layout.chain(row)]}"


def _one_add(row: Figure | None) -> str:
    if row is None:
        return "-"
    gain, one = latency_layout.gain(row), show_seconds(row.params["seconds_per_add"])
    return f"{one} ({show_gain(gain)})" if gain else one
