"""What was found, as tables and sentences: for a terminal and for a page."""

from collections.abc import Iterable, Sequence
from math import inf, log

from vecadd.fleet.changes import Changes
from vecadd.fleet.checks import Check
from vecadd.fleet.hostlist import compressed
from vecadd.fleet.outliers import LEVELS, Cause, Deviation, Found
from vecadd.tables import Column, Style, Table, columns, show_figure

MOST_HOSTS = 60  # letters of a list of hosts in a table: the JSON has all

METHOD = (
    "Each figure is held against those of the same part in machines of the same type, as logarithms, by the modified "
    "z-score (median and MAD; Iglewicz and Hoaglin, 1993). A figure is unlike its peers where it is worse than the "
    "normal law passes with a chance of 5 % in the whole fleet (Bonferroni, by Student's quantile), worse by two and a "
    "half times as much as the best peers are better, and by the smallest difference of interest. Where more than half "
    "of the parts of a machine, or of the machines of a group, have the same fault, they have it in common."
)


def of_causes(causes: Iterable[Cause], title: str, head: Sequence[str]) -> Table:
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
                subject(cause),
                hosts_of(cause.hosts),
                measurement,
                show_figure(most.value, most.unit),
                show_figure(most.usual, most.unit),
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


def of_outliers(found: Found) -> Table:
    """What is unlike its peers."""
    return of_causes(found.causes, "unlike their peers", ("measured", "usual", "of usual", "modified z"))


def of_changes(changes: Changes) -> list[Table]:
    """What has changed since the last run: in words, worse and better."""
    noted = Table("since the last run", columns("machines", Column("what", right=False), "before", "after"))
    for note in changes.noted:
        noted.add(hosts_of(note.hosts), note.what, note.before, note.after)
    tables = [noted]
    for told, how in ((changes.worse, "worse"), (changes.better, "better")):
        beside = [cause for cause in told if cause.deviations[0].score is not None]
        alone = [cause for cause in told if cause.deviations[0].score is None]
        head = ("after", "before", "of before")
        tables.append(of_causes(beside, f"{how} than the others since the last run", (*head, "modified z")))
        tables.append(of_causes(alone, f"{how} than in the last run", head))
    return [table for table in tables if table.lines]


def subject(cause: Cause) -> str:
    """ "gpu 3", "machine", "group rack07"."""
    return f"group {cause.group}" if cause.level == "group" else cause.where or "machine"


def of_baselines(found: Found) -> list[Table]:
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


def of_failures(checks: Iterable[Check]) -> list[str]:
    """The machines whose own check has failed, with its critical findings."""
    lines = []
    for check in checks:
        if check.status != "passed":
            critical = [finding.name for finding in check.findings if finding.severity == "critical"]
            why = f": {', '.join(critical)}" if critical else ""
            said = "failed its own check" if check.status == "failed" else "was not judged by its own check"
            lines.append(f"{check.host} {said}{why}")
    return lines


def summary(newest: Sequence[Check], found: Found, failed: Sequence[str]) -> str:
    """The verdict on the fleet in a sentence."""
    types = len({check.machine_type for check in newest})
    counts = {level: sum(cause.level == level for cause in found.causes) for level in LEVELS}
    machines = len({host for cause in found.causes for host in cause.hosts})
    ill = [f"{count} {level}{'s' * (count > 1)}" for level, count in counts.items() if count]
    unlike = f"{', '.join(ill)} in {machines} of them unlike their peers" if ill else "none is unlike its peers"
    own = f", {len(failed)} failed their own check" if failed else ""
    return f"{len(newest)} machines of {types} type{'s' * (types != 1)}: {unlike}{own}"


def hosts_of(hosts: Sequence[str]) -> str:
    """The hosts as Slurm writes them; many of them are counted."""
    text = compressed(hosts)
    return text if len(text) <= MOST_HOSTS else f"{len(hosts)} machines"
