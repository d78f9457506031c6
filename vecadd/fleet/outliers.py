"""The figures of a fleet that are unlike their peers, what they have in common, and what changed since the last run."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from vecadd.figures import Check, Figure, less_is_better
from vecadd.tables import show_figure

# How unlike its peers a figure is: the modified z-score, by median and MAD.
#
# B. Iglewicz and D. C. Hoaglin, "How to Detect and Handle Outliers" (ASQC, 1993): the distance from the median over
# 1.4826 times the median absolute deviation (MAD). Neither is moved by the faults themselves, as long as fewer than
# half of the peers have one. Logarithms are compared, so that twice as slow is as far as twice as fast, whatever the
# unit.
#
# Their limit of 3.5 is passed by chance among thousands of figures. In its place is the largest of three:
#
# - the deviation that the normal law passes with a chance of 5 % anywhere in a healthy fleet, by Student's quantile at
#   one figure's part of that chance (Bonferroni), because the MAD of few figures is itself uncertain;
# - two and a half times as far as the best of the peers are above the median: what noise does upwards it does
#   downwards, and only faults are on one side alone. The very best one says nothing, nor does one in a thousand more:
#   they may be freaks;
# - the smallest difference of interest.
#
# Not done is what SuperBench does (Xiong et al., USENIX ATC 2024): it compares the distributions of many samples of a
# node by the area between them, at a fixed similarity of 0.95. A check keeps one figure of each measurement, for which
# such a limit is a fixed difference; docs/fleet.md counts what that finds.

Numbers = NDArray[np.float64]

CHANCE = 0.05  # that anything in a healthy fleet is beyond the limit
MAD_TO_SIGMA = 1.4826
EFFICIENCY = 0.37  # of the MAD beside the standard deviation: its degrees of freedom
LEAST_SIGMA = 1e-4  # figures that are all equal, such as a link's width, have no spread to divide by
BEYOND_THE_BEST = 2.5
FREAKS = 1 / 1000  # of the peers, besides the very best one


@dataclass(frozen=True)
class Unlike:
    """``deviations`` are those of the logarithms from their median, ``scores`` the modified z-scores. What is further
    from the median than ``fence`` is unlike its peers."""

    deviations: Numbers
    scores: Numbers
    fence: float


def compare_with_peers(logarithms: Numbers, least: float, comparisons: int = 0, machines: Sequence[str] = ()) -> Unlike:
    """Compares each figure with all of them. More is better in them; ``least`` is the smallest share of interest, for
    example 0.05. ``comparisons`` is how many figures the whole fleet compares, if more than these. ``machines`` is each
    figure's machine: then the best figures are one a machine, because all parts of one machine may be freaks."""
    deviations = logarithms - np.median(logarithms)
    sigma = max(MAD_TO_SIGMA * float(np.median(np.abs(deviations))), LEAST_SIGMA)
    count = len(logarithms)
    limit = student_quantile(1 - CHANCE / max(count, comparisons), EFFICIENCY * (count - 1))
    tops = deviations
    if machines:
        of_machine = np.unique(machines, return_inverse=True)[1]
        tops = np.full(of_machine.max() + 1, -np.inf)
        np.maximum.at(tops, of_machine, deviations)
    best = np.sort(tops)[-2 - int(FREAKS * len(tops))]
    fence = max(limit * sigma, BEYOND_THE_BEST * float(best), -log(1 - least))
    return Unlike(deviations, deviations / sigma, fence)


def student_quantile(probability: float, freedom: float) -> float:
    """Student's quantile for these degrees of freedom, by the expansion of Cornish and Fisher: M. Abramowitz and I.
    A. Stegun, "Handbook of Mathematical Functions" (1964), 26.7.5."""
    z = NormalDist().inv_cdf(probability)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


# The figures of a fleet that are unlike their peers, and what they have in common.
#
# Peers are the same figure of machines of one type: the same part, where there are enough machines, so that a GPU that
# is farther from its processor is compared with those that are as far. Where there are few machines, the parts of all
# of them are each other's peers.
#
# A cause is listed above what it explains. Where more than half of a machine's parts have the same fault, the machine
# has it; where more than half of a group's machines have it, and three at least, the group has: a rack that gets too
# little air.

FEW = 5  # peers, below which nothing is compared
OF_A_GROUP = 3  # machines, at least, that share a cause
USUAL = 0.9  # of the machines of a type have a figure: one that has none lacks it
LEVELS = ("group", "machine", "part")
QUANTILES = (0.01, 0.5, 0.99)

Group = Callable[[str], str | None]  # of a host

_GROUP = re.compile(r"([^.]*[0-9])[^0-9.]+[0-9]+[^0-9.]*(?:\.|$)")  # rack07 of rack07-node12, r3 of r3n11; node12: none


@dataclass(frozen=True)
class Deviation:
    """A machine's figure that is unlike its peers. ``ratio`` is how many times as good as usual it is: below 1. It and
    the score are None where the peers have a value and this figure has none."""

    host: str
    figure: Figure
    usual: float
    ratio: float | None = None
    score: float | None = None

    @property
    def measurement(self) -> str:
        return measurement_of(self.figure)


@dataclass(frozen=True)
class Cause:
    """What some deviations have in common. ``level`` is one of LEVELS; ``where`` is the part, and ``group`` the
    machines' group."""

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


def group_by_name(host: str) -> str | None:
    """The group that a host's name says: all up to the number before its last one; None for a name with one number."""
    found = _GROUP.match(host)
    return found and found[1]


def find_outliers(checks: Sequence[Check], least: float, group: Group = group_by_name) -> Found:
    """Compares the machines, one check of each, by type. ``least`` is the smallest share of interest."""
    found = Found()
    by_type: dict[str, list[Check]] = defaultdict(list)
    for check in checks:
        by_type[check.machine_type].append(check)
    comparisons = sum(len(check.figures) for check in checks)
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
        found.causes += find_causes(machine_type, deviations, parts, [check.host for check in members], group)
    return found


# What says nothing of how good a machine is beside others: what else went on during the check, by how much a figure
# changed in the course of it, and the number of a NUMA node.
CONDITIONS = ("conditions/", "drift/")
NUMBERS = ("node",)


def is_compared(figure: Figure) -> bool:
    """Whether it is a figure of the machine, which is compared with those of its peers and of earlier runs. The memory
    of a NUMA node without processors is not, a GPU's or CXL's: some machines have both."""
    is_other_memory = figure.name.startswith("numa/") and figure.value is not None and figure.expected is None
    is_condition = figure.unit in ("", *NUMBERS) or figure.name.startswith(CONDITIONS)
    return not (is_condition or is_other_memory or figure.is_disturbed)


def measurement_of(figure: Figure) -> str:
    """What is measured, without the part it is measured at: "device memory/copy" of "device memory/gpu 0/copy"."""
    return "/".join(part for part in figure.name.split("/") if part != figure.where) or figure.name


Figures = dict[tuple[str, str], Figure]  # by host and part


def _by_measurement(checks: Iterable[Check]) -> dict[tuple[str, str], Figures]:
    """The figures of all machines by what is measured and its unit."""
    found: dict[tuple[str, str], Figures] = defaultdict(dict)
    for check in checks:
        for figure in check.figures:
            if is_compared(figure):
                found[measurement_of(figure), figure.unit][check.host, figure.where] = figure
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
    usual = _usual_by_part(logarithms)
    residuals = np.array([each - usual[place[1]] for place, each in logarithms.items()])
    judged = compare_with_peers(residuals, least, comparisons)
    deviations = [
        Deviation(host, figures[host, where], exp(sign * usual[where]), exp(deviation), float(score))
        for (host, where), deviation, score in zip(values, judged.deviations, judged.scores, strict=True)
        if -deviation > judged.fence
    ]
    # Figures without a value, of parts that nearly all machines have one of. A value of 0 is one.
    having = Counter(where for _, where in values)
    deviations += [
        Deviation(host, figure, exp(sign * usual[where]))
        for (host, where), figure in figures.items()
        if figure.value is None and machines >= FEW and having[where] >= USUAL * machines
    ]
    quantiles = tuple(float(each) for each in np.quantile(list(values.values()), QUANTILES))
    return Baseline(machine_type, measurement, unit, machines, len(values), quantiles, tuple(deviations))


def _usual_by_part(logarithms: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """The median of each part, or that of all parts where too few machines have it."""
    by_part: dict[str, list[float]] = defaultdict(list)
    for (_, where), value in logarithms.items():
        by_part[where].append(value)
    of_all = float(np.median(list(logarithms.values())))
    return {where: float(np.median(some)) if len(some) >= FEW else of_all for where, some in by_part.items()}


Parts = Mapping[tuple[str, str, str], int]  # by measurement, unit and host


def find_causes(
    machine_type: str, deviations: Iterable[Deviation], parts: Parts, hosts: Sequence[str], group: Group
) -> list[Cause]:
    """What the deviations have in common. ``parts`` counts those that each host was measured at, ``hosts`` are all
    machines of the type."""
    groups = {host: group(host) for host in hosts}
    sizes = Counter(groups.values())
    explained: dict[tuple[str, str | None, str], list[Deviation]] = defaultdict(list)
    by_measurement: dict[tuple[str, str], dict[str, list[Deviation]]] = defaultdict(lambda: defaultdict(list))
    for deviation in deviations:
        by_measurement[deviation.measurement, deviation.figure.unit][deviation.host].append(deviation)
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
                shared = _find_shared_part([deviation.figure.where for deviation in some])
                for deviation in some:
                    explained["part", host, shared or deviation.figure.where].append(deviation)
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


def _find_shared_part(parts: Sequence[str]) -> str | None:
    """The one part that three or more pairs of parts share: "gpu 3" of "gpu 3 to gpu 0", "gpu 1 to gpu 3" and so on."""
    if len(parts) < OF_A_GROUP:
        return None
    common = set.intersection(*(set(re.findall(r"[a-z]+ [0-9]+", part)) for part in parts))
    return common.pop() if len(common) == 1 else None


# What has changed on a machine since its last run.

Pair = tuple[str, Figure, Figure]  # host, before, after


@dataclass(frozen=True)
class Note:
    """What has changed on these hosts alike, in words."""

    hosts: tuple[str, ...]
    what: str
    before: str
    after: str


@dataclass
class Changes:
    """``worse`` and ``better`` are the figures that changed, by their common cause; the usual figure of such a
    deviation is the one of the run before. A deviation with a score is worse or better than the median change of its
    peers, so the figure itself may be as before. One without a score has too few peers, and is worse or better than
    before."""

    noted: list[Note] = field(default_factory=list)
    worse: list[Cause] = field(default_factory=list)
    better: list[Cause] = field(default_factory=list)


def find_last_runs(checks: Iterable[Check]) -> tuple[list[Check], dict[str, Check]]:
    """The newest check of each host, and by host the one before it where there is one."""
    by_host: dict[str, list[Check]] = defaultdict(list)
    for check in checks:
        by_host[check.host].append(check)
    runs = {host: sorted(some, key=lambda check: check.time) for host, some in by_host.items()}
    return [some[-1] for some in runs.values()], {host: some[-2] for host, some in runs.items() if len(some) > 1}


def find_changes(
    newest: Sequence[Check], before: dict[str, Check], least: float, group: Group = group_by_name
) -> Changes:
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
        earlier = {figure.name: figure for figure in then.figures if _has_figure(figure)}
        for figure in now.figures if then.machine_type == now.machine_type else ():
            if figure.name in earlier and _has_figure(figure):
                pairs[now.machine_type, measurement_of(figure), figure.unit].append(
                    (now.host, earlier[figure.name], figure)
                )
    for machine_type in dict.fromkeys(name for name, _, _ in pairs):
        parts: Counter[tuple[str, str, str]] = Counter()
        deviations: list[Deviation] = []
        for (name, measurement, unit), some in pairs.items():
            if name == machine_type:
                parts.update((measurement, unit, host) for host, _, _ in some)
                deviations += _changed_figures(measurement, unit, some, least, found)
        hosts = [check.host for check in newest if check.machine_type == machine_type]
        for has_peers in (True, False):
            for better, told in ((False, found.worse), (True, found.better)):
                some_of = [
                    each for each in deviations if (each.score is not None) == has_peers and _is_better(each) == better
                ]
                told += find_causes(machine_type, some_of, parts, hosts, group)
    return found


def _is_better(deviation: Deviation) -> bool:
    """Than its peers have become; without peers, than it was."""
    return (deviation.ratio or 0.0) > 1 if deviation.score is None else deviation.score > 0


def _has_figure(figure: Figure) -> bool:
    """Whether it has a ratio to another figure of the machine."""
    return is_compared(figure) and figure.value is not None and figure.value > 0


def _changed_figures(
    measurement: str, unit: str, pairs: Sequence[Pair], least: float, found: Changes
) -> list[Deviation]:
    """The figures that have changed; what has changed on all machines is noted."""
    sign = -1 if less_is_better(unit) else 1
    ratios = np.array([sign * (log(new.value or 1) - log(old.value or 1)) for _, old, new in pairs])
    hosts = tuple(sorted({host for host, _, _ in pairs}))
    fence = -log(1 - least)
    scores: list[float | None] = [None] * len(pairs)
    if len(hosts) < FEW:
        changed = [
            abs(ratio) > fence and _are_apart(old, new) for ratio, (_, old, new) in zip(ratios, pairs, strict=True)
        ]
    else:
        # Of two runs both ways are told, and what noise does one way it does the other.
        owners = [host for host, _, _ in pairs]
        falls, rises = (compare_with_peers(each, least, machines=owners) for each in (ratios, -ratios))
        changed = [bool(each < -falls.fence or each > rises.fence) for each in falls.deviations]
        scores = [float(each) for each in falls.scores]
        if abs(float(np.median(ratios))) > fence:
            middle = (np.median([figure.value or 0.0 for figure in run]) for run in list(zip(*pairs, strict=True))[1:])
            found.noted.append(
                Note(hosts, f"median of {measurement}", *(show_figure(float(each), unit) for each in middle))
            )
    return [
        Deviation(host, new, old.value or 0.0, exp(ratio), score)
        for is_changed, ratio, score, (host, old, new) in zip(changed, ratios, scores, pairs, strict=True)
        if is_changed
    ]


def _are_apart(old: Figure, new: Figure) -> bool:
    """Whether the intervals have nothing in common; figures without one are taken as they are."""
    if old.interval is None or new.interval is None:
        return True
    return old.interval[1] < new.interval[0] or new.interval[1] < old.interval[0]
