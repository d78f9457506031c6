"""Which rung is to be profiled, and how a profiler is made to watch it."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import environ, pathsep
from pathlib import Path
from typing import Any

from vecadd import _core

FAILED = "vecadd: "  # before the one line of a child that failed


@dataclass(frozen=True)
class Spec:
    """Which rung to run, as a profiler's child gets it: ``block`` is 0 for the rung's own."""

    rung: str
    dtype: str
    n: int
    block: int = 0
    params: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Spec":
        """From what `as_dict` gave."""
        return cls(**{**given, "params": tuple(given["params"].items())})

    @property
    def facts(self) -> dict[str, Any]:
        """The rung's row of `_core.rungs()`."""
        return next(rung for rung in _core.rungs() if rung["name"] == self.rung)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain dicts, numbers and strings."""
        return asdict(self) | {"params": dict(self.params)}

    def command(self) -> list[str]:
        """What a profiler is to start. -P: a file called numpy.py in the current folder must not break the child."""
        return [sys.executable, "-P", "-m", "vecadd.profile.child", json.dumps(self.as_dict())]


def watch(profiler: Sequence[str], spec: Spec, timeout: float) -> "subprocess.CompletedProcess[str]":
    """The profiler's output and exit status after it has watched a child; raises subprocess.TimeoutExpired."""
    here = str(Path(__file__).parents[2])
    path = pathsep.join(filter(None, (environ.get("PYTHONPATH"), here)))
    return subprocess.run(
        [*profiler, *spec.command()],
        env={**environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
    )


def failure(output: str) -> str | None:
    """What the child says went wrong, among the profiler's own lines; None where it does not say."""
    lines = (line.partition(FAILED)[2] for line in output.splitlines() if line.startswith(FAILED))
    return next(lines, None)
