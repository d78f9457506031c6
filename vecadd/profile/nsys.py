"""Nsight Systems: where it is, how it watches one run of a transfer rung, and how its summaries are read.

    cuda_api_sum            calls of the CUDA runtime and how long each took on the host
    cuda_gpu_kern_sum       kernels
    cuda_gpu_mem_time_sum   copies, by direction, in seconds
    cuda_gpu_mem_size_sum   and in bytes

The summaries come one after the other in CSV; headings identify each, and columns are found by their names.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vecadd.profile.spec import Spec
from vecadd.profile.tools import ProfilerError, RefusedError, failure, find, number, rows_of, watch, words

FOLDERS = ("/usr/local/cuda*/bin", "/opt/nvidia/nsight-systems/*/bin", "/opt/nvidia/nsight-systems-cli/*/bin")
REPORTS = ("cuda_api_sum", "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum")
TIMEOUT = 300.0  # seconds

GET = "install NVIDIA Nsight Systems (package nsight-systems-cli of NVIDIA's CUDA repository, or its page at \
https://developer.nvidia.com/nsight-systems), or put its folder on PATH"

# The profilers' names of the directions, newer and older.
DIRECTIONS: Mapping[str, str] = {
    "Host-to-Device": "to_device",
    "HtoD": "to_device",
    "Device-to-Host": "to_host",
    "DtoH": "to_host",
}


@dataclass(frozen=True)
class Calls:
    """Calls of one name, in seconds."""

    name: str
    count: int
    total: float
    average: float
    median: float
    least: float
    most: float
    deviation: float


@dataclass(frozen=True)
class Summary:
    """The summary of one run of a rung. ``copied`` is bytes by direction."""

    api: tuple[Calls, ...] = ()
    kernels: tuple[Calls, ...] = ()
    copies: tuple[Calls, ...] = ()
    copied: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """This summary as plain dicts, lists, numbers and strings."""
        return {
            "api": [asdict(calls) for calls in self.api],
            "kernels": [asdict(calls) for calls in self.kernels],
            "copies": [asdict(calls) for calls in self.copies],
            "copied": dict(self.copied),
        }


def direction(operation: str) -> str | None:
    """ "to_device" or "to_host" of "[CUDA memcpy Host-to-Device]"; None for what crosses no link."""
    return next((way for words, way in DIRECTIONS.items() if words in operation), None)


def profile(spec: Spec) -> Summary:
    """Nsight Systems' summary of one run of the rung; raises RefusedError where the tool is missing, and
    ProfilerError."""
    tool = find("nsys", FOLDERS)
    if tool is None:
        raise RefusedError(f"nsys is neither on PATH nor in {', '.join(FOLDERS)}: {GET}")
    with TemporaryDirectory(prefix="vecadd-profile-") as folder:
        report = Path(folder) / "run.nsys-rep"
        try:
            said = watch(_command(tool, report), spec, TIMEOUT)
            if wrong := failure(said.stdout + said.stderr):
                raise ProfilerError(wrong)
            if said.returncode or not report.exists():
                raise ProfilerError(f"nsys gave no report (exit status {said.returncode}); it said: {words(said)}")
            stats = subprocess.run(
                [str(tool), "stats", "--format", "csv", "--force-export=true", *_reports(), str(report)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise ProfilerError(f"nsys did not end within {TIMEOUT:g} s") from None
    summary = read(stats.stdout)
    if stats.returncode or not (summary.api or summary.copies):
        raise ProfilerError(f"nsys gave no summary (exit status {stats.returncode}); it said: {words(stats)}")
    return summary


def read(stats: str) -> Summary:
    """The summaries of ``nsys stats --format csv``; missing ones are empty."""
    found: dict[str, list[Calls]] = {"api": [], "kernels": [], "copies": []}
    copied: dict[str, float] = {}
    columns: list[str] = []
    for row in rows_of(stats):
        if "Name" in row or "Operation" in row:
            columns = row
            continue
        if not row or len(row) != len(columns):  # the end of a summary, or a message of nsys between two
            columns = []
            continue
        cells = dict(zip(columns, row, strict=True))
        if "Total (MB)" in cells:
            if way := direction(cells.get("Operation", "")):
                copied[way] = copied.get(way, 0.0) + 1e6 * (number(cells["Total (MB)"]) or 0.0)
            continue
        kind = "copies" if "Operation" in cells else "kernels" if "Instances" in cells else "api"
        found[kind].append(_calls(cells))
    return Summary(tuple(found["api"]), tuple(found["kernels"]), tuple(found["copies"]), copied)


def _calls(cells: Mapping[str, str]) -> Calls:
    def seconds(name: str) -> float:
        return 1e-9 * (number(cells.get(f"{name} (ns)", "")) or 0.0)

    count = next((cells[name] for name in ("Num Calls", "Instances", "Count") if name in cells), "")
    return Calls(
        name=cells.get("Name") or cells.get("Operation", ""),
        count=int(number(count) or 0),
        total=seconds("Total Time"),
        average=seconds("Avg"),
        median=seconds("Med"),
        least=seconds("Min"),
        most=seconds("Max"),
        deviation=seconds("StdDev"),
    )


def _command(tool: Path, report: Path) -> list[str]:
    return [
        str(tool),
        "profile",
        "--trace=cuda",
        "--sample=none",
        "--cpuctxsw=none",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",  # does not end the child, which still checks its sum
        "--force-overwrite=true",
        f"--output={report.with_suffix('')}",
    ]


def _reports() -> list[str]:
    return [part for report in REPORTS for part in ("--report", report)]
