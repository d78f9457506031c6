"""A file of ``vecadd check --json``: one machine, what was measured there, and what its own check says of it.

Keys that are not known are passed over, so that a newer vecadd may write more of them. Where a key would mean something
else, "schema_version" rises, and such a file is refused.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, isfinite
from pathlib import Path
from typing import Any

from vecadd.tables import SECONDS

SCHEMA, VERSIONS = "vecadd-check", (2,)
STATUSES = ("passed", "failed", "unknown")
SEVERITIES = ("pass", "info", "warning", "critical", "unknown")

# Units in which less is better. In all others more is better.
LESS = (*SECONDS, "errors", "words", "processes", "tasks", "°C", "W")

# What says nothing of how good a machine is beside others: what else went on during the check, by how much a figure
# changed in the course of it, and the number of a NUMA node.
CONDITIONS = ("conditions/", "drift/")
NUMBERS = ("node",)

Interval = tuple[float, float]


@dataclass(frozen=True)
class Finding:
    """One figure of a machine. ``id`` is the same on every machine; ``where`` is the part, for example "gpu 3";
    ``value`` is None where there is no figure."""

    id: str
    measurement: str
    where: str
    severity: str
    value: float | None
    unit: str
    interval: Interval | None
    expected: Interval | None

    @property
    def name(self) -> str:
        """Measurement and part."""
        return f"{self.measurement}, {self.where}" if self.where else self.measurement

    @property
    def is_compared(self) -> bool:
        """Whether it is a figure of the machine, which may be held against those of its peers and of earlier runs."""
        return (
            bool(self.unit)
            and self.unit not in NUMBERS
            and not self.id.startswith(CONDITIONS)
            and not self.is_disturbed
            and not self.is_other_memory
        )

    @property
    def is_disturbed(self) -> bool:
        """Whether it missed what was expected while other work kept the host busy."""
        return self.severity == "unknown" and self.value is not None

    @property
    def is_other_memory(self) -> bool:
        """Whether it is the memory of a NUMA node without processors, a GPU's or CXL's: some machines have both."""
        return self.id.startswith("numa/") and self.value is not None and self.expected is None


@dataclass(frozen=True)
class Check:
    """One run of the check on one machine. ``machine_type`` is a line that equal machines share."""

    path: Path
    host: str
    time: datetime
    status: str
    machine_type: str
    machine: Mapping[str, Any]
    conditions: Mapping[str, Any]
    findings: tuple[Finding, ...]


def is_check(content: Mapping[str, Any]) -> bool:
    """Whether the object says that it is a file of the check."""
    return content.get("schema") == SCHEMA


def of(path: Path, content: Mapping[str, Any]) -> Check:
    """The check of that file's content. Raises ValueError, which names the file and what is wrong with it."""
    if not is_check(content):
        raise ValueError(
            f'{path} is no file of vecadd check: its "schema" is {json.dumps(content.get("schema"))}, not "{SCHEMA}"; '
            "vecadd check --json FILE writes one"
        )
    version = content.get("schema_version")
    if version not in VERSIONS or isinstance(version, bool):
        raise ValueError(
            f"{path} is of schema version {json.dumps(version)}; this vecadd reads {', '.join(map(str, VERSIONS))}: "
            "run the check again with this vecadd, or read the file with the one that wrote it"
        )
    try:
        return Check(
            path,
            _text(content["host"]),
            _time(content["time"]),
            _one_of(STATUSES, content["status"]),
            _line(content["machine_type"]),
            dict(content.get("machine") or {}),
            dict(content.get("conditions") or {}),
            tuple(_finding(each) for each in content["findings"]),
        )
    except KeyError as error:
        raise ValueError(f"{path} is no whole file of vecadd check: it has no {error}") from error
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no file of vecadd check: {error}") from error


def less_is_better(unit: str) -> bool:
    """Whether a machine is the better, the less it has in that unit."""
    return unit in LESS


def _finding(given: Mapping[str, Any]) -> Finding:
    return Finding(
        _text(given["id"]),
        _text(given["measurement"]),
        str(given.get("where") or ""),
        _one_of(SEVERITIES, given["severity"]),
        None if given.get("value") is None else _number(given["value"]),
        str(given.get("unit") or ""),
        _interval(given.get("interval")),
        _interval(given.get("expected")),
    )


def _text(value: Any) -> str:
    if not _line(value):
        raise ValueError('"" stands where a text is expected')
    return str(value)


def _line(value: Any) -> str:
    """A text that may be empty."""
    if not isinstance(value, str):
        raise ValueError(f"{json.dumps(value)} stands where a text is expected")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{json.dumps(value)} stands where a finite number is expected")
    return float(value)


def _interval(value: Any) -> Interval | None:
    """An end may be null: then it is open."""
    if value is None:
        return None
    low, high = value
    return (
        -inf if low is None else _number(low),
        inf if high is None else _number(high),
    )


def _one_of(known: tuple[str, ...], value: Any) -> str:
    if value not in known:
        raise ValueError(f"{json.dumps(value)} is none of {', '.join(known)}")
    return str(value)


def _time(value: Any) -> datetime:
    """Times without a zone count as UTC."""
    found = datetime.fromisoformat(_text(value))
    return found if found.tzinfo else found.replace(tzinfo=UTC)
