"""Fills the tables of README.md from the recorded results: python -m benchmarks.readme_tables [--check].

A table stands between <!-- table: NAME --> and <!-- /table -->. NAME is one of TABLES; where several machines have
recorded it, <!-- table: NAME MACHINE --> says which. Under each table stands how, where and when it was measured, and
whether the sources have changed since.
"""

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vecadd.bench import machine, results
from vecadd.bench.axes import show_size
from vecadd.bench.results import Row
from vecadd.bench.show import show_rate, show_seconds
from vecadd.bench.tables.table import markdown

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"

_MARKED = re.compile(
    r"(?P<open><!-- table: (?P<name>[\w-]+)(?: (?P<machine>\S+))? -->\n).*?(?P<close><!-- /table -->)", re.S
)


@dataclass(frozen=True)
class Recorded:
    """One recorded run of one sweep."""

    meta: dict[str, Any]
    rows: list[Row]


def rates(recorded: Recorded) -> list[str]:
    """GB/s of each rung by size, with the percentage of the limit; one line a size."""
    rungs = list(dict.fromkeys(row.label for row in recorded.rows))
    several = len({row.dtype for row in recorded.rows}) > 1
    cells = {(row.dtype, row.n, row.label): row for row in recorded.rows}
    lines = []
    for dtype, n in dict.fromkeys((row.dtype, row.n) for row in recorded.rows):
        head = f"{dtype} {show_size(n)}" if several else show_size(n)
        lines.append([head, *(_rate(cells.get((dtype, n, rung))) for rung in rungs)])
    return markdown(["n, GB/s (% of limit)", *rungs], lines)


def times(recorded: Recorded) -> list[str]:
    """Seconds of each contestant and the paired ratio to the reference; one line a row."""
    several = len({(row.dtype, row.n) for row in recorded.rows}) > 1
    lines = [
        [f"{row.label}, {show_size(row.n)}" if several else row.label, *_time(row)]
        for row in recorded.rows
        if row.seconds is not None
    ]
    return markdown(["", "time", "GB/s", "time / ours (95 % interval)"], lines)


def ratios(recorded: Recorded) -> list[str]:
    """Time of each peer over ours by size: above 1 the peer is slower."""
    rungs = [name for name in dict.fromkeys(row.label for row in recorded.rows) if name != _reference(recorded)]
    cells = {(row.n, row.label): row for row in recorded.rows}
    sizes = dict.fromkeys(row.n for row in recorded.rows)
    lines = [
        [
            show_size(n),
            _seconds(cells.get((n, _reference(recorded)))),
            *(_ratio(cells.get((n, rung))) for rung in rungs),
        ]
        for n in sizes
    ]
    return markdown(["n", f"{_reference(recorded)}: time", *(f"{rung} / ours" for rung in rungs)], lines)


TABLES: dict[str, Callable[[Recorded], list[str]]] = {
    "host": rates,
    "size": rates,
    "transfer": rates,
    "peer-host": ratios,
    "peer-device": ratios,
    "peer-overhead": times,
    "peer-transfer": times,
}

# Rows that were recorded under the sweep's earlier name.
EARLIER = {"size": "device"}


def fill(text: str, folder: Path = RESULTS, revision: str | None = None) -> str:
    """The text with every marked table made anew from the result files under ``folder``/<machine>/.

    Raises ValueError for a marker that names no table, or one without a recorded result.
    """
    revision = revision or machine.revision()
    return _MARKED.sub(lambda found: _table(found, folder, revision), text)


def _table(found: re.Match[str], folder: Path, revision: str | None) -> str:
    name, asked = found["name"], found["machine"]
    if name not in TABLES:
        raise ValueError(f"{found['open'].strip()}: there is no table {name!r}; there are {', '.join(TABLES)}")
    recorded = _recorded(folder, name)
    if asked is None and len(recorded) > 1:
        raise ValueError(
            f"{found['open'].strip()}: recorded on {', '.join(recorded)}; say which: table: {name} MACHINE"
        )
    key = asked or next(iter(recorded), None)
    if key not in recorded:
        raise ValueError(f"{found['open'].strip()}: no result of this sweep is recorded{f' on {key}' if key else ''}")
    run = recorded[key]
    return "\n".join([found["open"], *TABLES[name](run), "", _origin(run, name, revision), "", found["close"]])


def _recorded(folder: Path, sweep: str) -> dict[str, Recorded]:
    """The newest recorded run of a sweep on each machine."""
    newest: dict[str, Recorded] = {}
    for path in sorted(folder.glob("*/*.json")):
        meta, rows = results.read(path)
        run = Recorded(meta, [row for row in rows if row.sweep in (sweep, EARLIER.get(sweep))])
        known = newest.get(path.parent.name)
        if run.rows and (known is None or known.meta["date"] < meta["date"]):
            newest[path.parent.name] = run
    return newest


def _origin(run: Recorded, sweep: str, revision: str | None) -> str:
    meta = run.meta
    cpu = meta["cpu"]
    gpus = [gpu["name"] for gpu in meta["gpu"]]
    where = gpus[0] if gpus else f"{cpu['model'] or 'processor unknown'}, {cpu['threads']} threads"
    moved = "" if meta["revision"] == revision else "; the sources have changed since"
    driver = f", driver {meta['driver']}" if gpus else ""
    clocks = meta.get("clocks", {})
    method = "; ".join(filter(None, (meta["method"], clocks.get(sweep) or clocks.get(EARLIER.get(sweep)))))
    return f"*{where}{driver}, {meta['date'][:10]}, revision {meta['revision']}{moved}. Method: {method}.*"


def _reference(recorded: Recorded) -> str:
    return next((str(row.params["reference"]) for row in recorded.rows if "reference" in row.params), "")


def _rate(row: Row | None) -> str:
    if row is None or row.gbps is None:
        return "-"
    return show_rate(row.gbps) if row.fraction is None else f"{show_rate(row.gbps)} ({100 * row.fraction:.0f} %)"


def _seconds(row: Row | None) -> str:
    return "-" if row is None or row.seconds is None else show_seconds(row.seconds)


def _ratio(row: Row | None) -> str:
    return "-" if row is None or "ratio" not in row.params else f"{row.params['ratio']:.3g}"


def _time(row: Row) -> list[str]:
    if "ratio" not in row.params:
        return [_seconds(row), show_rate(row.gbps or 0), "1"]
    low, high = row.params["ratio_interval"]
    return [_seconds(row), show_rate(row.gbps or 0), f"{row.params['ratio']:.3g} ({low:.3g} to {high:.3g})"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme_tables", description="fills README.md's tables")
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 where it would change")
    check = parser.parse_args().check
    old = README.read_text()
    new = fill(old)
    if new == old:
        return 0
    if check:
        print("README.md differs from the recorded results: run python -m benchmarks.readme_tables", file=sys.stderr)
        return 1
    README.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
