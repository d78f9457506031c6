"""The command ``vecadd fleet``: its options, what it prints and writes, its exit status."""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from vecadd import pages
from vecadd._command import STDOUT, UnaskableError, add_comparison_options, epilog, refuse_inputs, refuse_shared, target
from vecadd._version import package_version
from vecadd.figures import replace_file, write_json
from vecadd.fleet import changes, checks, files, outliers, tables
from vecadd.fleet.changes import Changes
from vecadd.fleet.checks import Check
from vecadd.fleet.hostlist import compressed
from vecadd.fleet.outliers import Found, Group
from vecadd.tables import Screen

SCHEMA, VERSION = files.FLEET, 1

__all__ = ["add_arguments", "run"]


@dataclass(frozen=True)
class Fleet:
    """What was read of a fleet, each machine's newest check, and what was found: ``failed`` are the hosts that failed
    their own check, ``excluded`` those and the hosts of every cause, ``left_out`` says which files are none."""

    newest: Sequence[Check]
    found: Found
    changed: Changes
    failed: list[str]
    excluded: list[str]
    left_out: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd fleet` takes."""
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="files of vecadd check --json, and folders with such files; several of one host are its runs",
    )
    parser.add_argument(
        "--group",
        type=_pattern,
        metavar="REGEX",
        help="what of a host's name is the name of its group, a rack say: the first parenthesis, or all that matches "
        "(default: all up to the number before the last one, rack07 of rack07-node12)",
    )
    add_comparison_options(parser)
    parser.add_argument(
        "--exclude", type=target, metavar="FILE", help="write the machines to leave out there, for Slurm"
    )
    parser.epilog = epilog(
        {
            "vecadd fleet results": "which machines are unlike their peers, by a folder with a file of each",
            "vecadd fleet results --exclude bad.txt --html fleet.html": "and sbatch --exclude=$(cat bad.txt)",
            "vecadd fleet results --group 'r([0-9]+)'": "racks by another pattern of the hosts' names",
        },
        {
            0: "no machine is unlike its peers or has failed its own check",
            1: "at least one is or has",
            2: "could not be asked: a wrong option, no file that can be read, or a package that is missing",
        },
    )


def run(arguments: argparse.Namespace) -> int:
    """Reads, compares, prints, writes; returns the exit status."""
    targets = {name: getattr(arguments, name) for name in ("json", "exclude", "html")}
    refuse_shared(targets)
    if arguments.html is not None:
        pages.require()
    read, left_out = _read(arguments.results)
    refuse_inputs(targets, [check.path for check in read])
    newest, before = changes.last_runs(read)
    least = arguments.least / 100
    group = arguments.group or outliers.by_name
    found = outliers.of(newest, least, group)
    changed = changes.of(newest, before, least, group)
    failed = [check.host for check in newest if check.status == "failed"]
    excluded = sorted({host for cause in found.causes for host in cause.hosts} | set(failed))
    fleet = Fleet(newest, found, changed, failed, excluded, left_out)
    _write(arguments, fleet)
    screen = Screen(sys.stderr if STDOUT in (arguments.json, arguments.exclude, arguments.html) else None)
    shown = [*tables.of_baselines(found), tables.of_outliers(found), *tables.of_changes(changed)]
    screen.show([table for table in shown if table.lines])
    screen.say(*_notes(fleet), tables.summary(newest, found, failed))
    if excluded:
        screen.say(f"to leave out: {compressed(excluded)}")
    return 1 if excluded else 0


def _read(paths: Sequence[Path]) -> tuple[list[Check], list[str]]:
    """The checks, and what is wrong with each other file: one broken file does not keep the rest of a fleet from being
    compared. What this command and `vecadd compare` wrote into a folder earlier is passed over. Raises UnaskableError
    where a file that was named, or all of a folder, cannot be read."""
    read: list[Check] = []
    left_out: list[str] = []
    for path in files.listed(paths):
        try:
            content = files.content(path)
            if content.get("schema") not in files.VERDICTS or path in paths:
                read.append(checks.of(path, content))
        except ValueError as error:
            if path in paths:
                raise UnaskableError(str(error)) from error
            left_out.append(str(error))
    if left_out and not read:
        raise UnaskableError(f"no file can be read as one of vecadd check: {left_out[0]}")
    if not read:
        raise UnaskableError(f"there is no file of vecadd check in {', '.join(map(str, paths))}")
    return read, left_out


def _notes(fleet: Fleet) -> list[str]:
    alone = f"too few machines of their type to be compared: {compressed(fleet.found.alone)}"
    return [
        *(f"left out: {line}" for line in fleet.left_out),
        *([alone] if fleet.found.alone else []),
        *tables.of_failures(fleet.newest),
    ]


def _write(arguments: argparse.Namespace, fleet: Fleet) -> None:
    if arguments.json is not None:
        content: dict[str, Any] = {
            "schema": SCHEMA,
            "schema_version": VERSION,
            "vecadd": package_version(),
            "status": "outliers" if fleet.excluded else "none",
            "machines": len(fleet.newest),
            "least_percent": arguments.least,
            "baselines": [
                {name: value for name, value in asdict(each).items() if name != "deviations"}
                for each in fleet.found.baselines
            ],
            "causes": [asdict(cause) for cause in fleet.found.causes],
            "failed": fleet.failed,
            "alone": fleet.found.alone,
            "changes": asdict(fleet.changed),
            "exclude": fleet.excluded,
            "left_out": fleet.left_out,
        }
        write_json(arguments.json, content)
    if arguments.exclude is not None:
        replace_file(arguments.exclude, f"{compressed(fleet.excluded)}\n" if fleet.excluded else "")
    if arguments.html is not None:
        replace_file(arguments.html, _page(fleet))


def _page(fleet: Fleet) -> str:
    newest_time, oldest_time = (each(check.time.astimezone(UTC) for check in fleet.newest) for each in (max, min))
    unlike = tables.of_outliers(fleet.found)
    said = tables.summary(fleet.newest, fleet.found, fleet.failed)
    first = [pages.verdict(f"{said}.", bad=bool(fleet.excluded))]
    if fleet.excluded:
        first += [
            ("text", "To leave out, as Slurm takes it (sbatch --exclude=…):"),
            ("code", compressed(fleet.excluded)),
        ]
    first += [("text", f"{note}.") for note in _notes(fleet)]
    causes: list[pages.Part] = [("missing", "No machine is unlike its peers.")]
    if unlike.lines:
        causes = [
            (
                "text",
                "Each line is a measurement in which a part, a whole machine or a group of machines is worse than its "
                "peers: the worst figure, what is usual for the same part, and how far that is.",
            ),
            pages.table(unlike),
        ]
    types = dict.fromkeys(baseline.machine_type for baseline in fleet.found.baselines)
    peers = [part for machine_type in types for part in _type(fleet.found, machine_type)]
    changes = [pages.table(table) for table in tables.of_changes(fleet.changed)]
    sections = [
        pages.Section("", "", first),
        pages.Section("unlike", "Unlike their peers", causes),
        pages.Section(
            "peers",
            "What peers reach",
            peers or [("missing", "There are too few machines of a type to compare them.")],
        ),
        pages.Section(
            "changes",
            "Since the last run",
            changes or [("missing", "Nothing has changed, or no machine has two runs in these files.")],
        ),
    ]
    return pages.render(
        f"Fleet of {len(fleet.newest)} machines",
        f"Checked from {oldest_time:%Y-%m-%d %H:%M} to {newest_time:%Y-%m-%d %H:%M} UTC",
        sections,
        [tables.METHOD],
    )


def _type(found: Found, machine_type: str) -> list[pages.Part]:
    """One type's baselines: a strip of each measurement in percent of its median, with what is unlike as marks."""
    baselines = [baseline for baseline in found.baselines if baseline.machine_type == machine_type]
    rows = []
    for each in baselines:
        low, middle, high = each.quantiles
        marks = [100 * deviation.value / middle for deviation in each.deviations if deviation.value is not None]
        rows.append((each.measurement, 100 * low / middle, 100.0, 100 * high / middle, marks, ""))
    caption = (
        "From the 1 % to the 99 % quantile of each measurement around its median, and each figure that is unlike its "
        "peers; of a time more is worse"
    )
    return [
        ("heading", machine_type),
        pages.strips(rows, caption, "percent of the median", 100.0),
        pages.table(*tables.of_baselines(Found(baselines))),
    ]


def _pattern(text: str) -> Group:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error

    def group(host: str) -> str | None:
        found = pattern.search(host)
        return found and (found[1] if pattern.groups else found[0])

    return group
