"""The documents' tables of vecadd's own measurements: sweeps at one size or several a line, the model, calls, profiles,
and additions of Zarr arrays."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import median

from benchmarks import model_check
from benchmarks.tables.recordings import Recording
from vecadd.bench import recorded
from vecadd.bench.sweeps import SWEEPS, make_tables
from vecadd.bench.sweeps import latency as latency_sweep
from vecadd.bench.sweeps.precision import speedups
from vecadd.bench.sweeps.transfer import round_trips_of, table_of_cold_start, table_of_stages
from vecadd.figures import Figure
from vecadd.profile import metrics
from vecadd.profile.events import TITLES
from vecadd.profile.tables import NOTHING, show_metric
from vecadd.tables import Table, columns, markdown, show_gain, show_rate, show_seconds, show_size, table_as_markdown

# Cells, and tables of figures by two of their properties

Cell = Callable[[Figure | None], str]  # "-" for None, a row that was not measured


def show_time(row: Figure | None) -> str:
    return "-" if row is None or row.seconds is None else show_seconds(row.seconds)


def show_rate_and_share(row: Figure | None) -> str:
    """GB/s, with the percentage of the limit where there is one."""
    if row is None or row.gbps is None:
        return "-"
    return show_rate(row.gbps) if row.fraction is None else f"{show_rate(row.gbps)} ({100 * row.fraction:.0f} %)"


def _tabulate(
    rows: Iterable[Figure],
    line: Callable[[Figure], str],
    column: Callable[[Figure], str],
    cell: Cell,
    *,
    corner: str = "",
    columns: Sequence[str] | None = None,
    more: Sequence[tuple[str, Callable[[str], str]]] = (),
) -> list[str]:
    """A line for each value of ``line``, a column for each of ``column``, or for those of ``columns``.

    ``more`` are further columns: a head, and the function that gives the cell of the line of that name.
    """
    cells = {(line(row), column(row)): row for row in rows}
    names = list(dict.fromkeys(name for _, name in cells)) if columns is None else columns
    lines = [
        [each, *(cell(cells.get((each, name))) for name in names), *(own(each) for _, own in more)]
        for each in dict.fromkeys(each for each, _ in cells)
    ]
    return markdown([corner, *names, *(head for head, _ in more)], lines)


# Sweeps

RATE = "GB/s (% of limit)"

# Sizes of the wide tables; the files have the others.
PRECISION_SIZES = (2**10, 2**14, 2**20, 2**24, 2**28)
LATENCY_SIZES = (2560, 2**16, 2**20, 2**24, 2**28)


def rates(rows: list[Figure]) -> list[str]:
    """GB/s of each rung by size; one line a size."""
    several = len({row.dtype for row in rows}) > 1
    return _tabulate(
        rows,
        lambda row: f"{row.dtype} {show_size(row.n)}" if several else show_size(row.n),
        lambda row: row.label,
        show_rate_and_share,
        corner=f"n, {RATE}",
    )


def ladder(rows: list[Figure]) -> list[str]:
    """Each rung at the largest size that was recorded: its time, its gain, and the documents' time of it."""
    (table,) = SWEEPS["ladder"].tables(_largest(rows))
    return table_as_markdown(table.only("rung", "seconds", "GB/s", "% limit", "gain", "documents"))


def inflight(rows: list[Figure]) -> list[str]:
    """The memory's rate and latency by the bytes in flight."""
    (table, *_) = SWEEPS["inflight"].tables(rows)
    return table_as_markdown(table)


def blocksize(rows: list[Figure]) -> list[str]:
    """Each rung by the threads of a block, and below it the waves, at the largest size that was recorded."""
    return _each([_without(table, "best") for table in SWEEPS["blocksize"].tables(_largest(rows))])


def precision(rows: list[Figure]) -> list[str]:
    """Time by size of each rung and dtype; the speed-ups over the processor and over naive float32 at 2^20."""
    sizes = _shown(rows, PRECISION_SIZES)
    at = min(sizes, key=lambda n: abs(n - 2**20))
    times = {(row.name, row.dtype): row.seconds for row in rows if row.n == at and row.seconds}
    gains = {
        f"{row.name}, {row.dtype}": [show_gain(gain) if gain else "-" for gain in speedups(row.name, row.dtype, times)]
        for row in rows
    }
    return _tabulate(
        rows,
        lambda row: f"{row.name}, {row.dtype}",
        lambda row: show_size(row.n),
        show_time,
        columns=[show_size(n) for n in sizes],
        more=[
            (f"CPU / this at {show_size(at)}", lambda line: gains[line][0]),
            (f"fp32 naive / this at {show_size(at)}", lambda line: gains[line][1]),
        ],
    )


def transfer(rows: list[Figure]) -> list[str]:
    """GB/s of each rung by size, and at the largest size how long it took against the model."""
    rows = [row for row in round_trips_of(rows) if row.gbps]
    sizes = sorted({row.n for row in rows})
    shown = [n for n in sizes if n >= 2**16][:: 2 if len(sizes) > 6 else 1] or sizes
    largest = {row.label: row for row in rows if row.n == sizes[-1]}
    return _tabulate(
        rows,
        lambda row: row.label,
        lambda row: show_size(row.n),
        show_rate_and_share,
        corner=f"n, {RATE}",
        columns=[show_size(n) for n in shown],
        more=[("time / model", lambda label: _of_model(largest.get(label)))],
    )


def stages(rows: list[Figure]) -> list[str]:
    """Document 004's stages, measured again, beside the document's figures."""
    return _each([table_of_stages(rows)])


def cold_start(rows: list[Figure]) -> list[str]:
    """What a process that has just begun pays, beside document 004's figures."""
    return _each([table_of_cold_start(rows)])


def latency(rows: list[Figure]) -> list[str]:
    """Seconds of one addition by size, with the gain over a loop of launches; a graph's break-even at the smallest."""
    rows = [row for row in rows if row.seconds]
    sizes = _shown(rows, LATENCY_SIZES)
    smallest = {_kind(row): row for row in rows if row.n == sizes[0]}
    return _tabulate(
        rows,
        _kind,
        lambda row: show_size(row.n),
        _one_add,
        corner="one addition (gain)",
        columns=[show_size(n) for n in sizes],
        more=[("pays after", lambda kind: latency_sweep.break_even(smallest[kind]) if kind in smallest else "-")],
    )


def documents(rows: list[Figure]) -> list[str]:
    """The documents' experiments, a table each."""
    return _each(make_tables(rows))


def matrices(rows: list[Figure]) -> list[str]:
    """Transposes, or products and below them document 004's columns and its last step put to the test."""
    first, *others = make_tables(rows)
    rate = first.columns[2].name
    shown = first.only("rung", "seconds", rate, "% limit", "gain", "blocks", "occ. %", "documents")
    unlike = ("its block", "its KB", "achieved", "DRAM", "memory", "compute", "L2")
    others = [replace(_without(table, *unlike), notes=table.notes[1:]) for table in others]  # the first is of them
    return _each([shown, *others])


def _without(table: Table, *names: str) -> Table:
    """The table without these columns, with its notes."""
    return replace(table.only(*(each.name for each in table.columns if each.name not in names)), notes=table.notes)


def _each(tables: Sequence[Table]) -> list[str]:
    """The tables as they are, each with those of its notes below it that the tables before it have not had, and with
    its title above it where there are several."""
    lines: list[str] = []
    for table in tables:
        lines += [f"**{table.title}**", ""] if len(tables) > 1 else []
        notes = [f"- {note}" for note in table.notes if f"- {note}" not in lines]
        lines += [*table_as_markdown(table), "", *notes, *([""] if notes else [])]
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
    return f"{row.name}, {latency_sweep.kind_of(row)}"


def _one_add(row: Figure | None) -> str:
    if row is None:
        return "-"
    gain, one = latency_sweep.gain(row), show_seconds(row.params["seconds_per_add"])
    return f"{one} ({show_gain(gain)})" if gain else one


# What vecadd.model expects, computed from the recorded limits when the table is made: it is the present model's


def model_counts(runs: Sequence[Recording]) -> list[str]:
    """A line a sweep: the cells that the model covers, and those within 10 %."""
    lines, total = [], [0, 0]
    for run in runs:
        cells, _ = model_check.compare(run)
        met = sum(cell.within for cell in cells)
        lines.append([run.sweep, str(met), str(len(cells)), _show_share(met, len(cells))])
        total = [total[0] + met, total[1] + len(cells)]
    lines.append(["all", *map(str, total), _show_share(*total)])
    return markdown(["sweep", "within 10 %", "cells", "share"], lines)


def _show_share(met: int, cells: int) -> str:
    return f"{100 * met / cells:.0f} %" if cells else "-"


# A call's cost to its caller, by stage, beside a bare launch

STAGE = "vecadd stage: "
CALL = "vecadd"  # add(a, b, out=out) of DeviceArrays: what the stages add up to
BARE = "vecadd (bare launch from C)"

# Each stage in the order of a call, and what it does. Only a + b has the stage "allocate".
STAGES = {
    "parse": "sorts the arguments and keywords out",
    "describe": "looks at a, b and out: type, pointer, shape, stream; no CUDA call for DeviceArrays",
    "plan": "checks them against each other, picks stream and route",
    "launch": "gives up the GIL, picks the kernel, queues it, takes the GIL back",
}
ALLOCATE = "makes a DeviceArray like a and drops it, from a block that an earlier one left; `a + b` alone"


def call_stages(rows: list[Figure]) -> list[str]:
    """Nanoseconds of each stage of a call by itself, of the rest of the call (the interpreter), and of the bare launch.

    The rest is the call less its stages; timed alone, the stages have warmer caches than within a call.
    """
    found = {row.label: row for row in rows if row.seconds is not None}
    lines = [[name, what, _show_nanoseconds(found.get(STAGE + name))] for name, what in STAGES.items()]
    parts = [found[STAGE + name].seconds or 0 for name in STAGES if STAGE + name in found]
    call = found.get(CALL)
    rest = call is not None and call.seconds is not None and len(parts) == len(STAGES)
    lines += [
        [
            "rest",
            "the interpreter's loop and call, caches",
            f"{1e9 * (_call_seconds(call) - sum(parts)):.0f}" if rest else "-",
        ],
        ["call", "`vecadd.add(a, b, out=out)`, all of it", _show_nanoseconds(call)],
        ["bare", "the same kernel launched from C, plainly", _show_nanoseconds(found.get(BARE))],
        ["allocate", ALLOCATE, _show_nanoseconds(found.get(STAGE + "allocate"))],
    ]
    return markdown(["stage", "what it does", "ns"], lines, [False, False, True])


def _call_seconds(row: Figure | None) -> float:
    return row.seconds or 0.0 if row else 0.0


def _show_nanoseconds(row: Figure | None) -> str:
    return f"{1e9 * _call_seconds(row):.0f}" if row else "-"


# What `vecadd profile` recorded of the documents' steps: kernels beside their profilers' figures, and transfers

# Of a kernel, as far as they were recorded; and those that the documents' profilers name.
SHOWN_METRICS = ("duration", "sm", "dram", "l2", "occupancy")  # the others are what `vecadd profile` shows
DOCUMENTS_METRICS = ("duration", "dram", "memory", "sm", "l2", "achieved", "registers")
SHORT_NAMES = {
    "duration": "time",
    "achieved": "occupancy",
    "registers": "registers",
    "sm": "SM",
    "dram": "DRAM",
    "l2": "L2",
}


def profiled_kernels(rows: list[Figure]) -> list[str]:
    """A line a rung: the metrics that any of them has, and the documents' own."""
    rows = [row for row in rows if "metrics" in row.params]
    shown = [
        row
        for row in metrics.ROWS
        if row.key in SHOWN_METRICS and any(row.key in each.params["metrics"] for each in rows)
    ]
    shown.sort(key=lambda row: SHOWN_METRICS.index(row.key))
    lines = [
        [
            row.name,
            show_size(row.n),
            *(show_metric(row.params["metrics"].get(each.key), each.unit) for each in shown),
            _show_documents(row.name),
        ]
        for row in rows
    ]
    heads = ["rung", "n", *(row.title for row in shown), "the documents' profilers"]
    return markdown(heads, lines, [False, *[True] * (len(heads) - 2), False])


def profiled_transfers(rows: list[Figure]) -> list[str]:
    """A line for each kind of step of a rung: how many, how long, their share, and how much they copied."""
    lines = []
    for row in rows:
        for index, part in enumerate(row.params.get("parts", ())):
            lines.append(
                [
                    row.name if index == 0 else "",
                    TITLES.get(part["what"], part["what"]),
                    str(part["count"]),
                    show_seconds(part["seconds"]),
                    show_seconds(part["seconds"] / part["count"]),
                    f"{100 * part['share']:.1f} %",
                    NOTHING if part["bytes"] is None else f"{part['bytes'] / 1e6:,.1f}",
                    NOTHING if part["gbps"] is None else f"{part['gbps']:.1f}",
                ]
            )
    heads = ["rung", "what", "count", "total", "average", "share", "MB", "GB/s"]
    return markdown(heads, lines, [False, False, *[True] * 6])


def _show_documents(rung: str) -> str:
    """ "000 (RTX 5060 Ti, 2^27): time 4.02 ms, DRAM 89.88 %"; nothing for a rung that no document profiled."""
    units = {row.key: row.unit for row in metrics.ROWS}
    told = []
    for profile in recorded.PROFILES:
        figures = profile.metrics if profile.rung == rung else {}
        parts = [
            f"{SHORT_NAMES.get(key, key)} {show_metric(figures[key], units[key])}{' %' if units[key] == '%' else ''}"
            for key in DOCUMENTS_METRICS
            if key in figures and not (key == "memory" and "dram" in figures)  # the same figure
        ]
        if figures:
            told.append(f"{profile.setting} ({recorded.SETTINGS[profile.setting]}): {', '.join(parts)}")
    return "; ".join(told)


# Additions of Zarr arrays, for the documents and for the terminal

REFERENCE, DISK = "vecadd, threads", "the disk, moving as much"


def stores(rows: list[Figure]) -> list[str]:
    """What was added, and a line a contestant."""
    params = rows[0].params
    setting = (
        f"Two arrays of {params['mib']} MiB, {rows[0].dtype}, in chunks of {params['chunk']} by {params['chunk']}, "
        f"compressor {params['compressor']}; the clusters have {params['workers']} workers of one thread; "
        f"{len(params['samples'])} rounds."
    )
    return [setting, "", *table_as_markdown(stores_table(rows))]


def stores_table(rows: Sequence[Figure], missing: Sequence[str] = ()) -> Table:
    """A line a contestant. ``missing`` names those that are not installed."""
    reference = next((row.seconds for row in rows if row.name == REFERENCE), None)
    disk = next(row.params["samples"] for row in rows if row.name == DISK)
    note = [f"not installed: {', '.join(missing)}"] if missing else []
    made = Table(
        "; ".join(["additions of Zarr arrays", *note]),
        columns("contestant", "time", "time / vecadd", "of the disk's speed", "peak a worker", "tasks"),
    )
    for row in rows:
        seconds = row.seconds or 0.0
        made.add(
            row.name,
            show_seconds(seconds),
            show_gain(seconds / reference) if reference else "-",
            f"{100 * median(by / own for by, own in zip(disk, row.params['samples'], strict=True)):.0f} %",
            f"{row.params['peak'] / 1e6:.0f} MB",
            str(row.params["tasks"]),
        )
    return made
