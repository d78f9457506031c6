"""Where and under which conditions a run took place: what a reader needs to judge its figures, or to repeat them."""

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from vecadd import _machine
from vecadd._machine import Info
from vecadd.info import info

ROOT = Path(__file__).resolve().parents[2]  # of the source tree; of site-packages where the package is installed

# nvidia-smi counts for how long each of these made a GPU slower than it could be.
THROTTLING = {
    "power cap": "clocks_event_reasons_counters.sw_power_cap",
    "heat": "clocks_event_reasons_counters.sw_thermal_slowdown",
    "great heat": "clocks_event_reasons_counters.hw_thermal_slowdown",
    "power brake": "clocks_event_reasons_counters.hw_power_brake_slowdown",
}
ECC_ERRORS = "ecc.errors.uncorrected.volatile.total"

# The link to the host: our names and nvidia-smi's. An idle GPU may show a lower generation than it runs at.
LINK = {
    "generation": "pcie.link.gen.current",
    "width": "pcie.link.width.current",
    "generation_max": "pcie.link.gen.max",
    "width_max": "pcie.link.width.max",
}

# Bytes a second of a PCIe lane each way, by generation: transfers times their share of data, over 8 bits.
_LANE = {
    1: 0.25e9,
    2: 0.5e9,
    **{generation: 2**generation * 1e9 * 128 / 130 / 8 for generation in (3, 4, 5)},
    6: 64e9 * 242 / 256 / 8,
}


def meta(found: Info, conditions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The "meta" of a result file. ``conditions`` is what `conditions_since` gave after the run."""
    return {
        **origin(found),
        "gpu": found.as_dict()["gpus"],
        "driver": found.driver or found.cuda_driver,
        "cpu": found.as_dict()["cpu"],
        "versions": {
            "vecadd": found.version,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "cuda": found.cuda_runtime,
            "kernel": platform.release(),
        },
        "contamination": conditions,
        **more,
    }


def origin(found: Info | None = None) -> dict[str, Any]:
    """Of anything that is recorded: on which machine, at which commit, when."""
    return {
        "machine": name(found),
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def name(found: Info | None = None) -> str:
    """The name under which results of this machine are filed: its GPU's, or its processor's and number of threads."""
    found = found or info()
    if found.gpus:
        return _slug(found.gpus[0].name.removeprefix("NVIDIA "))
    return _slug(f"{found.cpu.model or platform.machine()} {found.cpu.threads}t")


def commit(root: Path = ROOT) -> str | None:
    """The commit the tree is at, with "+" where files have changed since; None where git does not say."""
    if not (root / ".git").exists():
        return None
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def conditions_now() -> dict[str, Any]:
    """What else uses this machine; None for what is unknown. Call it before this process uses the GPU, or it counts
    itself. ``throttled`` is in seconds since the driver was loaded; `conditions_since` makes them the run's."""
    gpus = _machine.query_nvidia_smi("gpu", ECC_ERRORS, *THROTTLING.values(), *LINK.values())
    return {
        "load_average": round(os.getloadavg()[0], 2),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_available": _machine.memory_available(),
        # Where nvidia-smi sees no GPU, an empty list of processes says nothing.
        "gpu_processes": len(_machine.query_nvidia_smi("compute-apps", "pid")) if gpus else None,
        "throttled": {reason: _total(gpus, field, 1e-6) for reason, field in THROTTLING.items()},
        "ecc_errors": _total(gpus, ECC_ERRORS),
        "link_width": [{name: _number(gpu, field) for name, field in LINK.items()} for gpu in gpus],
    }


def conditions_since(before: dict[str, Any]) -> dict[str, Any]:
    """The conditions of a run, asked at its end; ``before`` is what `conditions_now` gave at its beginning."""
    now = conditions_now()
    throttled = {
        reason: None if then is None or now["throttled"][reason] is None else round(now["throttled"][reason] - then, 6)
        for reason, then in before["throttled"].items()
    }
    return {
        **before,
        "throttled": throttled,
        "ecc_errors": now["ecc_errors"],
        "link_width": [_busier(*links) for links in zip(before["link_width"], now["link_width"], strict=False)],
    }


def link_theory(generation: int | None, width: int | None) -> float | None:
    """Bytes a second that a PCIe link carries each way in theory; None where either is unknown."""
    lane = _LANE.get(generation or 0)
    return lane * width if lane and width else None


def describe(conditions: dict[str, Any], *, gpu: bool) -> str:
    """The conditions in one line, with those of the GPU where there is one."""
    parts = [f"load average {conditions['load_average']} on {conditions['cpus']} CPUs"]
    if gpu:
        throttled = conditions["throttled"]
        slow = [f"{reason} {seconds:.3g} s" for reason, seconds in throttled.items() if seconds]
        parts += [
            f"other processes on the GPU: {_known(conditions['gpu_processes'])}",
            f"GPU throttled: {', '.join(slow) or ('unknown' if None in throttled.values() else 'never')}",
            f"uncorrected ECC errors: {_known(conditions['ecc_errors'])}",
            *(f"link: {_link(link)}" for link in conditions.get("link_width", [])),
        ]
    return "; ".join(parts)


def _busier(before: dict[str, int | None], after: dict[str, int | None]) -> dict[str, int | None]:
    """The link under load: the greater of the two values, since an idle link may be slower."""
    return {name: max((x for x in (then, after[name]) if x is not None), default=None) for name, then in before.items()}


def _link(link: dict[str, int | None]) -> str:
    """ "PCIe 5 x16", or "PCIe 4 x8 where 5 x16 is possible"."""
    now, most = (
        f"{link[generation] or '?'} x{link[width] or '?'}"
        for generation, width in (("generation", "width"), ("generation_max", "width_max"))
    )
    if "?" in now:
        return "unknown"
    return f"PCIe {now}" if now == most or "?" in most else f"PCIe {now} where {most} is possible"


def _number(gpu: dict[str, str], field: str) -> int | None:
    return int(gpu[field]) if gpu.get(field, "").isdigit() else None


def _known(count: float | None) -> str:
    return "unknown" if count is None else str(count)


def _total(gpus: list[dict[str, str]], field: str, unit: float = 1) -> float | None:
    """The field's sum over all GPUs that report it, times ``unit``; None where none does."""
    values = [int(gpu[field]) for gpu in gpus if gpu.get(field, "").isdigit()]
    return unit * sum(values) if values else None


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10
    ).stdout.strip()


def _slug(text: str) -> str:
    text = re.sub(r"\((R|TM)\)|CPU|Processor", " ", text)
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")
