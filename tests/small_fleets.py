"""Small fleets: a figure or a few of each machine, by hand."""

import json
from pathlib import Path
from typing import Any

import simulated_fleet as simulated

from vecadd.check.document import Check, read_check

LEAST = 0.05
STEADY: list[float | None] = [100.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.3, 99.7]


def read(contents: list[dict[str, Any]]) -> list[Check]:
    return [read_check(Path(f"{content['host']}.json"), content) for content in contents]


def written(contents: list[dict[str, Any]], folder: Path) -> Path:
    for number, content in enumerate(contents):
        (folder / f"{number}.json").write_text(json.dumps(content))
    return folder


def machine(host: str = "node1", value: float | None = 100.0, *, unit: str = "GB/s", **changed: Any) -> dict[str, Any]:
    """A machine with one figure."""
    one = simulated.finding("memory/host/add", "add", "host", value, unit)
    return simulated.content(host, [one]) | changed


def machines(values: list[float | None], **changed: Any) -> list[dict[str, Any]]:
    return [machine(f"node{number:02}", value, **changed) for number, value in enumerate(values)]


def eight(values: list[float], host: str = "node1", what: str = "read") -> dict[str, Any]:
    """A machine with a GPU for each value."""
    found = [
        simulated.finding(f"device memory/gpu {gpu}/{what}", what, f"gpu {gpu}", value, "GB/s")
        for gpu, value in enumerate(values)
    ]
    return simulated.content(host, found)
