"""Findings: what the check says of a machine, one a figure and one a condition, with what it means and what to do."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from vecadd._machine import Info
from vecadd.check import normal, texts
from vecadd.check.measure import Measured
from vecadd.check.rows import Row, Severity

BUSY = 0.5  # of the host's processors, by the load average: above it other work disturbs the figures
FULL = 1.0  # above it tasks wait for a processor, and those rows that the processors time say little of the machine
TIMED_BY_HOST = ("host", "launch")
DRIFT = 0.05  # from the first round to the last: a greater drift is reported
HARMLESS = ("power cap",)  # throttling that a healthy GPU at full power may show

Range = tuple[float | None, float | None]


@dataclass(frozen=True)
class Finding:
    """The fields of schema.json, where they are described."""

    id: str
    measurement: str
    where: str
    severity: Severity
    value: float | None
    unit: str
    interval: tuple[float, float] | None = None
    expected: Range | None = None
    source: str = ""
    meaning: str = ""
    next: str = ""
    normal: Mapping[str, str] | None = None
    rounds: list[float] | None = None
    series: list[dict[str, float | None]] | None = None

    @property
    def fails(self) -> bool:
        """Whether the machine fails by this finding alone."""
        return self.severity == "critical"

    def as_dict(self) -> dict[str, Any]:
        """For the file. Fields that only some findings have are left out of the others."""
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value
            for name, value in content.items()
            if value is not None or name not in ("normal", "rounds", "series")
        }

    def __str__(self) -> str:
        return f"{self.severity}: {self.id}: {self.meaning}" + (f" Next: {self.next}" if self.next else "")


@dataclass
class Found:
    """All that a run has found out, for the findings."""

    info: Info
    conditions: Mapping[str, Any]  # as `machine.conditions_since` gives them
    measured: Measured
    require_gpu: bool = False
    rounds: int = 1  # whole ones: with more than one a figure may have drifted
    more: list[Finding] = field(default_factory=list)  # of parts that make their findings themselves


def of(found: Found) -> list[Finding]:
    """Every row and condition, in the order of the table. Notes which rows other work has disturbed."""
    for row in found.measured.rows.values():
        row.disturbed = row.kind in TIMED_BY_HOST and _load(found.conditions) > FULL
    return [
        *(_of_row(row, found) for row in found.measured.rows.values()),
        *(_of_drift(found.measured.rows.values()) if found.rounds > 1 else ()),
        *_of_links(found),
        *found.more,
        _of_load(found.conditions),
        _of_gpus(found),
        *(_of_conditions(found.conditions) if found.info.gpus else ()),
    ]


def _of_row(row: Row, found: Found) -> Finding:
    bound = row.bound
    severity = row.severity
    text = texts.of(row, severity)
    gpu = found.info.gpus[row.gpu] if row.kind != "host" and row.gpu < len(found.info.gpus) else None
    return Finding(
        id=row.id,
        measurement=row.measurement,
        where=row.where,
        severity=severity,
        value=row.value,
        unit=row.unit,
        interval=row.interval,
        expected=None if bound is None else (None, bound) if row.unit == "s" else (bound, None),
        source=row.expected.source if row.expected else "",
        meaning=text.meaning,
        next=text.next,
        normal=normal.of(row, gpu, found.measured),
        rounds=list(row.values) if len(row.values) > 1 else None,
    )


def _of_drift(rows: Iterable[Row]) -> Iterator[Finding]:
    for row in rows:
        if row.drift is None or (row.drift if row.unit == "s" else -row.drift) <= DRIFT:
            continue
        yield Finding(
            id=f"drift/{row.where}/{row.figure}",
            measurement=f"drift of {row.measurement}",
            where=row.where,
            severity="warning",
            value=row.drift,
            unit="1",
            expected=(None, DRIFT) if row.unit == "s" else (-DRIFT, None),
            source="the first round of the same run",
            meaning=f"drift: {row.title} was {100 * abs(row.drift):.0f} % slower in the last round.",
            next="Look at clocks, temperatures and other work, and measure for longer (--soak MINUTES).",
        )


def _of_links(found: Found) -> Iterator[Finding]:
    """Generations and widths that neither nvidia-smi nor sysfs tells. Those that are known are rows."""
    for gpu in found.info.gpus:
        known = {row.name for row in found.measured.rows.values() if row.kind == "link" and row.gpu == gpu.index}
        for name, unit in (("generation", "generation"), ("width", "lanes")):
            if name not in known:
                yield unknown(
                    f"link/gpu {gpu.index}/{name}",
                    f"link {name}",
                    unit,
                    f"neither nvidia-smi nor sysfs says the link's {name}.",
                )


def unknown(id: str, measurement: str, unit: str, meaning: str, next: str = "") -> Finding:
    """A finding of something that could not be found out."""
    where = id.split("/")[1]
    return Finding(id, measurement, where, "unknown", None, unit, meaning=meaning, next=next or LET_ASK)


LET_ASK = "Run it where nvidia-smi and /sys can be read, as in a container with the driver's tools, or as root."


def _load(conditions: Mapping[str, Any]) -> float:
    """Tasks a processor, before the run."""
    return float(conditions["load_average"] / conditions["cpus"])


def _of_load(conditions: Mapping[str, Any]) -> Finding:
    load, cpus = conditions["load_average"], conditions["cpus"]
    busy = _load(conditions) > BUSY
    return Finding(
        id="conditions/host/load",
        measurement="load average before the run",
        where="host",
        severity="warning" if busy else "pass",
        value=load,
        unit="tasks",
        expected=(None, BUSY * cpus),
        source="half of the processors",
        meaning=f"host load: {load} on {cpus} CPUs before the run."
        + (" Other work may have made figures worse than the machine is." if busy else ""),
        next="Run it again when the machine is idle." if busy else "",
    )


def _of_gpus(found: Found) -> Finding:
    info = found.info
    severity: Severity = "pass" if info.gpus else "info"
    if not info.gpus and info.gpu_status in ("driver too old", "unusable", "unknown"):
        severity = "warning"
    if not info.gpus and found.require_gpu:
        severity = "critical"
    asked = ", which --require-gpu asks for" if found.require_gpu else ""
    return Finding(
        id="machine/gpus/count",
        measurement="GPUs that work",
        where="gpus",
        severity=severity,
        value=len(info.gpus),
        unit="GPUs",
        expected=(1, None) if found.require_gpu else None,
        source="--require-gpu" if found.require_gpu else "",
        meaning=f"{len(info.gpus)} GPUs work." if info.gpus else f"no GPU{asked}: {info.gpu_reason}",
        next=""
        if severity in ("pass", "info")
        else "vecadd info and nvidia-smi say more; the kernel's log has Xid errors.",
    )


def _of_conditions(conditions: Mapping[str, Any]) -> Iterator[Finding]:
    """Of all GPUs together, as nvidia-smi counts them."""
    counted = [
        *(
            (
                f"throttling by {reason}",
                seconds,
                "s",
                "info" if reason in HARMLESS else "critical",
                f"throttling: {reason} for {seconds or 0:.3g} s of the run.",
                "Look at cooling, airflow and power supply before the figures are believed.",
            )
            for reason, seconds in conditions["throttled"].items()
        ),
        (
            "ECC errors",
            conditions["ecc_errors"],
            "errors",
            "critical",
            f"ECC errors: {conditions['ecc_errors'] or 0:.0f} uncorrected since the driver was loaded.",
            "Take the machine out of service, and run the maker's field diagnostic: its memory may need replacement.",
        ),
        (
            "other processes",
            conditions["gpu_processes"],
            "processes",
            "warning",
            f"other processes on the GPU: {conditions['gpu_processes']}. Figures may be worse than the machine is.",
            "End them, and run it again.",
        ),
    ]
    for name, value, unit, severity, meaning, next in counted:
        if value is None:
            yield unknown(f"conditions/gpus/{name}", name, unit, f"{name}: nvidia-smi does not say.")
        else:
            yield Finding(
                id=f"conditions/gpus/{name}",
                measurement=name,
                where="gpus",
                severity=severity if value else "pass",  # type: ignore[arg-type]
                value=value,
                unit=unit,
                expected=(None, 0.0),
                source="a machine that is healthy and idle has none",
                meaning=meaning if value else f"{name}: none.",
                next=next if value else "",
            )
