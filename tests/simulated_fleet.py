"""Simulated fleets: the files of ``vecadd check`` of a thousand machines, with faults that are known.

Healthy figures differ by the part (a GPU on the other processor has a slower link), by the machine a little, and by
noise: nearly always of the normal law, but one figure in fifty has three times as much (J. W. Tukey's contaminated
normal, 1960), as figures of machines that are not quite idle have.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from random import Random
from typing import Any

from vecadd.figures import CHECK, CHECK_VERSION
from vecadd.fleet.outliers import Cause

GPUS = 8
RACK = 20  # machines
CONTAMINATED, WIDER = 0.02, 3.0  # share of the figures, times the noise

Place = tuple[str, str]  # host and part; the part "" is the whole machine


@dataclass(frozen=True)
class Measurement:
    """``value`` is what a healthy H200 machine has, ``noise`` the standard deviation of its logarithm."""

    name: str
    unit: str
    value: float
    noise: float
    of_gpu: bool = True

    def ids(self) -> list[tuple[str, str]]:
        """The id and the part of each finding."""
        group, _, what = self.name.partition("/")
        if not self.of_gpu:
            return [(f"{group}/host/{what}", "host")]
        return [(f"{group}/gpu {gpu}/{what}", f"gpu {gpu}") for gpu in range(GPUS)]


MEASUREMENTS = (
    Measurement("device memory/read", "GB/s", 4585.0, 0.004),
    Measurement("device memory/write", "GB/s", 4650.0, 0.004),
    Measurement("device memory/add", "GB/s", 4450.0, 0.005),
    Measurement("link/to the device", "GB/s", 55.0, 0.006),
    Measurement("link/to the host", "GB/s", 55.5, 0.006),
    Measurement("link/both ways", "GB/s", 94.0, 0.015),
    Measurement("link/width", "lanes", 16.0, 0.0),
    Measurement("launch/empty kernel", "us", 2.9, 0.03),
    Measurement("memory/add", "GB/s", 152.0, 0.03, of_gpu=False),
    Measurement("memory/small add", "ns", 200.0, 0.05, of_gpu=False),
)
OTHER_TYPE = 0.43  # of the second type's memory and links beside the first one's

# A fault: by how much which figure is worse at a place.
Fault = Callable[[str, str], float]
Faults = dict[Place, Fault]


def slow_link(share: float) -> Fault:
    """Fewer lanes, or a lower generation."""
    return lambda measurement, unit: share if measurement.startswith("link/") and unit == "GB/s" else 1.0


def slow_memory(share: float) -> Fault:
    return lambda measurement, unit: share if measurement.startswith("device memory/") else 1.0


def hosts(count: int) -> list[str]:
    return [f"rack{at // RACK:02}-node{at % RACK:02}" for at in range(count)]


def rack_of(host: str) -> str:
    return host.partition("-")[0]


def planted(names: Sequence[str], seed: int) -> Faults:
    """Four slow links, four bad GPUs, and a rack that is throttled by a tenth, all in different racks."""
    order = Random(seed)
    racks = sorted({rack_of(host) for host in names})
    hot = order.choice(racks[: len(racks) // 2])  # of the first type
    others = [rack for rack in racks if rack != hot]
    order.shuffle(others)
    singles = [order.choice([host for host in names if rack_of(host) == rack]) for rack in others[:8]]
    faults: Faults = {(host, ""): slow_memory(0.90) for host in names if rack_of(host) == hot}
    for host, share in zip(singles[:4], (0.25, 0.5, 0.8, 0.9), strict=True):
        faults[host, f"gpu {order.randrange(GPUS)}"] = slow_link(share)
    for host, share in zip(singles[4:], (0.7, 0.85, 0.9, 0.93), strict=True):
        faults[host, f"gpu {order.randrange(GPUS)}"] = slow_memory(share)
    return faults


def fleet(count: int, seed: int, faults: Faults | None = None, day: int = 1) -> list[dict[str, Any]]:
    """A file's content for each machine; four of five are of the first type."""
    order, found = Random(seed), []
    names = hosts(count)
    for at, host in enumerate(names):
        other = at >= 0.8 * count
        findings = []
        for measurement in MEASUREMENTS:
            machine = order.gauss(0, measurement.noise / 2)
            for part, (identifier, where) in enumerate(measurement.ids()):
                noise = measurement.noise * (WIDER if order.random() < CONTAMINATED else 1.0)
                value = measurement.value * exp(machine + order.gauss(0, noise))
                if measurement.name.startswith("link/") and measurement.unit == "GB/s" and part >= GPUS // 2:
                    value *= 0.96  # on the other processor
                if other and measurement.unit == "GB/s":
                    value *= OTHER_TYPE
                for place in ((host, ""), (host, where)):
                    share = (faults or {}).get(place, lambda *_: 1.0)(measurement.name, measurement.unit)
                    value *= share if measurement.unit in ("GB/s", "lanes") else 1 / share
                findings.append(finding(identifier, value, measurement.unit))
        machine_type = "8 x A100" if other else "8 x H200"
        found.append(content(host, findings, machine_type=machine_type, time=f"2026-11-{day:02}T12:00:00+00:00"))
    return found


def finding(id: str, value: float | None, unit: str = "GB/s", **changed: Any) -> dict[str, Any]:
    """A finding that passes."""
    _, where, measurement = id.split("/", 2)
    return {
        "id": id,
        "measurement": measurement,
        "where": where,
        "severity": "pass",
        "value": value,
        "unit": unit,
        "interval": None if value is None else [0.99 * value, 1.01 * value],
        "expected": None,
        "source": "made up",
        "meaning": "",
        "next": "",
        **changed,
    }


def content(host: str, findings: list[dict[str, Any]], **changed: Any) -> dict[str, Any]:
    """The file of a machine's check."""
    return {
        "schema": CHECK,
        "schema_version": CHECK_VERSION,
        "status": "passed",
        "host": host,
        "time": "2026-11-01T12:00:00+00:00",
        "vecadd": {"version": "0.1.0", "commit": None},
        "machine": {"machine": "elsewhere"},
        "machine_type": "8 x H200",
        "findings": findings,
        "conditions": {},
        **changed,
    }


def places(causes: Sequence[Cause]) -> set[Place]:
    """Where the causes say that something is wrong, as `planted` names it."""
    return {(host, cause.where if cause.level == "part" else "") for cause in causes for host in cause.hosts}


def expanded(hostlist: str) -> list[str]:
    """The hosts of a compressed list, as Slurm reads it."""
    found = []
    for prefix, ranges, plain in re.findall(r"([^,\[]*)\[([^]]*)\]|([^,\[]+)", hostlist):
        found += [plain] if plain else []
        for each in filter(None, ranges.split(",")):
            first, _, last = each.partition("-")
            found += [f"{prefix}{number:0{len(first)}}" for number in range(int(first), int(last or first) + 1)]
    return found
