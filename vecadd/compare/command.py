"""The command ``vecadd compare``: its options, what it prints and writes, its exit status."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from vecadd import pages
from vecadd._command import STDOUT, UnaskableError, add_comparison_options, epilog, refuse_inputs, refuse_shared
from vecadd._version import package_version
from vecadd.compare import figures, tables, verdict
from vecadd.compare.figures import Side
from vecadd.compare.verdict import Comparison
from vecadd.figures import replace_file, write_json
from vecadd.fleet import files
from vecadd.tables import Screen

SCHEMA, VERSION = files.COMPARISON, 1
PICTURED = 40  # rows, at most; the table has all

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd compare` takes."""
    what = "files of vecadd bench, of the comparisons with other libraries or of vecadd check: one file, or a folder"
    parser.add_argument("old", type=Path, metavar="OLD", help=f"the earlier run: {what}")
    parser.add_argument("new", type=Path, metavar="NEW", help="the later run")
    add_comparison_options(parser)
    parser.add_argument("--all", action="store_true", help="show the rows that are the same or undecided too")
    parser.epilog = epilog(
        {
            "vecadd compare before.json after.json": "what a change of the code, the driver or the machine has done",
            "vecadd compare before after --least 2 --html compare.html": "two folders of result files, and a page",
        },
        {
            0: "nothing is surely slower",
            1: "something is surely slower, or fails that did not fail",
            2: "could not be asked: a wrong option, files of another kind or with nothing in common, a missing package",
        },
    )


def run(arguments: argparse.Namespace) -> int:
    """Reads, compares, prints, writes; returns the exit status."""
    targets = {"json": arguments.json, "html": arguments.html}
    refuse_shared(targets)
    if arguments.html is not None:
        pages.require()
    try:
        sides = [figures.contents([path]) for path in (arguments.old, arguments.new)]
        refuse_inputs(targets, [path for side in sides for path in side])
        old, new = (figures.side(figures.read(side)) for side in sides)
    except ValueError as error:
        raise UnaskableError(str(error)) from error
    comparison = verdict.of(old, new, arguments.least / 100)
    if not comparison.rows:
        raise UnaskableError(
            f"{arguments.old} and {arguments.new} have no figure in common: they have {len(old.figures)} and "
            f"{len(new.figures)}, of other sweeps, rungs, dtypes or sizes"
        )
    if arguments.json is not None:
        write_json(arguments.json, _content(arguments, old, new, comparison))
    if arguments.html is not None:
        replace_file(arguments.html, _page(arguments, old, new, comparison))
    screen = Screen(sys.stderr if STDOUT in (arguments.json, arguments.html) else None)
    shown = tables.table(
        "compare", [row for row in comparison.rows if arguments.all or row.verdict not in ("same", "undecided")]
    )
    screen.show([shown] if shown.lines else [])
    screen.say(*_machines(old, new), tables.summary(comparison, arguments.least))
    return 1 if comparison.is_worse else 0


def _machines(old: Side, new: Side) -> list[str]:
    if old.machines == new.machines:
        return []
    return [f"the old run is of {', '.join(old.machines)}, the new one of {', '.join(new.machines)}"]


def _content(arguments: argparse.Namespace, old: Side, new: Side, comparison: Comparison) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "schema_version": VERSION,
        "vecadd": package_version(),
        "status": "slower" if comparison.is_worse else "not slower",
        "least_percent": arguments.least,
        "machines": {"old": old.machines, "new": new.machines},
        "counts": {name: comparison.count(name) for name in verdict.VERDICTS},
        "rows": [asdict(row) for row in comparison.rows],
        "only_old": comparison.only_old,
        "only_new": comparison.only_new,
    }


def _page(arguments: argparse.Namespace, old: Side, new: Side, comparison: Comparison) -> str:
    kinds = {"slower": "bad", "failed": "bad", "faster": "good"}
    decided = [row for row in comparison.rows if row.ratio and row.interval and row.verdict != "undecided"]
    rows = [
        (row.name, row.interval[0], row.ratio, row.interval[1], (), kinds.get(row.verdict, "plain"))
        for row in tables.ordered(decided)[:PICTURED]
        if row.ratio and row.interval
    ]
    said = tables.summary(comparison, arguments.least)
    caption = (
        f"The {len(rows)} figures that say most, slower ones first, each with its 95 % interval: at 1 both runs take "
        "the same time"
    )
    changes: pages.Part = "missing", "No difference is decided by its interval."
    if rows:
        changes = pages.strips(rows, caption, "time of the new run over that of the old one", 1.0)
    title = f"All {len(comparison.rows)} figures"
    sections = [
        pages.Section("", "", [pages.verdict(f"{said}.", bad=comparison.is_worse)]),
        pages.Section("changes", "What has changed", [changes]),
        pages.Section(
            "rows",
            "All figures",
            [("folded", (f"The figures: {title}", pages.table(tables.table(title, comparison.rows))))],
        ),
        pages.Section(
            "only",
            "In one run alone",
            [_only("old", comparison.only_old), _only("new", comparison.only_new)],
        ),
    ]
    return pages.render(
        f"{arguments.new.name} against {arguments.old.name}",
        f"Old: {', '.join(old.machines)}. New: {', '.join(new.machines)}.",
        sections,
        [tables.METHOD],
    )


def _only(which: str, names: list[str]) -> pages.Part:
    if not names:
        return "missing", f"None is only in the {which} run."
    return "folded", (f"Only in the {which} run: {len(names)}", ("list", names))
