"""The record of a long run of tests: what it counted, on which machine, at which sources."""

import time
from pathlib import Path
from typing import Any


def save(path: Path, seconds: float, **counts: Any) -> None:
    """Writes the counts, the machine and the revision as JSON."""
    from vecadd.bench import machine, results, sources

    record = {
        "machine": machine.name(),
        "revision": sources.revision(),
        "commit": machine.commit(),
        "date": time.strftime("%Y-%m-%d"),
        "seconds": round(seconds, 1),
        **counts,
    }
    results.save(path, record)
