"""What the tests of vecadd check share: an H200 that is made up, files of earlier checks, and checks that are quick."""

import json
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import pytest
import simulated_fleet as simulated
from conftest import child_environment

from vecadd import _machine, cli
from vecadd.bench import machine, probes, timing
from vecadd.check import findings, measure, outputs
from vecadd.check.findings import make_figure
from vecadd.check.measure import GROUPS, expect
from vecadd.figures import Check as CheckRun
from vecadd.figures import Figure
from vecadd.info import info

H200 = _machine.Gpu(
    index=0, name="NVIDIA H200", compute_capability="9.0", multiprocessors=132, clock=1.98e9,
    threads_per_multiprocessor=2048, blocks_per_multiprocessor=32, registers_per_multiprocessor=65536,
    shared_per_multiprocessor=233472, shared_reserved=1024, memory=150_110_011_392, l2=62_914_560,
    bandwidth=4.814304e12, ecc=True, link_generation=5, link_width=16, link_generation_max=5, link_width_max=16,
)  # fmt: skip

EASY = {"streaming": ("host", "add 2^14", 1e-9), "small": ("host", "add 2^10", 1e9)}  # any machine passes

# What a machine with a GPU reports that nothing else uses.
QUIET: dict[str, Any] = {
    "load_average": 0.1,
    "cpus": 16,
    "gpu_processes": 0,
    "ecc_errors": 0,
    "throttled": {"power cap": 0.0, "heat": 0.0},
}


def earlier(path: Path, **figures: tuple[str, str, float]) -> Path:
    """A file of an earlier check: kind, name and figure of what it measured, of the first GPU or of it and another."""
    found = []
    for kind, name, value in figures.values():
        where = "host" if kind == "host" else "gpu 0 to gpu 1" if kind == "pair" else "gpu 0"
        found.append(simulated.finding(f"{GROUPS.get(kind, kind)}/{where}/{name}", value))
    path.write_text(json.dumps(simulated.content("there", found)))
    return path


def make_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rows at sizes that the double has time for, on a machine that does nothing else."""
    monkeypatch.setattr("os.getloadavg", lambda: (0.1, 0.0, 0.0))
    monkeypatch.setattr(measure, "STREAMING", (1 << 14,))
    monkeypatch.setattr(measure, "DEVICE_SIZES", (1 << 12,))
    monkeypatch.setattr(measure, "LARGEST", 1 << 13)
    monkeypatch.setattr(measure, "SECONDS", 1e-3)
    monkeypatch.setattr(measure, "ENOUGH", 1)
    monkeypatch.setattr(measure, "PAIR_BYTES", 1 << 12)
    monkeypatch.setattr(probes, "LINK_BYTES", 1 << 16)
    monkeypatch.setattr(probes, "PROBE_ROUNDS", 1)
    monkeypatch.setattr(probes, "DEVICE_CACHES", 1)
    monkeypatch.setattr(timing, "SETTLE", 0.0)
    monkeypatch.setenv("PYTHONPATH", child_environment()["PYTHONPATH"])  # for the child that looks for GPUs


@cache
def this_machine() -> _machine.Info:
    """What vecadd.info() says, asked once."""
    return info()


def hide_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check finds a machine without a GPU."""
    found = replace(this_machine(), gpus=(), gpu_status="no GPU", gpu_reason="the driver sees no GPU")
    monkeypatch.setattr("vecadd.check.command.info", lambda: found)


@dataclass(frozen=True)
class Check:
    """check(*options): the exit status and the content of the file."""

    folder: Path

    def __call__(self, *options: str) -> tuple[int, dict[str, Any]]:
        file = self.folder / "check.json"
        status = cli.main(["check", "--json", str(file), *options])
        return status, json.loads(file.read_text())


def of_id(content: dict[str, Any], id: str) -> dict[str, Any]:
    """The finding with that id."""
    (found,) = (finding for finding in content["findings"] if finding["id"] == id)
    return dict(found)


def measured_of(*figures: Figure, **more: Any) -> measure.Measured:
    return measure.Measured(figures={figure.name: figure for figure in figures}, **more)


def figure_of(kind: str, what: str, *rounds: float, passes: tuple[float, float] | None = None, **more: Any) -> Figure:
    """What these rounds have measured. ``passes`` is what is expected of it: a reference, and the share that passes."""
    measured = measure.Measured()
    where = {name: more.pop(name) for name in ("gpu", "to") if name in more}
    for value in rounds or (None,):
        measured.add(kind, what, value, **where)
    (figure,) = (replace(each, **more) for each in measured.figures.values())
    return expect(figure, *passes, "") if passes else figure


NASTY = 'a "quoted" <b>path</b>\\with\na line & more'


def graded() -> CheckRun:
    """A check of a machine with an H200, with a finding of every severity."""
    here = replace(this_machine(), gpus=(H200,))
    measured = measured_of(
        figure_of("device", "read", 4470.0, 4400.0, 4480.0),
        figure_of("launch", "empty kernel", 2.9e-6),
        replace(figure_of("link", "width", 8.0, passes=(16.0, 1.0)), source=NASTY),
    )
    series = [{"at": at, "GB/s": rate, "clock MHz": None} for at, rate in ((1.0, 4000.0), (2.0, 3000.0), (3.0, 3000.0))]
    soak = make_figure(
        "soak/gpu 0/rate", "rate over the soak", "warning", 3000.0, "GB/s", NASTY, "Look.",
        interval=(3000.0, 4000.0), expected=(3800.0, inf), source="the first fifth", more={"series": series},
    )  # fmt: skip
    found = findings.find_all(here, QUIET | {"ecc_errors": None}, measured, more=[soak])
    meta = machine.meta(here, QUIET, method="", limits={}, rounds=3, interrupted=False)
    return outputs.make_check(meta, "1 × NVIDIA H200, 1 × made up", found, QUIET)
