"""Run by a profiler as ``python -m vecadd.profile.child SPEC``: one rung, warmed up, once between marks, checked.

The marks are the driver's cuProfilerStart and cuProfilerStop: ``ncu --profile-from-start off`` looks at nothing outside
of them. Without a driver (on the tests' double of the CUDA runtime) the rung runs without marks.
"""

import ctypes
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from vecadd import _core
from vecadd._machine import python_command
from vecadd.bench.operands import DEVICE, HOST, PINNED, Buffers, MemoryKind, Pattern
from vecadd.bench.options import find_dtype
from vecadd.model.theory import with_parameters

# Which rung is to be profiled.

FAILED = "vecadd: "  # before the one line of a child that failed


@dataclass(frozen=True)
class ProfiledRung:
    """Which rung to run, as passed to the profiled child: ``block`` is 0 for the rung's own."""

    rung: str
    dtype: str
    n: int
    block: int = 0
    params: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "ProfiledRung":
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
        """The command that the profiler starts."""
        return python_command("-m", "vecadd.profile.child", json.dumps(self.as_dict()))


WARM_UPS = 2  # the first call loads the kernel, the second finds it loaded


def run_rung(spec: ProfiledRung, watched: Callable[[Buffers], object] | None = None) -> None:
    """Warms the rung up, runs it between the marks, or as ``watched`` does, and checks the sum; raises what it raises,
    and WrongSumError."""
    rung, place = with_parameters(spec.facts, dict(spec.params)), _memory_of(spec)
    pattern = Pattern(find_dtype(spec.dtype))
    (used,) = pattern.buffers(place, spec.n, 1)
    accumulates = rung["sum"] != "written"

    def once() -> None:
        _core.run_rung(spec.rung, used.a, used.b, used.out, block=spec.block, params=dict(spec.params))

    for _ in range(WARM_UPS):
        once()
    (place.clear if accumulates else place.poison)(used.out)
    if watched is None:
        with _profiler_range():
            once()
    else:
        watched(used)
    if rung["sum"] == "raced":
        return
    by_each_thread = rung["sum"] == "added by each thread"
    pattern.check(place, used, (spec.block or rung["block"]) if by_each_thread else 1)


def _memory_of(spec: ProfiledRung) -> MemoryKind:
    """The operands' memory: pinned for a transfer rung that refuses other memory or is slower with it."""
    if spec.facts["kind"] != "transfer":
        return DEVICE
    return HOST if spec.facts["memory"] == "pageable" else PINNED


@contextmanager
def _profiler_range() -> Iterator[None]:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        yield
        return
    _call_driver(driver.cuProfilerStart, "cuProfilerStart")
    try:
        yield
    finally:
        _call_driver(driver.cuProfilerStop, "cuProfilerStop")


def _call_driver(function: Any, name: str) -> None:
    status = function()
    if status:
        raise RuntimeError(f"{name}: CUDA driver status {status}")


if __name__ == "__main__":
    try:
        run_rung(ProfiledRung.from_dict(json.loads(sys.argv[1])))
    except Exception as error:  # one line, which the parent finds among the profiler's
        print(f"{FAILED}{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)
