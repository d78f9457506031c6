"""What ``vecadd fleet --json`` has found, as Prometheus text: for the folder of text files of a node exporter.

    vecadd fleet results --json fleet.json
    python prometheus.py fleet.json /var/lib/node_exporter/textfile_collector/vecadd_fleet.prom

Standard library alone. The file takes its name when it is whole, because the exporter may read at any time.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LEVELS = ("group", "machine", "part")


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Each metric with its help and its type."""
    yield from metric("vecadd_fleet_machines", "Machines that were compared.", [({}, found["machines"])])
    levels = [cause["level"] for cause in found["causes"]]
    counts = [({"level": level}, levels.count(level)) for level in LEVELS]
    yield from metric("vecadd_fleet_causes", "Groups, machines and parts that are unlike their peers.", counts)
    excluded = [({"host": host}, 1) for host in found["exclude"]]
    yield from metric("vecadd_fleet_excluded", "Machines to leave out.", excluded)
    ratios = [
        ({name: each[name] for name in ("host", "where", "measurement")}, each["ratio"])
        for cause in found["causes"]
        for each in cause["deviations"]
        if each["ratio"] is not None
    ]
    yield from metric("vecadd_fleet_ratio", "How good a figure is beside what is usual: 1 is as usual.", ratios)


def metric(name: str, about: str, samples: list[tuple[dict[str, str], float]]) -> Iterator[str]:
    """A gauge."""
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        named = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{named}}} {value}" if named else f"{name} {value}"


def escaped(text: str) -> str:
    """A label's value, as the text format wants it."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    whole = "".join(f"{line}\n" for line in lines(json.loads(source.read_text())))
    beside = target.with_suffix(".tmp")  # the exporter reads *.prom
    beside.write_text(whole)
    beside.replace(target)
