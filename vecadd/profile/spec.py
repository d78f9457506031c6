"""Which rung is to be profiled."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from vecadd import _core

FAILED = "vecadd: "  # before the one line of a child that failed


@dataclass(frozen=True)
class Spec:
    """Which rung to run, as passed to the profiled child: ``block`` is 0 for the rung's own."""

    rung: str
    dtype: str
    n: int
    block: int = 0
    params: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Spec":
        """The spec from the dict that `as_dict` gave."""
        return cls(**{**given, "params": tuple(given["params"].items())})

    @property
    def facts(self) -> dict[str, Any]:
        """The rung's row of `_core.rungs()`."""
        return next(rung for rung in _core.rungs() if rung["name"] == self.rung)

    def as_dict(self) -> dict[str, Any]:
        """This spec as plain dicts, numbers and strings."""
        return asdict(self) | {"params": dict(self.params)}

    def command(self) -> list[str]:
        """The command that the profiler starts. -P: a file called numpy.py in the current folder must not break the
        child."""
        return [sys.executable, "-P", "-m", "vecadd.profile.child", json.dumps(self.as_dict())]
