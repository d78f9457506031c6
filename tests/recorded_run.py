"""The record of a long run of tests: what it counted, on which machine, at which sources."""

from pathlib import Path
from typing import Any


def save(path: Path, run: str, seconds: float, **counts: Any) -> None:
    """Writes the counts, the machine, the day and the digest of the sources of such a run as JSON."""
    from vecadd.bench import machine, results, sources  # not before: stream_orders.py is a plugin that loads the double

    digests = {run: sources.digest(run)}
    results.save(path, {**machine.origin(), "sources": digests, "seconds": round(seconds, 1), **counts})
