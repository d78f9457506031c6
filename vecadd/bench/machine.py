"""Where and under which conditions a run took place: what a reader needs to judge its figures, or to repeat them."""

import hashlib
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from vecadd import _host, _nvidia_smi
from vecadd._machine import Info
from vecadd.info import info

ROOT = Path(__file__).resolve().parents[2]  # of the source tree; of site-packages where the package is installed
BUILD_FILES = ("pyproject.toml", "setup.py", "build_backend.py")
SOURCE_FOLDERS = ("csrc", "cuda", "vecadd", "build_native")
SOURCES = {".c", ".h", ".cu", ".cuh", ".py", ".pyi"}

# Bits of nvidia-smi's clocks_event_reasons.active that make a GPU slower than it could be.
THROTTLING = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "hot", 0x40: "very hot", 0x80: "power brake"}


def meta(found: Info, conditions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The "meta" of a result file. ``conditions`` is what `conditions_now` gave before the run."""
    return {
        "machine": name(found),
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
        "revision": revision(),
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "contamination": conditions,
        **more,
    }


def name(found: Info | None = None) -> str:
    """What results of this machine are filed under: its GPU's name, or its processor's and how many threads it has."""
    found = found or info()
    if found.gpus:
        return _slug(found.gpus[0].name.removeprefix("NVIDIA "))
    return _slug(f"{found.cpu.model or platform.machine()} {found.cpu.threads}t")


def revision(root: Path = ROOT) -> str | None:
    """A digest of everything that is compiled or run; None where the package is installed without its sources."""
    if not (root / "csrc").is_dir():
        return None
    paths = [root / file for file in BUILD_FILES]
    for folder in SOURCE_FOLDERS:
        paths += [path for path in sorted((root / folder).rglob("*")) if path.suffix in SOURCES]
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file():
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


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
    """What else uses this machine. To be asked before this process uses the GPU, or it sees itself."""
    gpus = _nvidia_smi.query("gpu", "clocks_event_reasons.active", "ecc.errors.uncorrected.volatile.total")
    return {
        "load_average": round(os.getloadavg()[0], 2),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_available": _host.memory_available(),
        "gpu_processes": len(_nvidia_smi.query("compute-apps", "pid")),
        "throttled": sorted({reason for gpu in gpus for reason in _throttling(gpu)}),
        "ecc_errors": sum(int(gpu.get("ecc.errors.uncorrected.volatile.total", "0")) for gpu in gpus),
    }


def describe(conditions: dict[str, Any]) -> str:
    """The conditions in one line."""
    parts = [f"load average {conditions['load_average']} on {conditions['cpus']} CPUs"]
    if conditions["gpu_processes"]:
        parts.append(f"{conditions['gpu_processes']} other processes on the GPU")
    if conditions["throttled"]:
        parts.append(f"GPU throttled: {', '.join(conditions['throttled'])}")
    if conditions["ecc_errors"]:
        parts.append(f"{conditions['ecc_errors']} uncorrected ECC errors")
    return "; ".join(parts)


def _throttling(gpu: dict[str, str]) -> list[str]:
    try:
        bits = int(gpu.get("clocks_event_reasons.active", "0"), 16)
    except ValueError:
        return []
    return [reason for bit, reason in THROTTLING.items() if bits & bit]


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10
    ).stdout.strip()


def _slug(text: str) -> str:
    text = re.sub(r"\((R|TM)\)|CPU|Processor", " ", text)
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")
