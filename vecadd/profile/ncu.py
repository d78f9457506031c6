"""Nsight Compute: where it is, how it watches one launch, and how its pages are read.

A rung runs in a child process of `ncu`, which replays its one marked launch as often as it has groups of counters to
read, with the caches flushed before each pass and the clocks left alone. The report is then read page by page:

    raw      metrics by name, one line a launch below a line of units
    details  the profiler's rules, which are its advice
    source   the instructions and how often each was executed

Columns are found by their names, others are ignored, and a metric that a version or a GPU lacks is not there.
"""

import csv
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vecadd._machine import run_child
from vecadd.profile import metrics
from vecadd.profile.child import FAILED, ProfiledRung

FOLDERS = ("/usr/local/cuda*/bin", "/opt/nvidia/nsight-compute/*", "/usr/local/NVIDIA-Nsight-Compute*")
SECTIONS = (
    "SpeedOfLight",
    "MemoryWorkloadAnalysis",
    "LaunchStats",
    "Occupancy",
    "InstructionStats",
    "WarpStateStats",
    "SourceCounters",
)
DELAY = "wait_cycles"  # the kernel that a rung's clock begins with
LAUNCHES = 2  # to profile: the delay's, and the rung's first
TIMEOUT = 300.0  # seconds; forty passes over 1.5 GiB and the start of Python are 20

GET = "install NVIDIA Nsight Compute (package nsight-compute of NVIDIA's CUDA repository, or its page at \
https://developer.nvidia.com/nsight-compute), or put its folder on PATH"

# The profiler's refusals, and the remedy for each.
REFUSALS = (
    (
        "ERR_NVGPUCTRPERM",
        "the driver lets administrators alone read the GPU's counters (ERR_NVGPUCTRPERM): run as root, in a container "
        "with --cap-add=SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0, see "
        "https://developer.nvidia.com/ERR_NVGPUCTRPERM",
    ),
    (
        "LibraryNotLoaded",
        "ncu does not find the driver's profiling libraries (LibraryNotLoaded): install the NVIDIA driver whole; in a "
        "container, ask for NVIDIA_DRIVER_CAPABILITIES=all",
    ),
    (
        "InterprocessLockFailed",
        "another user's ncu left a lock (InterprocessLockFailed): remove /tmp/nsight-compute-lock, or set TMPDIR to a "
        "folder of your own",
    ),
    (
        "Driver resource was unavailable",
        "something else is reading the GPU's counters (driver resource unavailable): stop the other profiler, or DCGM "
        "by `dcgmi profdev --pause`",
    ),
    (
        "is not supported on device",
        "this version of ncu does not know the GPU: install a newer one, https://developer.nvidia.com/nsight-compute",
    ),
    (
        "Failed to initialize the profiler",
        "ncu cannot start its profiler: its version and the driver's have to go together; install the ncu of the "
        "driver's CUDA version",
    ),
)

_LOAD = re.compile(r"(?:@!?U?P\w+\s+)?((?:LDG|LDGSTS|UBLKCP|UTMALDG|LD)(?:\.[\w.]+)?)(?=\s|;|$)")


class ProfilerError(RuntimeError):
    """The profiler failed on a rung, or the rung did; the message has its output."""


class ProfilerUnavailableError(ProfilerError):
    """The profiler is missing or refuses to work for any rung: one line that says what to do."""


@dataclass(frozen=True)
class Rule:
    """A piece of the profiler's advice: ``kind`` is its "OPT", "INF" or "WRN"; a speed-up in percent."""

    section: str
    name: str
    kind: str
    message: str
    speedup: float | None = None


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel as the profiler saw it.

    ``raw`` is every number of the raw page, (value, unit) by name; ``executed`` how often each kind of load from global
    memory was executed, by warps; ``instructions`` how often any was, None where the source page does not say. ``why``
    says why no profiler saw it.
    """

    kernel: str
    raw: Mapping[str, tuple[float, str]]
    rules: tuple[Rule, ...] = ()
    executed: Mapping[str, int] = field(default_factory=dict)
    instructions: int | None = None
    why: str | None = None

    @property
    def found(self) -> dict[str, float]:
        """The table's rows by key, in base units."""
        counted = {} if self.instructions is None else {"instructions": float(self.instructions)}
        return counted | metrics.select_metrics(self.raw)

    def as_dict(self) -> dict[str, Any]:
        """The launch for JSON, with the table's rows and the stall shares computed: seconds, bytes, percent, 0..1."""
        return {
            "kernel": self.kernel,
            "metrics": self.found,
            "stalls": metrics.stall_shares(self.raw),
            "loads": dict(self.executed),
            "rules": [asdict(rule) for rule in self.rules],
            "raw": {name: [value, unit] for name, (value, unit) in self.raw.items()},
            "counters_missing": self.why,
        }


def profile_launch(spec: ProfiledRung) -> Launch:
    """Nsight Compute's figures of one launch of the rung, replayed. Raises ProfilerUnavailableError where it is missing
    or refuses to work, ProfilerError for another failure."""
    tool = find_ncu()
    if tool is None:
        raise ProfilerUnavailableError(f"ncu is neither on PATH nor in {', '.join(FOLDERS)}: {GET}")
    with TemporaryDirectory(prefix="vecadd-profile-") as folder:
        report = Path(folder) / "launch.ncu-rep"
        said = _run([*_command(tool, report), *spec.command()])
        _raise_refusal(said)
        if said.returncode or not report.exists():
            raise ProfilerError(f"ncu gave no report (exit status {said.returncode}); it said: {show_output(said)}")
        raw = _read_page(tool, report, "raw")
        first = read_launch(raw)
        if first is None:
            raise ProfilerError(f"ncu saw no launch; it said: {show_output(said)}")
        executed, instructions = count_loads(_read_page(tool, report, "source"))
        return replace(
            first, rules=read_rules(_read_page(tool, report, "details")), executed=executed, instructions=instructions
        )


def read_launch(raw: str) -> Launch | None:
    """The rung's first launch in a raw page in CSV, None without one; raises ProfilerError for another text."""
    header, rows = _read_table(raw, "Kernel Name")
    if not header:
        raise ProfilerError(f"ncu gave no raw page in CSV; it said: {raw.strip() or 'nothing'}")
    units: Mapping[str, str] = {}
    for row in rows:
        if not row["Kernel Name"]:
            units = row
        elif DELAY not in row["Kernel Name"]:
            values = ((name, parse_number(text)) for name, text in row.items())
            found = {name: (value, units.get(name, "")) for name, value in values if value is not None}
            return Launch(row["Kernel Name"], found)
    return None


def read_rules(details: str) -> tuple[Rule, ...]:
    """The advice on the rung's first launch in a details page in CSV; none where the page has none."""
    _, rows = _read_table(details, "Rule Name")
    rows = [row for row in rows if DELAY not in row.get("Kernel Name", DELAY) and row["Rule Name"]]
    found = (
        Rule(
            section=row.get("Section Name", ""),
            name=row["Rule Name"],
            kind=row.get("Rule Type", ""),
            message=" ".join(row.get("Rule Description", "").split()),
            speedup=parse_number(row.get("Estimated Speedup", "")),
        )
        for row in rows
        if row.get("ID") == rows[0].get("ID")
    )
    return tuple(dict.fromkeys(found))


def _read_table(page: str, column: str) -> tuple[list[str], list[dict[str, str]]]:
    """The columns of a page in CSV that has this one, and the lines below; neither where no line names it."""
    rows = read_csv(page)
    header = next((row for row in rows if column in row), [])
    return header, [dict(zip(header, row, strict=True)) for row in rows if len(row) == len(header)]


def count_loads(source: str) -> tuple[dict[str, int], int | None]:
    """How often the rung's first launch executed loads from global memory, by kind, the most frequent first, and how
    many instructions it executed in all, from a source page in CSV; ({}, None) without such a page."""
    executed: dict[str, int] = {}
    instructions: int | None = None
    columns: list[str] = []
    inside = False
    for row in read_csv(source):
        if row and row[0] == "Kernel Name":
            if inside and columns:
                break  # the first launch alone
            inside, columns = len(row) > 1 and DELAY not in row[1], []
        elif inside and "Source" in row:
            columns = row
        elif columns and len(row) > columns.index("Source"):
            times = int(_cell(row, columns, "Instructions Executed", "# Instructions Executed") or 0)
            instructions = (instructions or 0) + times
            found = _LOAD.match(row[columns.index("Source")].strip())
            if found is not None:
                executed[found[1]] = executed.get(found[1], 0) + times
    return dict(sorted(executed.items(), key=lambda item: -item[1])), instructions


def _command(tool: Path, report: Path) -> list[str]:
    sections = [part for section in SECTIONS for part in ("--section", section)]
    return [
        str(tool),
        "--export",
        str(report),
        "--force-overwrite",
        "--clock-control",
        "none",
        "--target-processes",
        "all",
        "--profile-from-start",
        "off",
        "--launch-count",
        str(LAUNCHES),
        *sections,
    ]


def _read_page(tool: Path, report: Path, page: str) -> str:
    view = ["--print-source", "sass"] if page == "source" else []
    said = _run([str(tool), "--import", str(report), "--csv", "--page", page, "--print-units", "base", *view])
    if said.returncode:
        raise ProfilerError(f"ncu does not print its report's {page} page; it said: {show_output(said)}")
    return said.stdout


def _run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return run_child(command, TIMEOUT)
    except subprocess.TimeoutExpired:
        raise ProfilerError(f"ncu did not end within {TIMEOUT:g} s") from None


def _raise_refusal(said: "subprocess.CompletedProcess[str]") -> None:
    output = said.stdout + said.stderr
    for sign, line in REFUSALS:
        if sign in output:
            raise ProfilerUnavailableError(line)
    lines = (line.partition(FAILED)[2] for line in output.splitlines() if line.startswith(FAILED))
    if wrong := next(lines, None):
        raise ProfilerError(wrong)


def _cell(row: list[str], columns: list[str], *names: str) -> float | None:
    """The number below the first of these headings; a source page may have one twice."""
    at = next((columns.index(name) for name in names if name in columns), None)
    return None if at is None or at >= len(row) else parse_number(row[at])


def find_ncu() -> Path | None:
    """The ncu on PATH, else the newest of those in the usual folders."""
    if on_path := shutil.which("ncu"):
        return Path(on_path)
    found = [path for folder in FOLDERS for path in Path("/").glob(f"{folder.lstrip('/')}/ncu") if path.is_file()]
    return max(found, key=_version, default=None)


def show_output(said: "subprocess.CompletedProcess[str]") -> str:
    """All that the profiler said."""
    return (said.stdout + said.stderr).strip() or "nothing"


def read_csv(text: str) -> Iterator[list[str]]:
    """The rows of a CSV text whose cells may have line breaks."""
    return csv.reader(StringIO(text, newline=""))


def parse_number(text: str) -> float | None:
    """ "1,234.5" as 1234.5; None for other text."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if value == value else None


def _version(path: Path) -> tuple[list[int], str]:
    """The version in the folder's name, for sorting: the greatest is the newest."""
    return [int(part) for part in re.findall(r"\d+", str(path))], str(path)
