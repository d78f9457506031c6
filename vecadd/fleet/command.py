"""The command ``vecadd fleet``: its options, what it prints and writes, its exit status."""

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from itertools import groupby
from math import inf, log
from pathlib import Path
from typing import Any

from vecadd import pages
from vecadd._command import (
    UsageError,
    add_comparison_options,
    epilog,
    package_version,
    refuse_inputs,
    target,
)
from vecadd.figures import FLEET, Check, Outputs, check_of_content, json_text, read_objects
from vecadd.fleet import outliers
from vecadd.fleet.outliers import LEVELS, Cause, Changes, Deviation, Found, Group
from vecadd.tables import Column, Style, Table, columns, show_figure

# Host names as Slurm writes them: node[01-03,07].


def slurm_hostlist(hosts: Iterable[str]) -> str:
    """The hosts in one line, for ``sbatch --exclude``; names that differ in their last number share a bracket.

    >>> slurm_hostlist(["node07", "node01", "node02", "login"])
    'login,node[01-02,07]'
    """
    families: dict[tuple[str, int], set[int]] = {}
    names = set()
    for host in sorted(set(hosts)):
        found = re.fullmatch(r"(.*?)([0-9]+)", host)
        if found is None:
            names.add(host)
            continue
        prefix, digits = found.groups()
        width = len(digits) if digits.startswith("0") or (prefix, len(digits)) in families else 0
        families.setdefault((prefix, width), set()).add(int(digits))
    names |= {_family(prefix, width, sorted(numbers)) for (prefix, width), numbers in families.items()}
    return ",".join(sorted(names))


def _family(prefix: str, width: int, numbers: list[int]) -> str:
    ranges = [
        f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}"
        for first, last in _ranges(numbers)
    ]
    return f"{prefix}{ranges[0]}" if len(numbers) == 1 else f"{prefix}[{','.join(ranges)}]"


def _ranges(numbers: list[int]) -> Iterator[tuple[int, int]]:
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):  # the same in numbers without a gap
        found = [number for _, number in run]
        yield found[0], found[-1]


# What was found, as tables and sentences: for a terminal and for a page.

MOST_HOSTS = 60  # letters of a list of hosts in a table: the JSON has all

METHOD = (
    "Each figure is compared with those of the same part in machines of the same type, as logarithms, by the modified "
    "z-score (median and MAD; Iglewicz and Hoaglin, 1993). A figure is unlike its peers where it is worse than the "
    "normal law passes with a chance of 5 % in the whole fleet (Bonferroni, by Student's quantile), worse by two and a "
    "half times as much as the best peers are better, and by the smallest difference of interest. Where more than half "
    "of the parts of a machine, or of the machines of a group, have the same fault, they have it in common."
)


def table_of_causes(causes: Iterable[Cause], title: str, head: Sequence[str]) -> Table:
    """A line for each measurement of each cause, with its worst figure. ``head`` names the last columns."""
    table = Table(
        title,
        columns("what", Column("machines", right=False), Column("measurement", right=False), *head),
        optional_columns=(head[-1], head[1]),
    )
    for cause in causes:
        for measurement in dict.fromkeys(deviation.measurement for deviation in cause.deviations):
            some = [deviation for deviation in cause.deviations if deviation.measurement == measurement]
            most = max(some, key=_distance)
            table.add(
                show_subject(cause),
                show_hosts(cause.hosts),
                measurement,
                show_figure(most.figure.value, most.figure.unit),
                show_figure(most.usual, most.figure.unit),
                "no figure" if most.ratio is None else f"{100 * most.ratio:.0f} %",
                *([] if len(head) < 4 else ["-" if most.score is None else f"{most.score:.1f}"]),
                style=Style.FAILED,
            )
        table.add_gap()
    return table


def _distance(deviation: Deviation) -> float:
    """How far the figure is from where it is expected: from its peers, or else from what it was."""
    if deviation.ratio is None:
        return inf
    return abs(log(deviation.ratio or 1e-9) if deviation.score is None else deviation.score)


def table_of_outliers(found: Found) -> Table:
    """What is unlike its peers."""
    return table_of_causes(found.causes, "unlike their peers", ("measured", "usual", "of usual", "modified z"))


def tables_of_changes(changes: Changes) -> list[Table]:
    """What has changed since the last run: in words, worse and better."""
    noted = Table("since the last run", columns("machines", Column("what", right=False), "before", "after"))
    for note in changes.noted:
        noted.add(show_hosts(note.hosts), note.what, note.before, note.after)
    tables = [noted]
    for told, how in ((changes.worse, "worse"), (changes.better, "better")):
        beside = [cause for cause in told if cause.deviations[0].score is not None]
        alone = [cause for cause in told if cause.deviations[0].score is None]
        head = ("after", "before", "of before")
        tables.append(table_of_causes(beside, f"{how} than the others since the last run", (*head, "modified z")))
        tables.append(table_of_causes(alone, f"{how} than in the last run", head))
    return [table for table in tables if table.lines]


def show_subject(cause: Cause) -> str:
    """ "gpu 3", "machine", "group rack07"."""
    return f"group {cause.group}" if cause.level == "group" else cause.where or "machine"


def tables_of_baselines(found: Found) -> list[Table]:
    """What the machines of each type usually reach, a table each."""
    tables = []
    for machine_type in dict.fromkeys(baseline.machine_type for baseline in found.baselines):
        head = ("measurement", "machines", "figures", "1 %", "median", "99 %", "unlike")
        table = Table(f"what peers reach: {machine_type}", columns(*head), optional_columns=("machines", "figures"))
        for each in found.baselines:
            if each.machine_type == machine_type:
                quantiles = (show_figure(value, each.unit) for value in each.quantiles)
                counts = str(each.machines), str(each.count)
                table.add(each.measurement, *counts, *quantiles, str(len(each.deviations) or "-"))
        tables.append(table)
    return tables


def list_failures(checks: Iterable[Check]) -> list[str]:
    """The machines whose own check has failed, with its critical findings."""
    lines = []
    for check in checks:
        if check.status != "passed":
            critical = [figure.title for figure in check.figures if figure.fails]
            why = f": {', '.join(critical)}" if critical else ""
            said = "failed its own check" if check.status == "failed" else "was not judged by its own check"
            lines.append(f"{check.host} {said}{why}")
    return lines


def show_summary(newest: Sequence[Check], found: Found, failed: Sequence[str]) -> str:
    """The verdict on the fleet in a sentence."""
    types = len({check.machine_type for check in newest})
    counts = {level: sum(cause.level == level for cause in found.causes) for level in LEVELS}
    machines = len({host for cause in found.causes for host in cause.hosts})
    ill = [f"{count} {level}{'s' * (count > 1)}" for level, count in counts.items() if count]
    unlike = f"{', '.join(ill)} in {machines} of them unlike their peers" if ill else "none is unlike its peers"
    own = f", {len(failed)} failed their own check" if failed else ""
    return f"{len(newest)} machines of {types} type{'s' * (types != 1)}: {unlike}{own}"


def show_hosts(hosts: Sequence[str]) -> str:
    """The hosts as Slurm writes them; many of them are counted."""
    text = slurm_hostlist(hosts)
    return text if len(text) <= MOST_HOSTS else f"{len(hosts)} machines"


# The command

VERSION = 1

__all__ = ["add_arguments", "run"]


@dataclass(frozen=True)
class Fleet:
    """What was read of a fleet, each machine's newest check, and what was found: ``failed`` are the hosts that failed
    their own check, ``excluded`` those and the hosts of every cause, ``left_out`` says which files are unreadable."""

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
        type=parse_pattern,
        metavar="REGEX",
        help="the part of a host's name that names its group, for example a rack: the first parenthesis, or the whole "
        "match (default: all up to the number before the last one, rack07 of rack07-node12)",
    )
    add_comparison_options(parser)
    parser.add_argument(
        "--exclude", type=target, metavar="FILE", help="write the machines to leave out to this file, for Slurm"
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
    outputs = Outputs(arguments, "json", "exclude", "html")
    read, left_out = _read(arguments.results)
    refuse_inputs(outputs.paths, [check.path for check in read if isinstance(check.path, Path)])
    newest, before = outliers.find_last_runs(read)
    least = arguments.least / 100
    group = arguments.group or outliers.group_by_name
    found = outliers.find_outliers(newest, least, group)
    changed = outliers.find_changes(newest, before, least, group)
    failed = [check.host for check in newest if check.status == "failed"]
    excluded = sorted({host for cause in found.causes for host in cause.hosts} | set(failed))
    fleet = Fleet(newest, found, changed, failed, excluded, left_out)
    outputs.write(
        {
            "json": lambda: json_text(_content(arguments, fleet)),
            "exclude": lambda: f"{slurm_hostlist(excluded)}\n" if excluded else "",
            "html": lambda: _page(fleet),
        }
    )
    screen = outputs.screen
    shown = [*tables_of_baselines(found), table_of_outliers(found), *tables_of_changes(changed)]
    screen.show([table for table in shown if table.lines])
    screen.say(*_list_notes(fleet), show_summary(newest, found, failed))
    if excluded:
        screen.say(f"to leave out: {slurm_hostlist(excluded)}")
    return 1 if excluded else 0


def _read(paths: Sequence[Path]) -> tuple[list[Check], list[str]]:
    """The checks, and what is wrong with each other file: one broken file does not keep the rest of a fleet from being
    compared. Raises UsageError where a file that was named, or all of a folder, cannot be read."""
    read: list[Check] = []
    left_out: list[str] = []
    for path, content in read_objects(paths):
        try:
            if isinstance(content, ValueError):
                raise content
            read.append(check_of_content(path, content))
        except ValueError as error:
            if path in paths:
                raise UsageError(str(error)) from error
            left_out.append(str(error))
    if left_out and not read:
        raise UsageError(f"no file can be read as one of vecadd check: {left_out[0]}")
    if not read:
        raise UsageError(f"there is no file of vecadd check in {', '.join(map(str, paths))}")
    return read, left_out


def _list_notes(fleet: Fleet) -> list[str]:
    alone = f"too few machines of their type to be compared: {slurm_hostlist(fleet.found.alone)}"
    return [
        *(f"left out: {line}" for line in fleet.left_out),
        *([alone] if fleet.found.alone else []),
        *list_failures(fleet.newest),
    ]


def _content(arguments: argparse.Namespace, fleet: Fleet) -> dict[str, Any]:
    return {
        "schema": FLEET,
        "schema_version": VERSION,
        "vecadd": package_version(),
        "status": "outliers" if fleet.excluded else "none",
        "machines": len(fleet.newest),
        "least_percent": arguments.least,
        "baselines": [
            {name: value for name, value in asdict(each).items() if name != "deviations"}
            for each in fleet.found.baselines
        ],
        "causes": _rows_of_causes(fleet.found.causes),
        "failed": fleet.failed,
        "alone": fleet.found.alone,
        "changes": {
            "noted": [asdict(note) for note in fleet.changed.noted],
            "worse": _rows_of_causes(fleet.changed.worse),
            "better": _rows_of_causes(fleet.changed.better),
        },
        "exclude": fleet.excluded,
        "left_out": fleet.left_out,
    }


def _rows_of_causes(causes: Iterable[Cause]) -> list[dict[str, Any]]:
    return [{**vars(cause), "deviations": [_row_of_deviation(each) for each in cause.deviations]} for cause in causes]


def _row_of_deviation(deviation: Deviation) -> dict[str, Any]:
    return {
        "host": deviation.host,
        "measurement": deviation.measurement,
        "where": deviation.figure.where,
        "unit": deviation.figure.unit,
        "value": deviation.figure.value,
        "usual": deviation.usual,
        "ratio": deviation.ratio,
        "score": deviation.score,
    }


def _page(fleet: Fleet) -> str:
    newest_time, oldest_time = (each(check.time.astimezone(UTC) for check in fleet.newest) for each in (max, min))
    unlike = table_of_outliers(fleet.found)
    said = show_summary(fleet.newest, fleet.found, fleet.failed)
    first = [pages.verdict(f"{said}.", bad=bool(fleet.excluded))]
    if fleet.excluded:
        first += [
            ("text", "To leave out, as Slurm takes it (sbatch --exclude=…):"),
            ("code", slurm_hostlist(fleet.excluded)),
        ]
    first += [("text", f"{note}.") for note in _list_notes(fleet)]
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
    peers = [part for machine_type in types for part in _parts_of_type(fleet.found, machine_type)]
    changes = [pages.table(table) for table in tables_of_changes(fleet.changed)]
    sections = {
        "": first,
        "Unlike their peers": causes,
        "What peers reach": peers or [("missing", "There are too few machines of a type to compare them.")],
        "Since the last run": changes
        or [("missing", "Nothing has changed, or no machine has two runs in these files.")],
    }
    return pages.render(
        f"Fleet of {len(fleet.newest)} machines",
        f"Checked from {oldest_time:%Y-%m-%d %H:%M} to {newest_time:%Y-%m-%d %H:%M} UTC",
        sections,
        [METHOD],
    )


def _parts_of_type(found: Found, machine_type: str) -> list[pages.Part]:
    """One type's baselines: a strip of each measurement in percent of its median, with what is unlike as marks."""
    baselines = [baseline for baseline in found.baselines if baseline.machine_type == machine_type]
    rows = []
    for each in baselines:
        low, middle, high = each.quantiles
        values = (deviation.figure.value for deviation in each.deviations)
        marks = [100 * value / middle for value in values if value is not None]
        rows.append((each.measurement, 100 * low / middle, 100.0, 100 * high / middle, marks, ""))
    caption = (
        "From the 1 % to the 99 % quantile of each measurement around its median, and each figure that is unlike its "
        "peers; of a time more is worse"
    )
    return [
        ("heading", machine_type),
        pages.strips(rows, caption, "percent of the median", 100.0),
        pages.table(*tables_of_baselines(Found(baselines))),
    ]


def parse_pattern(text: str) -> Group:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error

    def group(host: str) -> str | None:
        found = pattern.search(host)
        return found and (found[1] if pattern.groups else found[0])

    return group
