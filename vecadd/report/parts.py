"""The parts of a report: which rows each is about, what it says of them, and how to record what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isinf
from typing import Any

from vecadd import pages
from vecadd.bench.results import Row
from vecadd.bench.show import show_bounds, show_figure
from vecadd.bench.tables import tables
from vecadd.bench.tables.table import Column, Table, columns
from vecadd.fleet.checks import Check
from vecadd.report import sentences
from vecadd.report.runs import Runs
from vecadd.report.sentences import Sentences


@dataclass(frozen=True)
class Part:
    """``sweeps`` are those of its rows, by their names or, with a star, by what they begin with; ``record`` is the
    command that makes a file with them."""

    anchor: str
    title: str
    sweeps: tuple[str, ...]
    says: Sentences
    record: str


PARTS = (
    Part("ladder", "The ladder", ("ladder",), sentences.ladder, "vecadd bench ladder --json ladder.json"),
    Part("sizes", "Sizes", ("size", "host"), sentences.sizes, "vecadd bench size host --json sizes.json"),
    Part("transfers", "Transfers", ("transfer",), sentences.transfers, "vecadd bench transfer --json transfer.json"),
    Part("latency", "Latency", ("latency",), sentences.latency, "vecadd bench latency --json latency.json"),
    Part("peers", "Other libraries", ("peer-*",), sentences.peers, "make peers RESULTS=DIR (in a checkout)"),
)


def of(runs: Runs) -> list[dict[str, Any]]:
    """The parts of the page in order, whether there is something for them or not."""
    return [_limits(runs), *(_rows(part, runs) for part in PARTS), _conditions(runs)]


def _limits(runs: Runs) -> dict[str, Any]:
    part = _part("limits", "Limits", "vecadd bench --json all.json")
    if runs.meta:
        part["sentences"] = sentences.limits(runs.meta, runs.of("host")[1])
        shown = sentences.theory(runs.meta)
        shares = [(line.cells[0], float(line.cells[3])) for line in shown.lines if line]
        if shares:
            rows = [(name, 0.0, share, share, (), "") for name, share in shares]
            part["strips"] = pages.strips(rows, "percent of theory", 100.0)
            part["tables"] = [pages.table(shown)]
        part["missing"] = not part["sentences"]
    return part


def _rows(part: Part, runs: Runs) -> dict[str, Any]:
    meta, rows = runs.of(*part.sweeps)
    found = _part(part.anchor, part.title, part.record)
    if rows:
        from vecadd.bench import plots
        from vecadd.report.pictures import inline

        names = [name for name in plots.names(rows) if not name.endswith("-log") and not name.startswith("timeline-")]
        drawn = [plots.figure(meta, rows, name, recorded=True) for name in names]
        found |= {
            "sentences": part.says(rows),
            "pictures": [
                {"name": name, "svg": inline(figure, name)} for figure, name in zip(drawn, names, strict=True) if figure
            ],
            "folded": [pages.table(table) for table in tables(rows)],
            "missing": False,
        }
    return found


def _conditions(runs: Runs) -> dict[str, Any]:
    part = _part("conditions", "Conditions and check", "vecadd check --json check.json")
    part["sentences"] = sentences.conditions(runs.meta, runs.check)
    part["missing"] = runs.check is None
    if runs.check:
        part["tables"] = [pages.table(_findings(runs.check))]
    return part


def _findings(check: Check) -> Table:
    table = Table(
        f"Check of {check.host}",
        columns(
            "what",
            Column("severity", right=False),
            "measured",
            "expected",
            Column("meaning", right=False),
            Column("next", right=False),
        ),
    )
    for each in check.findings:
        low, high = (None if isinf(end) else end for end in each.expected or (-inf, inf))
        expected = show_bounds(low, high, each.unit)
        table.add(each.name, each.severity, show_figure(each.value, each.unit), expected, each.meaning, each.next)
    return table


def _part(anchor: str, title: str, record: str) -> dict[str, Any]:
    return {
        "anchor": anchor,
        "title": title,
        "record": record,
        "missing": True,
        "sentences": [],
        "strips": None,
        "tables": [],
        "pictures": [],
        "folded": [],
    }


def others(rows: Sequence[Row]) -> list[str]:
    """The sweeps that no part is about."""
    known = [name for part in PARTS for name in part.sweeps]
    return [
        sweep
        for sweep in dict.fromkeys(row.sweep for row in rows)
        if sweep not in known and not any(sweep.startswith(name[:-1]) for name in known if name.endswith("*"))
    ]
