"""Fills the tables of README.md, docs/*.md and benchmarks/README.md from the recorded results.

    python -m benchmarks.readme_tables [--check]

A table stands between <!-- table: NAME --> and <!-- /table -->. NAME is one of TABLES; where several machines have
recorded it, <!-- table: NAME MACHINE --> says which. Under each table stands how it was timed; under the last one of a
section where and when its tables were measured, and whether the timed sources have changed since.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import call_costs, peer_tables, recordings, sweep_tables
from benchmarks.recordings import Digest, Run, newest
from vecadd.bench import sources
from vecadd.bench.results import Row

ROOT = Path(__file__).resolve().parents[1]
METHOD = ROOT / "benchmarks" / "README.md"  # where the method is told
RESULTS = ROOT / "benchmarks" / "results"

_MARKED = re.compile(
    r"(?P<open><!-- table: (?P<name>[\w-]+)(?: (?P<machine>\S+))? -->\n).*?(?P<close><!-- /table -->)", re.S
)


TABLES: dict[str, Callable[[list[Row]], list[str]]] = {
    "host": sweep_tables.rates,
    "size": sweep_tables.rates,
    "ladder": sweep_tables.ladder,
    "blocksize": sweep_tables.blocksize,
    "precision": sweep_tables.precision,
    "transfer": sweep_tables.transfer,
    "stages": sweep_tables.stages,
    "latency": sweep_tables.latency,
    "steps": sweep_tables.steps,
    "peer-host": peer_tables.host_forms,
    "peer-host-dtypes": peer_tables.host_dtypes,
    "peer-device": peer_tables.ratios,
    "peer-queued": peer_tables.queued,
    "peer-misaligned": peer_tables.misaligned,
    "peer-layouts": peer_tables.layouts,
    "peer-scaling": peer_tables.plain,
    "peer-l2-pollution": peer_tables.plain,
    "peer-many": peer_tables.plain,
    "peer-end-to-end": peer_tables.ratios,
    "peer-files": peer_tables.files,
    "peer-overhead": peer_tables.calls,
    "call-stages": call_costs.stages,
    "peer-transfer": peer_tables.one_size,
    "peer-routes": peer_tables.routes,
}

# Tables made from the rows of sweeps with other names; under each stands the first sweep's clock.
SWEEPS_OF = {
    "stages": ("transfer",),
    "call-stages": ("peer-overhead",),
    "peer-host-dtypes": ("peer-host",),
    "peer-routes": ("peer-transfer",),
    "steps": ("ladder", "blocksize", "precision", "transfer", "latency"),
}


# Each document, and the path of the method relative to it.
DOCUMENTS = {
    document: os.path.relpath(METHOD, document.parent)
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), METHOD)
}


def fill(
    text: str, folder: Path = RESULTS, digest: Digest = sources.digest, method_at: str = "benchmarks/README.md"
) -> str:
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
    """The runs that the marked table is made from: the newest of each of its sweeps, on the machine that it names."""
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


def main() -> int:
    """Fills the tables, or with --check says which differ; exit status 1 where some do."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.readme_tables",
        description="fills the tables of README.md, docs/*.md and benchmarks/README.md",
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
