"""A row of the acceptance test: one figure of a machine, its rounds, and what it is compared with."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

Kind = Literal["host", "link", "device", "launch"]
Unit = Literal["GB/s", "s", "generation", "lanes"]


@dataclass(frozen=True)
class Expected:
    """A figure's expected value. Rates pass from ``share`` of it on, seconds up to it divided by ``share``."""

    value: float
    share: float
    source: str


@dataclass
class Row:
    """``values`` has one figure a round. The worst counts: the lowest rate, or the most seconds."""

    kind: Kind
    name: str
    unit: Unit
    values: list[float] = field(default_factory=list)
    expected: Expected | None = None
    error: str | None = None
    gpu: int = 0  # its index, of all but the host's rows

    @property
    def figure(self) -> str:
        """Kind and name, which are the same for every GPU: "device add 2^28"."""
        return f"{self.kind} {self.name}"

    @property
    def title(self) -> str:
        """The figure, and the GPU where it is not the first: "device read of GPU 1"."""
        return f"{self.figure} of GPU {self.gpu}" if self.gpu else self.figure

    @property
    def value(self) -> float | None:
        """The worst of all rounds; None where there is none."""
        if not self.values:
            return None
        return max(self.values) if self.unit == "s" else min(self.values)

    @property
    def middle(self) -> float | None:
        """The median of all rounds."""
        return median(self.values) if self.values else None

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
        """None without an expectation; a row that could not be measured has failed."""
        if self.error is not None or self.value is None:
            return False
        if self.bound is None:
            return None
        return self.value <= self.bound if self.unit == "s" else self.value >= self.bound

    def as_dict(self) -> dict[str, Any]:
        """For the file: "value" is the worst of "rounds"."""
        return {
            "kind": self.kind,
            "name": self.name,
            "gpu": self.gpu,
            "unit": self.unit,
            "value": self.value,
            "median": self.middle,
            "drift": self.drift,
            "rounds": self.values,
            "expected": self.expected.value if self.expected else None,
            "share": self.expected.share if self.expected else None,
            "bound": self.bound,
            "source": self.expected.source if self.expected else None,
            "passed": self.passed,
            "error": self.error,
        }
