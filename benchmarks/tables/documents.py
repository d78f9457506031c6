"""The tables of docs/*.md and benchmarks/README.md, made from the recorded results.

A table is between <!-- table: NAME --> and <!-- /table -->. NAME is one of TABLES or TABLES_OF_RUNS.
Where several machines have recorded it, <!-- table: NAME MACHINE --> says which.
Under each table: machine, date and commit; other libraries' versions, clock and method where they are not those above.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks import gpu_stages, ledger, model_check, why
from benchmarks.tables import peers, recordings, sweeps
from benchmarks.tables.recordings import Recording, newest
from vecadd.figures import Check, Figure, check_of_content, read_fields, read_object, show_date

ROOT = Path(__file__).resolve().parents[2]
METHOD = ROOT / "benchmarks" / "README.md"  # where the method is told
RESULTS = ROOT / "benchmarks" / "results"


def _find_marked(mark: str, end: str) -> re.Pattern[str]:
    """What is between <!-- mark --> and <!-- /end -->, with both."""
    return re.compile(rf"(?P<open><!-- {mark} -->\n).*?(?P<close><!-- /{end} -->)", re.S)


def _put_between(marker: re.Match[str], lines: Iterable[str]) -> str:
    """The marker with these lines, and an empty one, in place of those that it has."""
    return "\n".join([marker["open"], *lines, "", marker["close"]])


_MARKED = _find_marked(r"table: (?P<name>[\w-]+)(?: (?P<machine>\S+))?", "table")
_MARKED_CHECK = _find_marked(r"check: (?P<name>[\w-]+) (?P<machine>\S+)", "check")
_MARKED_VERIFIED = _find_marked("verified", "verified")


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
    "transpose": sweeps.matrices,
    "sgemm": sweeps.matrices,
    "steps": ledger.steps,
    "profile-kernels": sweeps.profiled_kernels,
    "profile-transfers": sweeps.profiled_transfers,
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
    "call-stages": sweeps.call_stages,
    "peer-transfer": peers.one_size,
    "peer-routes": peers.routes,
    "stores": sweeps.stores,
    "why-programs": why.programs,
    "why-costs": why.costs,
}

# Tables that need more of their runs than the rows: the probed limits, or the machine.
TABLES_OF_RUNS: dict[str, Callable[[list[Recording]], list[str]]] = {
    "model": sweeps.model_counts,
    "ahead": peers.ahead,
    "recorded-peers": peers.recorded,
}
WITHOUT_NOTES = ("ahead", "recorded-peers")  # of clock and method: these are under the tables that they quote

# Tables of ratios: below the first of a document is what a ratio and bold mean.
RATIOS = tuple(f"peer-{name}" for name in (
    "host", "host-dtypes", "installed", "device", "queued", "misaligned", "layouts", "end-to-end", "routes"
))  # fmt: skip
RATIO = (
    "*A ratio is the other's time over ours: above 1 vecadd takes less time. In bold the other takes significantly "
    "less time: the whole 95 % interval of the ratio is below 1.*"
)

_CLAIMED = (
    *("ladder", "inflight", "blocksize", "precision", "transfer", "latency", "transpose", "sgemm"),
    *("documents", "profile"),
)

# Tables made from the rows of sweeps with other names; below each is the first sweep's clock.
SWEEPS_OF = {
    "ledger": _CLAIMED,
    "lessons": _CLAIMED,
    "stages": ("transfer",),
    "cold-start": ("transfer",),
    "call-stages": ("peer-overhead",),
    "peer-host-dtypes": ("peer-host",),
    "peer-routes": ("peer-transfer",),
    "model": model_check.SWEEPS,
    "ahead": tuple(peers.PLACES),
    "recorded-peers": tuple(peers.RECORDED),
    "steps": ("ladder", "blocksize", "precision", "transfer", "latency", "documents"),
    "profile-kernels": ("profile",),
    "profile-transfers": ("profile",),
}


# Each document, and the path of the method relative to it.
DOCUMENTS = {
    document: os.path.relpath(METHOD, document.parent) for document in (*sorted((ROOT / "docs").glob("*.md")), METHOD)
}


def fill(text: str, folder: Path = RESULTS, method_at: str = "benchmarks/README.md") -> str:
    """The text with every marked table made anew from the result files under ``folder``/<machine>/.

    A table that no machine has recorded says so. Raises ValueError for a marker that names no table, or a machine that
    has not recorded it. The tables of checks and that of proofs and tests are filled too.
    """
    markers = list(_MARKED.finditer(text))
    tables = [_runs(marker, folder) for marker in markers]
    noted = [[] if marker["name"] in WITHOUT_NOTES else runs for marker, runs in zip(markers, tables, strict=True)]
    notes = recordings.notes(noted, method_at)
    ratios = (note for marker, note in zip(markers, notes, strict=True) if marker["name"] in RATIOS and note)
    for note in islice(ratios, 1):
        note.insert(0, RATIO)
    below = iter(zip(tables, notes, strict=True))
    filled = _MARKED.sub(lambda marker: _block(marker, *next(below)), text)
    filled = _MARKED_CHECK.sub(_check_block, filled)
    return _MARKED_VERIFIED.sub(lambda marker: _put_between(marker, verified_lines(folder)), filled)


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
    return _put_between(marker, [*table, *(line for note in notes for line in ("", note))])


# The tables of docs/check.md, from the files in benchmarks/checks that `vecadd check --json` wrote. A table is between
# <!-- check: NAME MACHINE --> and <!-- /check -->: NAME is one of CHECK_TABLES, MACHINE a file's name.

CHECKS = ROOT / "benchmarks" / "checks"


def _check_block(marker: re.Match[str]) -> str:
    name, path = marker["name"], CHECKS / f"{marker['machine']}.json"
    if name not in CHECK_TABLES:
        raise ValueError(f"{marker['open'].strip()}: there is no table {name!r}; there are {', '.join(CHECK_TABLES)}")
    if not path.is_file():
        raise ValueError(f"{marker['open'].strip()}: {path} is not a file of vecadd check")
    check = check_of_content(path, read_object(path))
    origin = (
        f"*`vecadd check` on {check.machine_type}, driver {check.meta['driver']}, "
        f"{show_date({'date': check.time, **check.vecadd})}: [all of it](../benchmarks/checks/{path.name}).*"
    )
    return _put_between(marker, [*CHECK_TABLES[name](check), "", origin])


def _memory_rates(check: Check) -> Iterator[str]:
    """Of the first GPU's memory: a line for each way to state its rate."""
    gpu, probed = check.meta["gpu"][0], check.meta["limits"]["device"]
    add = max(each.value or 0.0 for each in _find_figures(check, r"device memory/gpu 0/add .*"))
    yield "| | device memory | why |"
    yield "| --- | --- | --- |"
    lines = {
        "data sheet": (
            gpu["bandwidth"] / 1e9,
            "memory clock times bus width: no refresh, no turn between reading and writing",
        ),
        "read alone": (_find_value(check, "device memory/gpu 0/read"), "the bus never turns around"),
        "STREAM add, which is ours": (add, "two arrays read and one written: the bus turns around"),
        "copy": (probed["copy_gbps"], "a byte that is copied counts twice"),
        "copy, counted once": (probed["copy_gbps"] / 2, "some tools count it once"),
    }
    yield from (f"| {name} | {rate:.0f} GB/s | {why} |" for name, (rate, why) in lines.items())


def _pair_rates(check: Check) -> Iterator[str]:
    """A line for each GPU and each other: the three ways, and how they are connected."""
    yield "| | copy | read | write | connected by |"
    yield "| --- | --- | --- | --- | --- |"
    for copy in _find_figures(check, r"pair/gpu \d+ to gpu \d+/copy"):
        place = copy.where
        rates = (f"{_find_value(check, f'pair/{place}/{way}'):.0f} GB/s" for way in ("copy", "read", "write"))
        yield f"| {place.replace('gpu', 'GPU')} | {' | '.join(rates)} | {copy.source} each way |"


def _soak_rates(check: Check) -> Iterator[str]:
    """A line for each GPU: what was looked through, at which rate."""
    yield "| | found | rate |"
    yield "| --- | --- | --- |"
    for memory in _find_figures(check, r"soak/.*/memory"):
        rate = _find_value(check, f"soak/{memory.where}/rate")
        yield f"| {memory.where.replace('gpu', 'GPU')} | {memory.meaning} | {rate:.0f} GB/s |"


CHECK_TABLES: dict[str, Callable[[Check], Iterator[str]]] = {
    "normal": _memory_rates,
    "pairs": _pair_rates,
    "soak": _soak_rates,
}


def _find_figures(check: Check, pattern: str) -> list[Figure]:
    """Those whose id is of this form."""
    return [each for each in check.figures if re.fullmatch(pattern, each.name)]


def _find_value(check: Check, id: str) -> float:
    (found,) = _find_figures(check, re.escape(id))
    assert found.value is not None
    return found.value


# What was proven and tested: which proof, long run or stage of `make gpu`, when and at which commit

STAGES = ("test", "large", "sanitize")  # of `make gpu`: the others measure, and their figures are in the documents


def verified_lines(folder: Path) -> Iterator[str]:
    """A line for each result file that is not in a machine's folder, then one for each stage."""
    yield "| what | when |"
    yield "| --- | --- |"
    for path in sorted(folder.glob("*.json")):
        content = read_fields(path)
        yield f"| [`{path.name}`](results/{path.name}) | {show_date(content.get('meta', content))} |"
    for path in sorted(folder.glob(f"*/{gpu_stages.FILE}")):
        for stage in gpu_stages.read(path):
            if stage["stage"] in STAGES:
                what = f"`make gpu STAGE={stage['stage']}`, {path.parent.name}: {stage['verdict']}"
                yield f"| {what} | {show_date(stage)} |"
