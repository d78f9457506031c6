"""The result file of the check: schema.json says what it holds, and this file makes and reads it."""

import json
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from vecadd._machine import Info
from vecadd._version import package_version
from vecadd.bench.machine import commit
from vecadd.check.findings import Finding
from vecadd.check.measure import GROUPS

SCHEMA, SCHEMA_VERSION = "vecadd-check", 2

Status = Literal["passed", "failed", "unknown"]

_CPUS = Path("/sys/devices/system/cpu")


def schema() -> str:
    """The text of the published schema (JSON Schema 2020-12)."""
    return (files("vecadd.check") / "schema.json").read_text(encoding="utf-8")


def status_of(findings: Sequence[Finding]) -> Status:
    """ "unknown" where something that was to be measured could not be: no GPU passes because others fill it."""
    if any(finding.fails for finding in findings):
        return "failed"
    lost = [finding for finding in findings if finding.severity == "unknown" and _is_measured(finding)]
    return "unknown" if lost or not any(_is_measured(finding) for finding in findings) else "passed"


def _is_measured(finding: Finding) -> bool:
    """Whether it is a figure, rather than what the system says of itself."""
    group, _, rest = finding.id.partition("/")
    return group in (*GROUPS.values(), "soak") and not rest.endswith(("/generation", "/width", "/peer access"))


def of(
    machine: Mapping[str, Any], machine_type: str, findings: Sequence[Finding], conditions: Mapping[str, Any]
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
        "findings": [finding.as_dict() for finding in findings],
        "conditions": dict(conditions),
    }


def of_text(path: Path, text: str) -> dict[str, Any] | None:
    """The content of such a file, from its text; None for a file of another kind. Raises ValueError for a version that
    is not read."""
    try:
        content = json.loads(text)
    except (RecursionError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        return None
    if content.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(
            f"{path} is a file of vecadd check of version {json.dumps(content.get('schema_version'))}; this vecadd "
            f"reads version {SCHEMA_VERSION}: install the vecadd that wrote it, or check the machine again"
        )
    return content


def machine_type(found: Info) -> str:
    """What machines of one kind share: "2 × NVIDIA H200, 2 × Intel Xeon Platinum 8480C"."""
    gpus = Counter(gpu.name for gpu in found.gpus)
    cpu = found.cpu.model or platform.machine() or "unknown processor"
    cpu = re.sub(r"\((R|TM|tm)\)|\bCPU\b|\bProcessor\b|@.*|\d+-Core", " ", cpu)
    sockets = f"{_sockets()} × {' '.join(cpu.split())}"
    return ", ".join([*(f"{count} × {name}" for name, count in sorted(gpus.items())), sockets])


def _sockets() -> int:
    """1 where the system does not say."""
    packages = set()
    for path in _CPUS.glob("cpu[0-9]*/topology/physical_package_id"):
        try:
            packages.add(path.read_text(encoding="utf-8").strip())
        except OSError:
            return 1
    return len(packages) or 1
