"""The result file of the check: schema.json says what is in it, and this file makes and reads it.

A reader ignores fields that it does not know, so that a newer vecadd may write more of them. Where a field would mean
something else, "schema_version" rises, and such a file is refused.
"""

import json
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from math import inf, isfinite
from pathlib import Path
from typing import Any, Literal

from vecadd._command import package_version
from vecadd._machine import Info
from vecadd.bench.machine import commit
from vecadd.check.measure import GROUPS, SEVERITIES, Severity
from vecadd.figures import Figure, Range, Run

SCHEMA, SCHEMA_VERSION = "vecadd-check", 2

Status = Literal["passed", "failed", "unknown"]
STATUSES = ("passed", "failed", "unknown")
_CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, kw_only=True)
class Check(Run):
    """One run of the check on one machine; its meta is the field "machine". ``machine_type`` is a line that equal
    machines share."""

    path: Path
    host: str
    time: datetime
    status: str
    machine_type: str


def make_figure(
    id: str,
    measurement: str,
    severity: Severity,
    value: float | None,
    unit: str,
    meaning: str,
    next: str = "",
    *,
    interval: Range | None = None,
    expected: Range | None = None,
    source: str = "",
    **more: Any,
) -> Figure:
    """A figure of a check; the second part of its id says where it was measured. One that passes needs no next step."""
    return Figure(
        "check",
        id,
        value=value,
        unit=unit,
        where=id.split("/")[1],
        measurement=measurement,
        interval=interval,
        expected=expected,
        source=source,
        severity=severity,
        meaning=meaning,
        next="" if severity == "pass" else next,
        more={name: found for name, found in more.items() if found is not None},
    )


# Writing


def read_schema() -> str:
    """The text of the published schema (JSON Schema 2020-12)."""
    return (files("vecadd.check") / "schema.json").read_text(encoding="utf-8")


def status_of(findings: Sequence[Figure]) -> Status:
    """ "unknown" where something that was to be measured could not be: no GPU passes because others fill it."""
    if any(each.fails for each in findings):
        return "failed"
    measured = [each for each in findings if _is_measured(each)]
    return "unknown" if not measured or any(each.severity == "unknown" for each in measured) else "passed"


def _is_measured(figure: Figure) -> bool:
    """Whether it was measured, rather than read from what the system says of itself."""
    group, _, rest = figure.name.partition("/")
    return group in (*GROUPS.values(), "soak") and not rest.endswith(("/generation", "/width", "/peer access"))


def make_document(
    machine: Mapping[str, Any], machine_type: str, findings: Sequence[Figure], conditions: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of the file. ``machine`` as `machine.meta` of the bench gives it."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "status": status_of(findings),
        "host": platform.node() or "unknown",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "vecadd": {"version": package_version(), "commit": commit()},
        "machine": {name: value for name, value in machine.items() if name != "contamination"},
        "machine_type": machine_type,
        "findings": [_row_of_figure(each) for each in findings],
        "conditions": dict(conditions),
    }


def _row_of_figure(figure: Figure) -> dict[str, Any]:
    expected = figure.expected and tuple(end if isfinite(end) else None for end in figure.expected)
    return {
        "id": figure.name,
        "measurement": figure.measurement,
        "where": figure.where,
        "severity": figure.severity,
        "value": figure.value,
        "unit": figure.unit,
        "interval": figure.interval,
        "expected": expected,
        "source": figure.source,
        "meaning": figure.meaning,
        "next": figure.next,
        **figure.more,
    }


def describe_machine_type(found: Info) -> str:
    """What machines of one kind share: "2 × NVIDIA H200, 2 × Intel Xeon Platinum 8480C"."""
    gpus = Counter(gpu.name for gpu in found.gpus)
    cpu = found.cpu.model or platform.machine() or "unknown processor"
    cpu = re.sub(r"\((R|TM|tm)\)|\bCPU\b|\bProcessor\b|@.*|\d+-Core", " ", cpu)
    sockets = f"{_count_sockets()} × {' '.join(cpu.split())}"
    return ", ".join([*(f"{count} × {name}" for name, count in sorted(gpus.items())), sockets])


def _count_sockets() -> int:
    """1 where the system does not say."""
    packages = set()
    for path in _CPUS.glob("cpu[0-9]*/topology/physical_package_id"):
        try:
            packages.add(path.read_text(encoding="utf-8").strip())
        except OSError:
            return 1
    return len(packages) or 1


# Reading


def is_check(content: Mapping[str, Any]) -> bool:
    """Whether the object says that it is a file of the check."""
    return content.get("schema") == SCHEMA


def read_check(path: Path, content: Mapping[str, Any]) -> Check:
    """The check in that file's content. Raises ValueError, which names the file and what is wrong with it."""
    if not is_check(content):
        raise ValueError(
            f'{path} is not a file of vecadd check: its "schema" is {json.dumps(content.get("schema"))}, not '
            f'"{SCHEMA}"; vecadd check --json FILE writes one'
        )
    version = content.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise ValueError(
            f"{path} is a file of vecadd check of version {json.dumps(version)}; this vecadd reads version "
            f"{SCHEMA_VERSION}: install the vecadd that wrote it, or check the machine again"
        )
    try:
        return Check(
            meta=dict(content.get("machine") or {}),
            figures=tuple(_figure_of_row(each) for each in content["findings"]),
            path=path,
            host=_text(content["host"]),
            time=_time(content["time"]),
            status=_one_of(STATUSES, content["status"]),
            machine_type=_line(content["machine_type"]),
        )
    except KeyError as error:
        raise ValueError(f"{path} is not a whole file of vecadd check: it has no {error}") from error
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a file of vecadd check: {error}") from error


def _figure_of_row(row: Mapping[str, Any]) -> Figure:
    return Figure(
        "check",
        _text(row["id"]),
        value=None if row.get("value") is None else _number(row["value"]),
        unit=str(row.get("unit") or ""),
        where=str(row.get("where") or ""),
        measurement=_text(row["measurement"]),
        interval=_range(row.get("interval")),
        expected=_range(row.get("expected")),
        severity=_one_of(SEVERITIES, row["severity"]),
    )


def _text(value: Any) -> str:
    if not _line(value):
        raise ValueError('"" is not a text')
    return str(value)


def _line(value: Any) -> str:
    """A text that may be empty."""
    if not isinstance(value, str):
        raise ValueError(f"{json.dumps(value)} is not a text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{json.dumps(value)} is not a finite number")
    return float(value)


def _range(value: Any) -> Range | None:
    """An end may be null: then it is open."""
    if value is None:
        return None
    low, high = value
    return -inf if low is None else _number(low), inf if high is None else _number(high)


def _one_of(known: Sequence[str], value: Any) -> str:
    if value not in known:
        raise ValueError(f"{json.dumps(value)} is not one of {', '.join(known)}")
    return str(value)


def _time(value: Any) -> datetime:
    """Times without a zone count as UTC."""
    found = datetime.fromisoformat(_text(value))
    return found if found.tzinfo else found.replace(tzinfo=UTC)
