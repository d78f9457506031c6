"""The record of a long run of tests: what it counted, on which machine, at which sources."""

from pathlib import Path
from typing import Any


def save(path: Path, seconds: float, **counts: Any) -> None:
    """Writes the counts, the machine, the sources and the day as JSON."""
    from vecadd.bench import machine, results

    results.save(path, {**machine.origin(), "seconds": round(seconds, 1), **counts})
