"""What `vecadd tune` has found for this machine, and since when."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vecadd import _core


@dataclass(frozen=True)
class Tuned:
    """One part of what `vecadd tune` measures. ``str()`` of it is a line."""

    part: str  # of `vecadd tune`: "host", "device" or "routes", and which GPU where there may be several
    used: bool  # whether additions go by the file
    path: str | None  # of the file, where it exists
    written: str | None  # when, in local time: "2026-11-22 13:05"

    def __str__(self) -> str:
        if self.used:
            return f"{self.part}: tuned {self.written}, {self.path}" if self.path else f"{self.part}: tuned"
        if self.path:
            return f"{self.part}: not tuned; {self.path} of {self.written} is read by processes that start from now on"
        name = self.part.split()[0]
        instead = ", so page-locked arrays of 32 MiB or more go by what calls took" if name == "routes" else ""
        return f"{self.part}: not tuned{instead}; `vecadd tune {name}` measures this machine"


def find(part: str, kind: str, key: str | None, used: bool | None = None) -> Tuned:
    """The file of that kind and key. ``used`` is None where this process does not know: then a valid file counts."""
    name = _core.tuned_path(kind, key) if key else None
    valid = key is not None and _core.tuned_rows(kind, key) is not None
    used = valid if used is None else used
    if name is None or not valid:
        return Tuned(part, used, None, None)
    written = datetime.fromtimestamp(Path(name).stat().st_mtime)
    return Tuned(part, used, name, f"{written:%Y-%m-%d %H:%M}")


def host() -> Tuned:
    """Of the threads and stores on the host, as this process uses them."""
    facts = _core.host_facts()
    return find("host", "host", facts["key"], facts["tuned"])


def gpus(keys: Sequence[str]) -> list[Tuned]:
    """Of the kernels on each GPU, and of the routes through it; processes that start now go by what is found."""
    threads = _core.get_num_threads()
    return [
        found
        for number, key in enumerate(keys)
        for found in (
            find(f"device (GPU {number})", "recipes", key),
            find(f"routes (GPU {number})", "routes", f"{key}, {threads} threads"),
        )
    ]


def routes(used: bool) -> Tuned:
    """Of the routes, in a process that goes by their calibration or not."""
    try:
        key = _core.routes_key()
    except RuntimeError:  # of a GPU that is lost since
        key = None
    return find("routes", "routes", key, used)
