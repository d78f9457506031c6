"""What has changed on a machine since its last run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import exp, log

import numpy as np

from vecadd.fleet.checks import Check, Finding, less_is_better
from vecadd.fleet.outliers import FEW, Cause, Deviation, Group, by_name, causes, kind
from vecadd.fleet.unlike import unlike
from vecadd.tables import show_figure

Pair = tuple[str, Finding, Finding]  # host, before, after


@dataclass(frozen=True)
class Note:
    """What has changed on these hosts alike, in words."""

    hosts: tuple[str, ...]
    what: str
    before: str
    after: str


@dataclass
class Changes:
    """``worse`` and ``better`` are figures that have changed, by what they have in common; the usual figure of such a
    deviation is the one of the run before. One with a score has changed otherwise than the median of its peers has, and
    is worse or better than that: it may be as it was. One without has too few peers, and is worse or better than it
    was."""

    noted: list[Note] = field(default_factory=list)
    worse: list[Cause] = field(default_factory=list)
    better: list[Cause] = field(default_factory=list)


def last_runs(checks: Iterable[Check]) -> tuple[list[Check], dict[str, Check]]:
    """The newest check of each host, and by host the one before it where there is one."""
    by_host: dict[str, list[Check]] = defaultdict(list)
    for check in checks:
        by_host[check.host].append(check)
    runs = {host: sorted(some, key=lambda check: check.time) for host, some in by_host.items()}
    return [some[-1] for some in runs.values()], {host: some[-2] for host, some in runs.items() if len(some) > 1}


def of(newest: Sequence[Check], before: dict[str, Check], least: float, group: Group = by_name) -> Changes:
    """What is new since the run before: types and verdicts; measurements that have changed on all machines; and figures
    that have changed as those of no other machine, or, where fewer than five machines have two runs, more than their
    intervals allow. ``least`` is the smallest share of interest."""
    found = Changes()
    pairs: dict[tuple[str, str, str], list[Pair]] = defaultdict(list)
    for now in newest:
        then = before.get(now.host)
        if then is None:
            continue
        for what, old, new in (
            ("machine type", then.machine_type, now.machine_type),
            ("verdict", then.status, now.status),
        ):
            found.noted += [Note((now.host,), what, old, new)] if old != new else []
        earlier = {finding.id: finding for finding in then.findings if _has_figure(finding)}
        for finding in now.findings if then.machine_type == now.machine_type else ():
            if finding.id in earlier and _has_figure(finding):
                pairs[now.machine_type, kind(finding), finding.unit].append((now.host, earlier[finding.id], finding))
    for machine_type in dict.fromkeys(name for name, _, _ in pairs):
        parts: Counter[tuple[str, str, str]] = Counter()
        deviations: list[Deviation] = []
        for (name, measurement, unit), some in pairs.items():
            if name == machine_type:
                parts.update((measurement, unit, host) for host, _, _ in some)
                deviations += _figures(measurement, unit, some, least, found)
        hosts = [check.host for check in newest if check.machine_type == machine_type]
        for has_peers in (True, False):
            for better, told in ((False, found.worse), (True, found.better)):
                some_of = [
                    each for each in deviations if (each.score is not None) == has_peers and _is_better(each) == better
                ]
                told += causes(machine_type, some_of, parts, hosts, group)
    return found


def _is_better(deviation: Deviation) -> bool:
    """Than its peers have become; without peers, than it was."""
    return (deviation.ratio or 0.0) > 1 if deviation.score is None else deviation.score > 0


def _has_figure(finding: Finding) -> bool:
    """Whether it has a ratio to another figure of the machine."""
    return finding.is_compared and finding.value is not None and finding.value > 0


def _figures(measurement: str, unit: str, pairs: Sequence[Pair], least: float, found: Changes) -> list[Deviation]:
    """The figures that have changed; what has changed on all machines is noted."""
    sign = -1 if less_is_better(unit) else 1
    ratios = np.array([sign * (log(new.value or 1) - log(old.value or 1)) for _, old, new in pairs])
    hosts = tuple(sorted({host for host, _, _ in pairs}))
    fence = -log(1 - least)
    scores: list[float | None] = [None] * len(pairs)
    if len(hosts) < FEW:
        changed = [abs(ratio) > fence and _apart(old, new) for ratio, (_, old, new) in zip(ratios, pairs, strict=True)]
    else:
        # Of two runs both ways are told, and what noise does one way it does the other.
        owners = [host for host, _, _ in pairs]
        falls, rises = (unlike(each, least, machines=owners) for each in (ratios, -ratios))
        changed = [bool(each < -falls.fence or each > rises.fence) for each in falls.deviations]
        scores = [float(each) for each in falls.scores]
        if abs(float(np.median(ratios))) > fence:
            middle = (
                np.median([finding.value or 0.0 for finding in run]) for run in list(zip(*pairs, strict=True))[1:]
            )
            found.noted.append(
                Note(hosts, f"median of {measurement}", *(show_figure(float(each), unit) for each in middle))
            )
    return [
        Deviation(host, measurement, new.where, unit, new.value, old.value or 0.0, exp(ratio), score)
        for is_changed, ratio, score, (host, old, new) in zip(changed, ratios, scores, pairs, strict=True)
        if is_changed
    ]


def _apart(old: Finding, new: Finding) -> bool:
    """Whether the intervals have nothing in common; figures without one are taken as they are."""
    if old.interval is None or new.interval is None:
        return True
    return old.interval[1] < new.interval[0] or new.interval[1] < old.interval[0]
