"""Fills the tables of README.md and benchmarks/README.md from the recorded results.

    python -m benchmarks.readme_tables [--check]

A table stands between <!-- table: NAME --> and <!-- /table -->. NAME is one of TABLES; where several machines have
recorded it, <!-- table: NAME MACHINE --> says which. Under each table stands how it was timed; under the last one of a
section where and when they were measured, and whether what they time has changed since.
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import call_costs, nearest_peer, peer_tables, recordings
from benchmarks.recordings import Digest, Run, newest
from vecadd.bench import sources
from vecadd.bench.axes import show_size
from vecadd.bench.formats import as_lines
from vecadd.bench.gains import STEPS, measured
from vecadd.bench.recorded import figures
from vecadd.bench.results import Row
from vecadd.bench.show import show_gain, show_rate, show_seconds
from vecadd.bench.tables import latency as latency_layout
from vecadd.bench.tables import parts
from vecadd.bench.tables.blocksize import WAVES
from vecadd.bench.tables.ladder import gain_over
from vecadd.bench.tables.precision import speedups
from vecadd.bench.tables.table import markdown
from vecadd.bench.tables.transfer import tables as transfer_tables

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"

_MARKED = re.compile(
    r"(?P<open><!-- table: (?P<name>[\w-]+)(?: (?P<machine>\S+))? -->\n).*?(?P<close><!-- /table -->)", re.S
)


def rates(rows: list[Row]) -> list[str]:
    """GB/s of each rung by size, with the percentage of the limit; one line a size."""
    rungs = list(dict.fromkeys(row.label for row in rows))
    several = len({row.dtype for row in rows}) > 1
    cells = {(row.dtype, row.n, row.label): row for row in rows}
    lines = []
    for dtype, n in dict.fromkeys((row.dtype, row.n) for row in rows):
        head = f"{dtype} {show_size(n)}" if several else show_size(n)
        lines.append([head, *(_rate(cells.get((dtype, n, rung))) for rung in rungs)])
    return markdown(["n, GB/s (% of limit)", *rungs], lines)


def ratios(rows: list[Row]) -> list[str]:
    """Time of each peer over ours by size: above 1 the peer is slower. Of several dtypes the nearest peer of each."""
    if len({row.dtype for row in rows}) > 1:
        return nearest_peer.table(rows)
    rungs = [name for name in dict.fromkeys(row.label for row in rows) if name != _reference(rows)]
    cells = {(row.n, row.label): row for row in rows}
    sizes = dict.fromkeys(row.n for row in rows)
    lines = [
        [
            show_size(n),
            _seconds(cells.get((n, _reference(rows)))),
            *(_ratio(cells.get((n, rung))) for rung in rungs),
        ]
        for n in sizes
    ]
    return markdown(["n", f"{_reference(rows)}: time", *(f"{rung} / ours" for rung in rungs)], lines)


def ladder(rows: list[Row]) -> list[str]:
    """Each rung at the largest size that was recorded: its time, its gain, and the documents' time of it."""
    lines = []
    fastest: dict[str, float] = {}
    previous = None
    for row in _largest(rows):
        gain = gain_over(row, fastest)
        documents = parts.documents(figures(row.rung)) if row.rung != previous else ""
        previous = row.rung
        lines.append([row.label, *_timed(row), show_gain(gain) if gain else "-", documents])
        if row.seconds:
            fastest[row.rung] = min(row.seconds, fastest.get(row.rung, row.seconds))
    head = [f"{_what(rows)}: rung", "time", "GB/s", "% of limit", "gain", "the documents"]
    return markdown(head, lines, [False, True, True, True, True, False])


def blocksize(rows: list[Row]) -> list[str]:
    """GB/s (% of the limit) of each rung by the threads of a block; the waves as lines of their own below."""
    rows = _largest(rows)
    blocks = sorted({row.params["block"] for row in rows if row.rung != WAVES})
    cells = {(row.rung, row.params["block"]): row for row in rows if row.rung != WAVES}
    rungs = dict.fromkeys(rung for rung, _ in cells)
    lines = [[rung, *(_rate(cells.get((rung, block))) for block in blocks)] for rung in rungs]
    table = markdown([f"{_what(rows)}, GB/s (% of limit)", *map(str, blocks)], lines)
    waves = [row for row in rows if row.rung == WAVES]
    if not waves:
        return table
    head = ["`waves`: blocks", *(f"{value} %" for row in waves for value in row.params["parameters"].values())]
    return [*table, "", *markdown(head, [["GB/s (% of limit)", *map(_rate, waves)]])]


def precision(rows: list[Row]) -> list[str]:
    """Time by size of each rung and dtype; the speed-ups over the processor and over naive float32 at 2^20."""
    cells = {(row.rung, row.dtype, row.n): row for row in rows}
    sizes = _shown(rows, PRECISION_SIZES)
    at = min(sizes, key=lambda n: abs(n - 2**20))
    times = {(row.rung, row.dtype): row.seconds for row in rows if row.n == at and row.seconds}
    lines = []
    for rung, dtype in dict.fromkeys((row.rung, row.dtype) for row in rows):
        cpu, base, _ = speedups(rung, dtype, times)
        over = [show_gain(gain) if gain else "-" for gain in (cpu, base)]
        lines.append([f"{rung}, {dtype}", *(_seconds(cells.get((rung, dtype, n))) for n in sizes), *over])
    at_size = f"at {show_size(at)}"
    return markdown(["", *map(show_size, sizes), f"CPU / this {at_size}", f"fp32 naive / this {at_size}"], lines)


def transfer(rows: list[Row]) -> list[str]:
    """GB/s (% of the limit) of each rung by size, and at the largest size how long it took against the model."""
    rows = [row for row in rows if row.params.get("memory") and "stage" not in row.params and row.gbps]
    sizes = sorted({row.n for row in rows})
    cells = {(row.label, row.n): row for row in rows}
    shown = [n for n in sizes if n >= 2**16][:: 2 if len(sizes) > 6 else 1] or sizes
    lines = [
        [label, *(_rate(cells.get((label, n))) for n in shown), _of_model(cells.get((label, sizes[-1])))]
        for label in dict.fromkeys(row.label for row in rows)
    ]
    return markdown(["n, GB/s (% of limit)", *map(show_size, shown), "time / model"], lines)


def stages(rows: list[Row]) -> list[str]:
    """Document 004's stages, made again, beside its own."""
    made = [table for table in transfer_tables("transfer", rows) if "stages" in table.title]
    return [line for table in made for line in as_lines(table)]


def latency(rows: list[Row]) -> list[str]:
    """Seconds of one addition by size, with the gain over a loop of launches; a graph's break-even at the smallest."""
    rows = [row for row in rows if row.seconds]
    sizes = _shown(rows, LATENCY_SIZES)
    cells = {(row.rung, _chain(row), row.n): row for row in rows}
    lines = []
    for rung, chain in dict.fromkeys((row.rung, _chain(row)) for row in rows):
        pays = cells.get((rung, chain, sizes[0]))
        repeats = pays.params.get("break_even", "-") if pays else "-"
        kind = latency_layout.KINDS[chain]
        times = [_one_add(cells.get((rung, chain, n))) for n in sizes]
        lines.append([f"{rung}, {kind}", *times, "never" if repeats is None else str(repeats)])
    return markdown(["one addition (gain)", *map(show_size, sizes), "pays after"], lines)


def steps(rows: list[Row]) -> list[str]:
    """Each step that the documents tell of: the gain they saw, ours, and why they differ."""
    lines = []
    for step in STEPS:
        ours = measured(step, rows)
        lines.append(
            [
                f"{step.before} → {step.after}",
                f"{step.document}, {step.where}",
                show_gain(step.gain),
                show_gain(ours[1]) if ours else "not recorded",
                show_size(ours[0]) if ours else "-",
                step.why,
            ]
        )
    return markdown(
        ["step", "document", "its gain", "ours", "at", "why"], lines, [False, False, True, True, True, False]
    )


TABLES: dict[str, Callable[[list[Row]], list[str]]] = {
    "host": rates,
    "size": rates,
    "ladder": ladder,
    "blocksize": blocksize,
    "precision": precision,
    "transfer": transfer,
    "stages": stages,
    "latency": latency,
    "steps": steps,
    "peer-host": peer_tables.host_forms,
    "peer-host-dtypes": peer_tables.host_dtypes,
    "peer-device": ratios,
    "peer-queued": peer_tables.queued,
    "peer-misaligned": peer_tables.misaligned,
    "peer-layouts": peer_tables.layouts,
    "peer-scaling": peer_tables.plain,
    "peer-courtesy": peer_tables.plain,
    "peer-many": peer_tables.plain,
    "peer-end-to-end": ratios,
    "peer-files": peer_tables.files,
    "peer-overhead": call_costs.forms,
    "call-stages": call_costs.stages,
    "peer-transfer": peer_tables.one_size,
    "peer-routes": peer_tables.routes,
}

# Sizes of the wide tables; the files have the others.
PRECISION_SIZES = (2**10, 2**14, 2**18, 2**20, 2**24, 2**28)
LATENCY_SIZES = (2560, 2**16, 2**20, 2**24, 2**28)

# Tables that are made from other sweeps' rows than those of their own name; under them stands the first one's clock.
SWEEPS_OF = {
    "stages": ("transfer",),
    "call-stages": ("peer-overhead",),
    "peer-host-dtypes": ("peer-host",),
    "peer-routes": ("peer-transfer",),
    "steps": ("ladder", "blocksize", "precision", "transfer", "latency"),
}


# Each document, and where it finds the method.
DOCUMENTS = {README: "benchmarks/README.md", ROOT / "benchmarks" / "README.md": "#how-vecadd-is-measured"}


def fill(text: str, folder: Path = RESULTS, digest: Digest = sources.digest, method_at: str = DOCUMENTS[README]) -> str:
    """The text with every marked table made anew from the result files under ``folder``/<machine>/.

    Raises ValueError for a marker that names no table, or one without a recorded result.
    """
    return "".join(_filled(section, folder, digest, method_at) for section in _sections(text))


def _sections(text: str) -> list[str]:
    """The text, parted before each heading."""
    sections, fenced = [""], False
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            sections.append("")
        sections[-1] += line
    return sections


def _filled(section: str, folder: Path, digest: Digest, method_at: str) -> str:
    markers = list(_MARKED.finditer(section))
    tables = [_runs(marker, folder) for marker in markers]
    below = iter(zip(tables, recordings.notes(tables, digest, method_at), strict=True))
    return _MARKED.sub(lambda marker: _block(marker, *next(below)), section)


def _runs(marker: re.Match[str], folder: Path) -> list[Run]:
    """What the marked table is made from: the newest run of each of its sweeps, on the machine that it names."""
    name, asked, opening = marker["name"], marker["machine"], marker["open"].strip()
    if name not in TABLES:
        raise ValueError(f"{opening}: there is no table {name!r}; there are {', '.join(TABLES)}")
    found = [newest(folder, sweep) for sweep in SWEEPS_OF.get(name, (name,))]
    machines = list(dict.fromkeys(machine for by_machine in found for machine in by_machine))
    if asked is None and len(machines) > 1:
        raise ValueError(f"{opening}: recorded on {', '.join(machines)}; say which: table: {name} MACHINE")
    key = asked or next(iter(machines), None)
    if key not in machines:
        raise ValueError(f"{opening}: no result of this sweep is recorded{f' on {key}' if key else ''}")
    return [by_machine[key] for by_machine in found if key in by_machine]


def _block(marker: re.Match[str], runs: list[Run], notes: list[str]) -> str:
    table = TABLES[marker["name"]]([row for run in runs for row in run.rows])
    below = [line for note in notes for line in (note, "")]
    return "\n".join([marker["open"], *table, "", *below, marker["close"]])


def _largest(rows: list[Row]) -> list[Row]:
    """The rows of the largest size that has any, a dtype of several left out but the first."""
    rows = [row for row in rows if row.dtype == rows[0].dtype]
    return [row for row in rows if row.n == max(other.n for other in rows)]


def _shown(rows: list[Row], wanted: tuple[int, ...]) -> list[int]:
    """The sizes that were recorded, of those wanted if any of these was."""
    sizes = sorted({row.n for row in rows})
    return [n for n in sizes if n in wanted] or sizes


def _what(rows: list[Row]) -> str:
    row = _largest(rows)[0]
    return f"{row.dtype} {show_size(row.n)}"


def _timed(row: Row) -> list[str]:
    return [parts.seconds(row), parts.rate(row), parts.fraction(row)]


def _of_model(row: Row | None) -> str:
    if row is None or not row.seconds or not row.params.get("model_seconds"):
        return "-"
    return f"{row.seconds / row.params['model_seconds']:.3g}"


def _chain(row: Row) -> int:
    return int(row.params["parameters"]["chain"])


def _one_add(row: Row | None) -> str:
    if row is None:
        return "-"
    gain, one = latency_layout.gain(row), show_seconds(row.params["seconds_per_add"])
    if not gain:
        return one
    return f"{one} ({gain:.0f} x)" if gain >= 10 else f"{one} ({gain:.2g} x)"


def _reference(rows: list[Row]) -> str:
    return next((str(row.params["reference"]) for row in rows if "reference" in row.params), "")


def _rate(row: Row | None) -> str:
    if row is None or row.gbps is None:
        return "-"
    return show_rate(row.gbps) if row.fraction is None else f"{show_rate(row.gbps)} ({100 * row.fraction:.0f} %)"


def _seconds(row: Row | None) -> str:
    return "-" if row is None or row.seconds is None else show_seconds(row.seconds)


def _ratio(row: Row | None) -> str:
    return "-" if row is None or "ratio" not in row.params else f"{row.params['ratio']:.3g}"


def main() -> int:
    """Fills the tables, or with --check says which differ; exit status 1 where some do."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.readme_tables", description="fills the tables of README.md and benchmarks/README.md"
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 where it would change")
    check = parser.parse_args().check
    differ = False
    for document, method_at in DOCUMENTS.items():
        old = document.read_text()
        new = fill(old, method_at=method_at)
        if new == old:
            continue
        differ = True
        if check:
            print(
                f"{document.relative_to(ROOT)} differs from the recorded results: run python -m "
                "benchmarks.readme_tables",
                file=sys.stderr,
            )
        else:
            document.write_text(new)
    return 1 if check and differ else 0


if __name__ == "__main__":
    sys.exit(main())
