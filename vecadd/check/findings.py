"""What is wrong with a machine, in words: from its conditions over the run and from the rows that failed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vecadd._machine import Gpu, Info
from vecadd.check.rows import Row

BUSY = 0.5  # of the host's processors, by the load average: above it other work disturbs the figures
DRIFT = 0.05  # from the first round to the last: a greater drift is reported
HARMLESS = ("power cap",)  # throttling that a healthy GPU at full power may show


@dataclass(frozen=True)
class Finding:
    """``fails``: the machine is to blame, not other work on it."""

    text: str
    fails: bool


def of(found: Info, conditions: Mapping[str, Any], rows: Iterable[Row]) -> list[Finding]:
    """``conditions`` as `machine.conditions_since` gives them."""
    rows = list(rows)
    findings = []
    if conditions["load_average"] > BUSY * conditions["cpus"]:
        findings.append(
            Finding(f"host load: {conditions['load_average']} on {conditions['cpus']} CPUs before the run", fails=False)
        )
    if found.gpus:
        findings += _of_gpu(conditions)
        for gpu in found.gpus:
            findings += _of_link(gpu, [row for row in rows if row.kind == "link" and row.gpu == gpu.index])
    return findings + [
        Finding(f"drift: {row.title} was {100 * abs(row.drift):.0f} % slower in the last round", fails=False)
        for row in rows
        if row.drift is not None and (row.drift if row.unit == "s" else -row.drift) > DRIFT
    ]


def _of_gpu(conditions: Mapping[str, Any]) -> list[Finding]:
    findings = [
        Finding(f"throttling: {reason} for {seconds:.3g} s of the run", fails=reason not in HARMLESS)
        for reason, seconds in conditions["throttled"].items()
        if seconds
    ]
    if conditions["ecc_errors"]:
        findings.append(
            Finding(f"ECC errors: {conditions['ecc_errors']:.0f} uncorrected since the driver was loaded", fails=True)
        )
    if conditions["gpu_processes"]:
        findings.append(Finding(f"other processes on the GPU: {conditions['gpu_processes']}", fails=False))
    unknown = [
        name
        for name, known in (
            ("throttling", None not in conditions["throttled"].values()),
            ("ECC errors", conditions["ecc_errors"] is not None),
            ("other processes", conditions["gpu_processes"] is not None),
        )
        if not known
    ]
    if unknown:
        findings.append(Finding(f"unknown: {', '.join(unknown)}: nvidia-smi does not say", fails=False))
    return findings


def _of_link(gpu: Gpu, rows: Iterable[Row]) -> list[Finding]:
    """A link below its possible generation or width, or one of unknown ones."""
    which = f" of GPU {gpu.index}" if gpu.index else ""
    link = {row.name: row for row in rows if row.name in ("generation", "width") and row.values}
    if not link:
        return [Finding(f"unknown: the link's generation and width{which}: the driver does not say", fails=False)]
    if not any(row.passed is False for row in link.values()):
        return []
    now = {name: f"{row.value:.0f}" for name, row in link.items()}
    return [
        Finding(
            f"degraded link{which}: PCIe {now.get('generation', 'unknown')} x{now.get('width', 'unknown')} under load, "
            f"where {gpu.link_generation_max} x{gpu.link_width_max} is possible",
            fails=True,
        )
    ]
