"""The tables of README.md, docs/*.md and benchmarks/README.md, made from the recorded results.

A table stands between <!-- table: NAME --> and <!-- /table -->. NAME is one of TABLES or TABLES_OF_RUNS.
Where several machines have recorded it, <!-- table: NAME MACHINE --> says which.
Under each table: machine, date, commit, versions of the other libraries, and clock.
"""

import os
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from benchmarks import ledger, model_check
from benchmarks.tables import (
    ahead,
    call_costs,
    checks,
    model,
    peers,
    profiles,
    recordings,
    stores,
    sweeps,
    verified,
    why,
)
from benchmarks.tables.recordings import Recording, newest
from vecadd.figures import Figure

ROOT = Path(__file__).resolve().parents[2]
METHOD = ROOT / "benchmarks" / "README.md"  # where the method is told
RESULTS = ROOT / "benchmarks" / "results"

_MARKED = re.compile(
    r"(?P<open><!-- table: (?P<name>[\w-]+)(?: (?P<machine>\S+))? -->\n).*?(?P<close><!-- /table -->)", re.S
)


TABLES: dict[str, Callable[[list[Figure]], list[str]]] = {
    "host": sweeps.rates,
    "size": sweeps.rates,
    "ladder": sweeps.ladder,
    "inflight": sweeps.inflight,
    "blocksize": sweeps.blocksize,
    "precision": sweeps.precision,
    "transfer": sweeps.transfer,
    "stages": sweeps.stages,
    "cold-start": sweeps.cold_start,
    "documents": sweeps.documents,
    "latency": sweeps.latency,
    "steps": ledger.steps,
    "profile-kernels": profiles.kernels,
    "profile-transfers": profiles.transfers,
    "ledger": ledger.ledger,
    "lessons": ledger.lessons,
    "peer-host": peers.host_forms,
    "peer-host-dtypes": peers.host_dtypes,
    "peer-installed": peers.installed,
    "peer-device": peers.ratios,
    "peer-queued": peers.queued,
    "peer-misaligned": peers.misaligned,
    "peer-layouts": peers.layouts,
    "peer-scaling": peers.plain,
    "peer-l2-pollution": peers.plain,
    "peer-many": peers.plain,
    "peer-end-to-end": peers.ratios,
    "peer-files": peers.files,
    "peer-overhead": peers.calls,
    "call-stages": call_costs.stages,
    "peer-transfer": peers.one_size,
    "peer-routes": peers.routes,
    "stores": stores.stores,
    "why-programs": why.programs,
    "why-costs": why.costs,
}

# Tables that need more of their runs than the rows: the probed limits, or the machine.
TABLES_OF_RUNS: dict[str, Callable[[list[Recording]], list[str]]] = {
    "transpose": model.matrices,
    "sgemm": model.matrices,
    "model": model.counts,
    "ahead": ahead.ahead,
    "recorded-peers": peers.recorded,
}
WITHOUT_NOTES = ("ahead", "recorded-peers")  # of clock and method: these are under the tables that they quote

# Tables of ratios: under the first of a section stands what a ratio and bold mean.
RATIOS = tuple(f"peer-{name}" for name in (
    "host", "host-dtypes", "installed", "device", "queued", "misaligned", "layouts", "end-to-end", "routes"
))  # fmt: skip
RATIO = (
    "*A ratio is the other's time over ours: above 1 vecadd takes less time. In bold the other surely takes less: the "
    "whole 95 % interval of the ratio is below 1.*"
)

_CLAIMED = (
    *("ladder", "inflight", "blocksize", "precision", "transfer", "latency", "transpose", "sgemm"),
    *("documents", "profile"),
)

# Tables made from the rows of sweeps with other names; under each stands the first sweep's clock.
SWEEPS_OF = {
    "ledger": _CLAIMED,
    "lessons": _CLAIMED,
    "stages": ("transfer",),
    "cold-start": ("transfer",),
    "call-stages": ("peer-overhead",),
    "peer-host-dtypes": ("peer-host",),
    "peer-routes": ("peer-transfer",),
    "model": model_check.SWEEPS,
    "ahead": tuple(ahead.PLACES),
    "recorded-peers": tuple(peers.RECORDED),
    "steps": ("ladder", "blocksize", "precision", "transfer", "latency", "documents"),
    "profile-kernels": ("profile",),
    "profile-transfers": ("profile",),
}


# Each document, and the path of the method relative to it.
DOCUMENTS = {
    document: os.path.relpath(METHOD, document.parent)
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), METHOD)
}


def fill(text: str, folder: Path = RESULTS, method_at: str = "benchmarks/README.md") -> str:
    """The text with every marked table made anew from the result files under ``folder``/<machine>/.

    A table that no machine has recorded says so. Raises ValueError for a marker that names no table, or a machine that
    has not recorded it. The tables of checks (checks.py) and that of proofs and tests (verified.py) are filled too.
    """
    filled = "".join(_filled(section, folder, method_at) for section in _sections(text))
    return verified.fill(checks.fill(filled), folder)


def _sections(text: str) -> list[str]:
    """The text, parted before each heading."""
    sections, fenced = [""], False
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            sections.append("")
        sections[-1] += line
    return sections


def _filled(section: str, folder: Path, method_at: str) -> str:
    markers = list(_MARKED.finditer(section))
    tables = [_runs(marker, folder) for marker in markers]
    noted = [[] if marker["name"] in WITHOUT_NOTES else runs for marker, runs in zip(markers, tables, strict=True)]
    notes = recordings.notes(noted, method_at)
    ratios = (note for marker, note in zip(markers, notes, strict=True) if marker["name"] in RATIOS and note)
    for note in islice(ratios, 1):
        note.insert(0, RATIO)
    below = iter(zip(tables, notes, strict=True))
    return _MARKED.sub(lambda marker: _block(marker, *next(below)), section)


def _runs(marker: re.Match[str], folder: Path) -> list[Recording]:
    """The runs that the marked table is made from: the newest of each of its sweeps, on the machine that it names; none
    where no machine has recorded any."""
    name, asked, opening = marker["name"], marker["machine"], marker["open"].strip()
    if name not in TABLES.keys() | TABLES_OF_RUNS.keys():
        raise ValueError(f"{opening}: there is no table {name!r}; there are {', '.join([*TABLES, *TABLES_OF_RUNS])}")
    found = [newest(folder, sweep) for sweep in SWEEPS_OF.get(name, (name,))]
    machines = list(dict.fromkeys(machine for by_machine in found for machine in by_machine))
    if asked is None and len(machines) > 1:
        raise ValueError(f"{opening}: recorded on {', '.join(machines)}; say which: table: {name} MACHINE")
    if asked is not None and asked not in machines:
        raise ValueError(f"{opening}: no result of this sweep is recorded on {asked}")
    key = asked or next(iter(machines), None)
    return [by_machine[key] for by_machine in found if key in by_machine]


def _table(name: str, runs: list[Recording]) -> list[str]:
    if name in TABLES_OF_RUNS:
        return TABLES_OF_RUNS[name](runs)
    return TABLES[name]([row for run in runs for row in run.figures])


def _block(marker: re.Match[str], runs: list[Recording], notes: list[str]) -> str:
    table = _table(marker["name"], runs) if runs else ["*Not recorded yet.*"]
    below = [line for note in notes for line in (note, "")]
    return "\n".join([marker["open"], *table, "", *below, marker["close"]])
