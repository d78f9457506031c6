"""Runs the compiler commands whose results are out of date, and keeps their output.

A step is up to date while its command, its compiler and all files that it read are as at its last run. Files in the
tree are compared by content, so that a fresh checkout beside a kept build folder recompiles nothing; files outside
(Python, NumPy, CUDA, the system's headers) by size and time. setuptools follows no header and compiles everything anew.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class BuildError(Exception):
    """A command failed; its output has been printed."""


@dataclass(frozen=True)
class Step:
    """One command, run in ROOT. Paths in the tree are relative to it: objects do not depend on where the tree is."""

    label: str
    command: tuple[str, ...]
    output: Path
    inputs: tuple[Path, ...]
    depfile: Path | None = None  # written by the command: the files it read, in make's syntax

    @property
    def stamp(self) -> Path:
        """The stamp file: the state of the step's inputs in its first line, then the command's output."""
        return ROOT / f"{self.output}.stamp"


def run(steps: Iterable[Step]) -> None:
    """Runs the steps that are out of date, as many at once as there are processors; none depends on another."""
    with _alone(), ThreadPoolExecutor(processors()) as pool:
        futures = [pool.submit(_run, step) for step in steps if not _up_to_date(step)]
        wait(futures, return_when=FIRST_EXCEPTION)
        pool.shutdown(cancel_futures=True)
    for future in futures:
        if not future.cancelled():
            future.result()


def warnings(steps: Iterable[Step]) -> list[str]:
    """The output of the steps' commands at their last run, each under its label: compilers print only warnings."""
    said = []
    for step in steps:
        if not step.stamp.is_file():
            raise BuildError(f"{step.label}: a file that it reads was edited meanwhile: build again")
        if text := step.stamp.read_text(encoding="utf-8").partition("\n")[2]:
            said.append(f"{step.label}\n{text}")
    return said


def processors() -> int:
    return len(os.sched_getaffinity(0))


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Locks the build folder: two builds at once, for example pip's and make's, would write the same objects."""
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(step: Step) -> None:
    (ROOT / step.output).parent.mkdir(parents=True, exist_ok=True)
    step.stamp.unlink(missing_ok=True)
    started = time.time_ns()
    process = subprocess.run(step.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if process.returncode:
        sys.stdout.write(f"{step.label}\n{shlex.join(step.command)}\n{process.stdout}")
        sys.stdout.flush()
        raise BuildError(f"{step.label} failed")
    sys.stdout.write(f"{step.label}\n{process.stdout}")
    sys.stdout.flush()
    # A file that was edited while the compiler ran may have been read before or after: no stamp, so it runs again.
    if all((ROOT / path).stat().st_mtime_ns < started for path in _read_by(step)):
        step.stamp.write_text(f"{_state(step)}\n{process.stdout}", encoding="utf-8")


def _up_to_date(step: Step) -> bool:
    try:
        state = step.stamp.read_text(encoding="utf-8").partition("\n")[0]
        return (ROOT / step.output).is_file() and state == _state(step)
    except OSError:
        return False


def _state(step: Step) -> str:
    compiler = Path(shutil.which(step.command[0]) or step.command[0])
    state = hashlib.blake2b(json.dumps(step.command).encode())
    for path in (compiler, *_read_by(step)):
        state.update(f"{path} {_fingerprint(path)}\n".encode())
    return state.hexdigest()


def _read_by(step: Step) -> Iterator[Path]:
    yield from step.inputs
    if step.depfile:
        _, _, names = (ROOT / step.depfile).read_text(encoding="utf-8").replace("\\\n", " ").partition(": ")
        yield from (Path(name.replace("\\ ", " ")) for name in re.split(r"(?<!\\)\s+", names.strip()))


def _fingerprint(path: Path) -> str:
    stat = (ROOT / path).stat()
    if path.is_absolute():
        return f"{stat.st_size} {stat.st_mtime_ns}"
    return _contents(path, stat.st_size, stat.st_mtime_ns)


@functools.cache
def _contents(path: Path, size: int, mtime_ns: int) -> str:
    return hashlib.blake2b((ROOT / path).read_bytes()).hexdigest()
