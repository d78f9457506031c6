"""The record of a long run of tests: what it counted, on which machine, at which commit."""

from pathlib import Path
from typing import Any


def save(path: Path, seconds: float, **counts: Any) -> None:
    """Writes the counts, the machine, the day and the commit of such a run as JSON."""
    from vecadd.bench import machine  # not before: stream_orders.py is a plugin that loads the double
    from vecadd.figures import write_json

    write_json(path, {**machine.origin(), "seconds": round(seconds, 1), **counts})
