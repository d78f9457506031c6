"""The ratio of two figures with its interval, and what it says.

The ratio is how many times as long the later one takes; of rates, their inverse. Its 95 % interval adds the widths of
both logarithms' intervals in quadrature. It is held against the zone in which a difference is of no interest: "same"
where it lies inside of the zone, as in the equivalence test of two one-sided tests (D. J. Schuirmann, 1987), "slower"
or "faster" where it lies outside, and "undecided" where it does neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, hypot, inf, isfinite, log

from vecadd.compare.figures import Figure, Key, Side
from vecadd.fleet.checks import less_is_better

VERDICTS = ("slower", "failed", "faster", "same", "undecided")
BAD = ("slower", "failed")


@dataclass(frozen=True)
class Compared:
    """``ratio`` above 1: the later figure is the slower one; with its interval. None where one of both is missing."""

    name: str
    old: float | None
    new: float | None
    unit: str
    ratio: float | None
    interval: tuple[float, float] | None
    verdict: str


@dataclass(frozen=True)
class Comparison:
    """``only_old`` and ``only_new`` are the names of figures that the other side lacks."""

    rows: list[Compared]
    only_old: list[str]
    only_new: list[str]

    def count(self, verdict: str) -> int:
        """How many rows have that verdict."""
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def is_worse(self) -> bool:
        """Whether something is surely slower, or has failed that did not fail before."""
        return any(row.verdict in BAD for row in self.rows)


def of(old: Side, new: Side, least: float) -> Comparison:
    """Compares the figures that both have. ``least`` is the smallest share of interest."""
    both = [key for key in new.figures if key in old.figures]
    return Comparison(
        [compared(old.figures[key], new.figures[key], least) for key in both],
        _names(old, [key for key in old.figures if key not in new.figures]),
        _names(new, [key for key in new.figures if key not in old.figures]),
    )


def compared(old: Figure, new: Figure, least: float) -> Compared:
    """One figure of both runs. One that has failed and did not fail before is that, whatever its ratio. Those without
    an interval, or an open one, are the same where they are equal, else undecided; so are those that have no ratio,
    because one is zero or below."""
    has_failed = new.error is not None and old.error is None
    if old.value is None or new.value is None or min(old.value, new.value) <= 0:
        verdict = "failed" if has_failed or (old.value and new.value is None) else "undecided"
        return Compared(new.name, old.value, new.value, new.unit, None, None, verdict)
    sign = 1 if less_is_better(new.unit) else -1
    ratio = sign * log(new.value / old.value)
    below, above = (0, 1) if sign > 0 else (1, 0)
    low = ratio - hypot(_reach(new, below), _reach(old, 1 - below))
    high = ratio + hypot(_reach(new, above), _reach(old, 1 - above))
    if not isfinite(high - low):
        verdict = "failed" if has_failed else "undecided" if ratio else "same"
        return Compared(new.name, old.value, new.value, new.unit, exp(ratio), None, verdict)
    verdict = "failed" if has_failed else _verdict(low, high, log(1 + least))
    return Compared(new.name, old.value, new.value, new.unit, exp(ratio), (exp(low), exp(high)), verdict)


def _reach(figure: Figure, end: int) -> float:
    """How far the figure's interval reaches at that end, as a logarithm."""
    if figure.value is None or figure.interval is None or figure.interval[end] <= 0:
        return inf
    return abs(log(figure.interval[end] / figure.value))


def _verdict(low: float, high: float, zone: float) -> str:
    if low > zone:
        return "slower"
    if high < -zone:
        return "faster"
    return "same" if -zone < low and high < zone else "undecided"


def _names(side: Side, keys: Sequence[Key]) -> list[str]:
    return [side.figures[key].name for key in keys]
