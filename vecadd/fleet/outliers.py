"""The figures of a fleet that are unlike their peers, and what they have in common.

Peers are the same figure of machines of one type: the same part, where there are enough machines, so that a GPU that
is farther from its processor is compared with those that are as far. Where there are few machines, the parts of all of
them are each other's peers.

A cause stands above what it explains. Where more than half of a machine's parts have the same fault, the machine has
it; where more than half of a group's machines have it, and three at least, the group has: a rack that gets too little
air.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log

import numpy as np

from vecadd.fleet.checks import Check, Finding, less_is_better
from vecadd.fleet.unlike import unlike

FEW = 5  # peers, below which nothing is compared
OF_A_GROUP = 3  # machines, at least, that share a cause
USUAL = 0.9  # of the machines of a type have a figure: one that has none lacks it
LEVELS = ("group", "machine", "part")
QUANTILES = (0.01, 0.5, 0.99)

Group = Callable[[str], str | None]  # of a host

_GROUP = re.compile(r"([^.]*[0-9])[^0-9.]+[0-9]+[^0-9.]*(?:\.|$)")  # rack07 of rack07-node12, r3 of r3n11; node12: none


@dataclass(frozen=True)
class Deviation:
    """A figure that is unlike its peers. ``ratio`` is how many times as good as usual it is: below 1. ``value`` and
    what follows from it are None where the peers have a figure and this machine has none."""

    host: str
    measurement: str
    where: str
    unit: str
    value: float | None
    usual: float
    ratio: float | None
    score: float | None


@dataclass(frozen=True)
class Cause:
    """What some deviations have in common. ``level`` is one of LEVELS; ``where`` is the part, and ``group`` the group
    that the machines are of."""

    level: str
    machine_type: str
    where: str
    group: str | None
    hosts: tuple[str, ...]
    deviations: tuple[Deviation, ...]


@dataclass(frozen=True)
class Baseline:
    """What machines of a type usually reach in a measurement: the 1 %, 50 % and 99 % quantile of ``count`` figures."""

    machine_type: str
    measurement: str
    unit: str
    machines: int
    count: int
    quantiles: tuple[float, ...]
    deviations: tuple[Deviation, ...]


@dataclass
class Found:
    """``alone`` are the hosts that have too few peers to be compared."""

    baselines: list[Baseline] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)


def by_name(host: str) -> str | None:
    """The group that a host's name says: all up to the number before its last one; None for a name with one number."""
    found = _GROUP.match(host)
    return found and found[1]


def of(checks: Sequence[Check], least: float, group: Group = by_name) -> Found:
    """Compares the machines, one check of each, by type. ``least`` is the smallest share of interest."""
    found = Found()
    by_type: dict[str, list[Check]] = defaultdict(list)
    for check in checks:
        by_type[check.machine_type].append(check)
    comparisons = sum(len(check.findings) for check in checks)
    for machine_type, members in by_type.items():
        measured = _by_measurement(members)
        baselines = [
            baseline
            for (measurement, unit), figures in measured.items()
            if (baseline := _baseline(machine_type, measurement, unit, figures, len(members), least, comparisons))
        ]
        if not baselines:
            found.alone += [check.host for check in members]
        found.baselines += baselines
        parts = Counter(
            (measurement, unit, host) for (measurement, unit), figures in measured.items() for host, _ in figures
        )
        deviations = [deviation for baseline in baselines for deviation in baseline.deviations]
        found.causes += causes(machine_type, deviations, parts, [check.host for check in members], group)
    return found


def kind(finding: Finding) -> str:
    """What is measured, without the part it is measured at: "device memory/copy" of "device memory/gpu 0/copy"."""
    return "/".join(part for part in finding.id.split("/") if part != finding.where) or finding.id


Figures = dict[tuple[str, str], Finding]  # by host and part


def _by_measurement(checks: Iterable[Check]) -> dict[tuple[str, str], Figures]:
    """The figures of all machines by what is measured and its unit."""
    found: dict[tuple[str, str], Figures] = defaultdict(dict)
    for check in checks:
        for finding in check.findings:
            if finding.is_compared:
                found[kind(finding), finding.unit][check.host, finding.where] = finding
    return found


def _baseline(
    machine_type: str, measurement: str, unit: str, figures: Figures, machines: int, least: float, comparisons: int
) -> Baseline | None:
    """Only figures above 0 are compared: a count of errors is for the check itself to judge."""
    values = {place: each.value for place, each in figures.items() if each.value is not None and each.value > 0}
    if len(values) < FEW:
        return None
    sign = -1 if less_is_better(unit) else 1
    logarithms = {place: sign * log(value) for place, value in values.items()}
    usual = _usual(logarithms)
    residuals = np.array([each - usual[place[1]] for place, each in logarithms.items()])
    judged = unlike(residuals, least, comparisons)
    deviations = [
        Deviation(host, measurement, where, unit, value, exp(sign * usual[where]), exp(deviation), float(score))
        for ((host, where), value), deviation, score in zip(
            values.items(), judged.deviations, judged.scores, strict=True
        )
        if -deviation > judged.fence
    ]
    deviations += _missing(measurement, unit, figures, values, machines, {w: exp(sign * u) for w, u in usual.items()})
    quantiles = tuple(float(each) for each in np.quantile(list(values.values()), QUANTILES))
    return Baseline(machine_type, measurement, unit, machines, len(values), quantiles, tuple(deviations))


def _usual(logarithms: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """The median of each part, or that of all parts where too few machines have it."""
    by_part: dict[str, list[float]] = defaultdict(list)
    for (_, where), value in logarithms.items():
        by_part[where].append(value)
    of_all = float(np.median(list(logarithms.values())))
    return {where: float(np.median(some)) if len(some) >= FEW else of_all for where, some in by_part.items()}


def _missing(
    measurement: str,
    unit: str,
    figures: Figures,
    values: Mapping[tuple[str, str], float],
    machines: int,
    usual: Mapping[str, float],
) -> list[Deviation]:
    """Findings without a figure, of parts that nearly all machines have one of. A figure of 0 is one."""
    having = Counter(where for _, where in values)
    return [
        Deviation(host, measurement, where, unit, None, usual[where], None, None)
        for (host, where), finding in figures.items()
        if finding.value is None and machines >= FEW and having[where] >= USUAL * machines
    ]


Parts = Mapping[tuple[str, str, str], int]  # by measurement, unit and host


def causes(
    machine_type: str, deviations: Iterable[Deviation], parts: Parts, hosts: Sequence[str], group: Group
) -> list[Cause]:
    """What the deviations have in common. ``parts`` counts those that each host was measured at, ``hosts`` are all
    machines of the type."""
    groups = {host: group(host) for host in hosts}
    sizes = Counter(groups.values())
    explained: dict[tuple[str, str | None, str], list[Deviation]] = defaultdict(list)
    by_measurement: dict[tuple[str, str], dict[str, list[Deviation]]] = defaultdict(lambda: defaultdict(list))
    for deviation in deviations:
        by_measurement[deviation.measurement, deviation.unit][deviation.host].append(deviation)
    for measurement, by_host in by_measurement.items():
        whole = {host for host, some in by_host.items() if 2 * len(some) > parts[*measurement, host]}
        ill = Counter(groups[host] for host in whole)
        for host, some in by_host.items():
            its = groups[host]
            if host in whole and its is not None and ill[its] >= OF_A_GROUP and 2 * ill[its] > sizes[its]:
                explained["group", its, ""] += some
            elif host in whole:
                explained["machine", host, ""] += some
            else:
                shared = _shared([deviation.where for deviation in some])
                for deviation in some:
                    explained["part", host, shared or deviation.where].append(deviation)
    found = [
        Cause(
            level,
            machine_type,
            where,
            groups[some[0].host],
            tuple(sorted({deviation.host for deviation in some})),
            tuple(some),
        )
        for (level, _, where), some in explained.items()
    ]
    return sorted(found, key=lambda cause: (LEVELS.index(cause.level), cause.hosts, cause.where))


def _shared(parts: Sequence[str]) -> str | None:
    """The one part that three or more pairs of parts share: "gpu 3" of "gpu 3 to gpu 0", "gpu 1 to gpu 3" and so on."""
    if len(parts) < OF_A_GROUP:
        return None
    common = set.intersection(*(set(re.findall(r"[a-z]+ [0-9]+", part)) for part in parts))
    return common.pop() if len(common) == 1 else None
