"""A row of the acceptance test: one figure of a machine, its rounds, and what it is compared with."""

import re
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

Kind = Literal["host", "link", "device", "launch", "pair"]
Unit = Literal["GB/s", "s", "generation", "lanes"]
Severity = Literal["pass", "info", "warning", "critical", "unknown"]
SEVERITIES: tuple[Severity, ...] = ("pass", "info", "warning", "critical", "unknown")

GROUPS: dict[Kind, str] = {
    "host": "host memory",
    "link": "link",
    "device": "device memory",
    "launch": "launch",
    "pair": "pair",
}

# An error with one of these says nothing of the machine: the figure is then unknown.
UNMEASURED = ("MemoryError", "OSError")


def said(error: BaseException) -> str:
    """Kind and words of an error, as rows have it. One that is of a kind of UNMEASURED is called by that."""
    names = {each.__name__ for each in type(error).__mro__}
    name = next((name for name in UNMEASURED if name in names), type(error).__name__)
    return f"{name}: {error}"


@dataclass(frozen=True)
class Expected:
    """A figure's expected value. Rates pass from ``share`` of it on, seconds up to it divided by ``share``."""

    value: float
    share: float
    source: str


@dataclass
class Row:
    """``values`` has one figure a round. The median decides; a worse round alone is a warning."""

    kind: Kind
    name: str
    unit: Unit
    values: list[float] = field(default_factory=list)
    expected: Expected | None = None
    error: str | None = None
    gpu: int = 0  # its index, of all but the host's rows; of a pair the source's
    spread: tuple[float, float] | None = None  # of the last round's samples: the 10th and the 90th percentile
    disturbed: bool = False  # by other work, so that a miss is nobody's fault

    @property
    def figure(self) -> str:
        """Kind and name: "device add 2^28", "pair copy to GPU 1"."""
        return f"{self.kind} {self.name}"

    @property
    def title(self) -> str:
        """The figure, and the GPU where it is not the first: "device read of GPU 1"."""
        return f"{self.figure} of GPU {self.gpu}" if self.gpu else self.figure

    @property
    def where(self) -> str:
        """The part of the machine: "host", "gpu 0", "gpu 0 to gpu 1"."""
        if self.kind == "host":
            return "host"
        to = re.search(r" to GPU (\d+)$", self.name)
        return f"gpu {self.gpu} to gpu {to[1]}" if to else f"gpu {self.gpu}"

    @property
    def id(self) -> str:
        """In result files: "device memory/gpu 0/read"."""
        return f"{GROUPS[self.kind]}/{self.where}/{self._short}"

    @property
    def measurement(self) -> str:
        """Kind and name, the same for every GPU and every pair of them: "pair copy"."""
        return f"{self.kind} {self._short}"

    @property
    def _short(self) -> str:
        return re.sub(r" to GPU \d+$", "", self.name)

    @property
    def value(self) -> float | None:
        """The median of all rounds; None where there is none."""
        return median(self.values) if self.values else None

    @property
    def worst(self) -> float | None:
        """The lowest rate of all rounds, or the most seconds."""
        if not self.values:
            return None
        return max(self.values) if self.unit == "s" else min(self.values)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the rounds; of one round's samples where there is one round."""
        return (min(self.values), max(self.values)) if len(self.values) > 1 else self.spread

    @property
    def drift(self) -> float | None:
        """By how much of the first round's figure the last one's differs; None in a single round."""
        return self.values[-1] / self.values[0] - 1 if len(self.values) > 1 and self.values[0] else None

    @property
    def bound(self) -> float | None:
        """The worst figure that passes."""
        if self.expected is None:
            return None
        return (
            self.expected.value / self.expected.share if self.unit == "s" else self.expected.value * self.expected.share
        )

    @property
    def passed(self) -> bool | None:
        """By the median. None without an expectation; a row that could not be measured has failed."""
        return False if self.error is not None else self._within(self.value)

    @property
    def severity(self) -> Severity:
        """A figure that only some rounds missed is a warning; one that other work has disturbed cannot fail."""
        if self.error is not None and any(name in self.error for name in UNMEASURED):
            return "unknown"
        if self.passed is None:
            return "info"
        if not self.passed:
            return "unknown" if self.disturbed and self.error is None else "critical"
        return "pass" if self._within(self.worst) else "warning"

    def _within(self, value: float | None) -> bool | None:
        if value is None:
            return False
        if self.bound is None:
            return None
        return value <= self.bound if self.unit == "s" else value >= self.bound


def title_of(id: str) -> str | None:
    """The title of the row with that id; None where no row has it."""
    group, _, rest = id.partition("/")
    where, _, name = rest.partition("/")
    kind = next((kind for kind, known in GROUPS.items() if known == group), None)
    place = re.fullmatch(r"host|gpu (\d+)(?: to gpu (\d+))?", where)
    if kind is None or place is None or not name:
        return None
    source, target = place.groups()
    return Row(kind, f"{name} to GPU {target}" if target else name, "GB/s", gpu=int(source or 0)).title
