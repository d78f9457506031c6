"""What NVIDIA's two profilers have in common: where they are, how they watch a child, and how their CSV is read."""

import csv
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path

from vecadd._environment import of_child
from vecadd.profile.spec import Spec

FAILED = "vecadd: "  # before the one line of a child that failed


class ProfilerError(RuntimeError):
    """A profiler failed on a rung; the message holds its output."""


class RefusedError(ProfilerError):
    """A profiler that is missing or that refuses to work for any rung: one line that says how to get it."""


def find(name: str, folders: Iterable[str]) -> Path | None:
    """The profiler on PATH, else the newest of those in these folders."""
    if on_path := shutil.which(name):
        return Path(on_path)
    found = [path for folder in folders for path in Path("/").glob(f"{folder.lstrip('/')}/{name}") if path.is_file()]
    return max(found, key=_version, default=None)


def watch(profiler: Sequence[str], spec: Spec, timeout: float) -> "subprocess.CompletedProcess[str]":
    """The profiler's output and exit status after it has watched a child; raises subprocess.TimeoutExpired."""
    return subprocess.run(
        [*profiler, *spec.command()],
        env=of_child(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
    )


def failure(output: str) -> str | None:
    """The child's error line among the profiler's lines; None where there is none."""
    lines = (line.partition(FAILED)[2] for line in output.splitlines() if line.startswith(FAILED))
    return next(lines, None)


def words(said: "subprocess.CompletedProcess[str]") -> str:
    """All that the profiler said."""
    return (said.stdout + said.stderr).strip() or "nothing"


def rows_of(text: str) -> Iterator[list[str]]:
    """The rows of a CSV text whose cells may hold line breaks."""
    return csv.reader(StringIO(text, newline=""))


def number(text: str) -> float | None:
    """ "1,234.5" as 1234.5; None for other text."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if value == value else None


def _version(path: Path) -> tuple[list[int], str]:
    """The version in the folder's name, for sorting: the greatest is the newest."""
    return [int(part) for part in re.findall(r"\d+", str(path))], str(path)
