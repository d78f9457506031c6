"""What a claim compares: a value read off the recorded rows or off a document's own digits, and the rule for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import Any, Generic, TypeVar

from benchmarks.claims.picks import Pick
from vecadd.bench import recorded, steps
from vecadd.bench.results import Row
from vecadd.bench.show import show_gain, show_rate, show_seconds

Value = TypeVar("Value")

_BLOCKS = (32, 64, 128, 256, 512, 1024)  # threads


class NotRecordedError(LookupError):
    """No recorded row is the one that a claim needs; the message names it."""


class Recorded:
    """The recorded rows, and ``asked``: the sweeps that a claim has looked at."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)
        self.asked: list[str] = []

    def by_size(self, pick: Pick) -> dict[int, Row]:
        """The fastest row that is meant, by its number of elements. Raises NotRecordedError where there is none."""
        if pick.sweep not in self.asked:
            self.asked.append(pick.sweep)
        found: dict[int, Row] = {}
        for row in self.rows:
            if row.sweep == pick.sweep and pick.means(row) and seconds_of(row) < seconds_of(found.get(row.n)):
                found[row.n] = row
        if not found:
            raise NotRecordedError(self._lacking(pick) or f"no row of {pick} is recorded")
        return found

    def _lacking(self, pick: Pick) -> str:
        """What the machine lacked for this rung, where the run says so in place of a time."""
        told = (row.params.get("says") for row in self.rows if (row.sweep, row.rung) == (pick.sweep, pick.rung))
        return str(next(filter(None, told), ""))

    def row(self, pick: Pick) -> Row:
        """The row that is meant, at the largest recorded size."""
        found = self.by_size(pick)
        return found[max(found)]

    def param(self, pick: Pick, *names: str) -> Any:
        """What that row says by these names, one in the other. Raises NotRecordedError where it does not say it."""
        found: Any = self.row(pick).params
        for name in names:
            if name not in found:
                raise NotRecordedError(f"the row of {pick} says no {' '.join(names)}")
            found = found[name]
        return found

    def gain(self, before: Pick, after: Pick) -> float:
        """How many times as fast ``after`` is, at the largest size that both ran at."""
        gains = self.gains(before, after)
        return gains[max(gains)]

    def gains(self, before: Pick, after: Pick) -> dict[int, float]:
        """How many times as fast ``after`` is, by size. Raises NotRecordedError where there is no common size."""
        second, first = self.by_size(after), self.by_size(before)
        sizes = first.keys() & second.keys()
        if not sizes:
            raise NotRecordedError(f"{before} and {after} are recorded at no common size")
        return {size: seconds_of(first[size]) / seconds_of(second[size]) for size in sizes}


def seconds_of(row: Row | None) -> float:
    """The row's time; endless where there is no row."""
    return inf if row is None or row.seconds is None else row.seconds


@dataclass(frozen=True)
class Quantity(Generic[Value]):
    """A value, and how it is shown."""

    of: Callable[[Recorded], Value]
    show: Callable[[Value], str]


@dataclass(frozen=True)
class Between:
    """The rule of a number: from ``low`` to ``high``."""

    low: float = -inf
    high: float = inf

    def __call__(self, value: float) -> bool:
        """Whether the value keeps the rule."""
        return self.low <= value <= self.high

    def words(self, show: Callable[[float], str]) -> str:
        """The rule in the unit of its quantity."""
        if self.low == -inf:
            return f"at most {show(self.high)}"
        return f"at least {show(self.low)}" if self.high == inf else f"{show(self.low)} to {show(self.high)}"


@dataclass(frozen=True)
class Is:
    """The rule of anything else: it is this."""

    value: Any

    def __call__(self, value: object) -> bool:
        """Whether the value keeps the rule."""
        return bool(value == self.value)

    def words(self, show: Callable[[Any], str]) -> str:
        """The value, as its quantity shows it."""
        return show(self.value)


def at_least(low: float) -> Between:
    """This much or more."""
    return Between(low=low)


def at_most(high: float) -> Between:
    """This much or less."""
    return Between(high=high)


def about(value: float, share: float = 0.1) -> Between:
    """The value, give or take a share of it."""
    return Between(value * (1 - share), value * (1 + share))


# --- what is read off the rows


def gain(before: Pick, after: Pick) -> Quantity[float]:
    """How many times as fast the second is."""
    return Quantity(lambda rows: rows.gain(before, after), show_gain)


def usual_gain(before: Pick, after: Pick) -> Quantity[float]:
    """How many times as fast the second is, the median of the sizes: for copies of ordinary memory, which scatter by a
    third at the largest."""
    return Quantity(lambda rows: median(rows.gains(before, after).values()), show_gain)


def seconds(pick: Pick) -> Quantity[float]:
    """The median time."""
    return Quantity(lambda rows: seconds_of(rows.row(pick)), show_seconds)


def element(pick: Pick) -> Quantity[float]:
    """The time of one element."""
    return Quantity(lambda rows: seconds_of(row := rows.row(pick)) / row.n, show_seconds)


def limit_share(pick: Pick) -> Quantity[float]:
    """The share of the limit that the same run measured."""
    return Quantity(lambda rows: rows.row(pick).fraction or 0.0, percent)


def fastest_block(rung: str) -> Quantity[int]:
    """The threads of a block with which the rung is fastest."""
    return Quantity(
        lambda rows: min(_BLOCKS, key=lambda block: seconds_of(rows.row(Pick("blocksize", rung, block=block)))), str
    )


def param(pick: Pick, name: str, show: Callable[[Any], str] = str) -> Quantity[Any]:
    """What the row says of the launch."""
    return Quantity(lambda rows: rows.param(pick, name), show)


def param_ratio(pick: Pick, other: Pick, *names: str) -> Quantity[float]:
    """What the first row says, over what the second says."""
    return Quantity(lambda rows: rows.param(pick, *names) / rows.param(other, *names), show_gain)


def from_rows(of: Callable[[Recorded], Value], show: Callable[[Value], str]) -> Quantity[Value]:
    """Any other value of several rows."""
    return Quantity(of, show)


def stages(rows: Recorded, pick: Pick) -> dict[str, float]:
    """Seconds of a transfer's uploads, kernels and downloads, without what they waited for each other."""
    found = steps.stages_of(rows.row(pick))
    if not found:
        raise NotRecordedError(f"no stages of {pick} are recorded")
    return dict(found)


# --- what is read off a document


def printed(of: Callable[[], Value], show: Callable[[Value], str]) -> Quantity[Value]:
    """A value worked out from a document's own digits."""
    return Quantity(lambda _: of(), show)


def figure(rung: str, setting: str, *, n: int | None = None, block: int | None = None) -> float:
    """The seconds that a document printed."""
    (found,) = (
        each.seconds
        for each in recorded.FIGURES
        if (each.rung, each.setting, each.n, each.block) == (rung, setting, n, block)
    )
    return found


def digits(*values: float) -> str:
    """Seconds as the documents print them, in milliseconds."""
    return f"{', '.join(f'{1e3 * value:.9g}' for value in values)} ms"


def percent(share: float) -> str:
    """A share in percent: "73.5 %"."""
    return f"{100 * share:.3g} %"


def shares(*parts: float) -> str:
    """Parts of a whole in percent, with the documents' one decimal: "89.0 : 11.0"."""
    return " : ".join(f"{100 * part / sum(parts):.1f}" for part in parts)


def plain(value: float) -> str:
    """A number with three significant digits, whole where it is large."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def code(text: str) -> str:
    """Code in a table."""
    return f"`{text}`"


def gbps(value: float) -> str:
    """A rate in GB/s."""
    return f"{show_rate(value)} GB/s"
