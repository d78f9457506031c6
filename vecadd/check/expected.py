"""What a figure is compared with: an earlier file's, or theory and the probes of the same run.

Theory is what the device reports: its memory's clock and bus, and the highest generation and width of its link. A table
below has the share of it that a healthy machine reaches, set by an H200's share, which is beside it. Additions of
device memory are compared with vecadd.model, figures without a theory with probes of the same run, and launches with an
H200's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import inf
from pathlib import Path

from vecadd import _core, model
from vecadd._machine import Gpu, Info
from vecadd.bench import machine
from vecadd.bench.options import parse_sizes
from vecadd.check import measure
from vecadd.check.measure import DTYPE, GROUPS, SMALL, STREAMERS, Measured, expect, make_measured
from vecadd.figures import Check, Figure, Run, read_object, run_or_check
from vecadd.model.limits import RECORDED
from vecadd.tables import show_figure, show_size

Limits = Mapping[str, Mapping[str, float]]  # of one GPU, as in the meta of a result file
Expected = tuple[float, float, str]  # the reference, the share of it that passes, and its source: see measure.expect

# By kind, the share by which two healthy runs of one machine may differ.
TOLERANCES: Mapping[str, float] = {"host": 0.20, "link": 0.05, "device": 0.03, "launch": 0.30, "pair": 0.05}

# The expected share of theory or of a probe of the same run.
SHARES: Mapping[str, float] = {
    "link to the device": 0.75,  # an H200's PCIe 5 x16: 0.81 to 0.88 by its host; the rest is packet headers
    "link to the host": 0.75,  # 0.87
    "link both ways": 0.60,  # of both directions: 0.68 to 0.80
    "pair by NVLink": 0.70,  # two H200s: 0.78 by kernels, whose packets are of 128 bytes, 0.82 by copy engines
    "pair by PCIe": 0.60,  # of the slower GPU's link
    "device read": 0.90,  # 0.93
    "device write": 0.90,  # 0.96
    "device add": 0.80,  # of the model, which is within 10 % of most healthy cells
    "host add": 0.60,  # 0.96; 0.77 on two cores of a shared host
}
LAUNCH_SHARE = 1 / 3  # of an H200's speed: the driver and the host decide a launch as much as the GPU
CALLS = 4  # the host's queueing of an empty kernel that one call of vecadd.add may cost; an H200's is 2


def expect_from_theory(gpus: Sequence[Gpu], measured: Measured) -> None:
    """Sets what theory and probes expect of every measured figure that has no expectation yet."""
    for id, figure in measured.figures.items():
        if figure.expected is None and figure.rounds:
            limits = measured.limits.get(figure.params["gpu"], {})
            if figure.sweep == "host":
                found = _expect_host(figure, measured.probes)
            elif figure.sweep == "link":
                found = _expect_link(figure, gpus[figure.params["gpu"]])
            elif figure.sweep == "device":
                found = _expect_device(figure, gpus[figure.params["gpu"]], limits)
            elif figure.sweep == "launch":
                found = _expect_launch(figure, limits)
            else:
                found = _expect_pair(figure, measured)
            measured.figures[id] = expect(figure, *found) if found else figure


def expect_from_run(run: Run, here: Info, measured: Measured) -> None:
    """Sets the expectation of every figure that the earlier run has; a GPU that it lacks gets the first GPU's figures.
    What the run has and this machine cannot run becomes a figure that has failed."""
    known = {figure.name: figure.value for figure in run.figures}
    for figure in measure.find_missing(here, measured, known):
        measured.figures[figure.name] = figure
    for id, figure in measured.figures.items():
        value = known.get(id, known.get(re.sub(r"gpu \d+", "gpu 0", id, count=1)))
        if value is not None:
            measured.figures[id] = expect(figure, value, 1 - TOLERANCES[figure.sweep], str(run.path))


def read_expectations(path: Path) -> Run:
    """The run in a file of ``vecadd bench --json`` or ``vecadd check --json``, with the figures of a check; raises
    ValueError for any other file."""
    run = run_or_check(path, read_object(path))
    figures = _figures_of_check(run) if isinstance(run, Check) else _figures_of_bench(run)
    if not figures:
        raise ValueError(f"{path} has no figure to compare a machine with")
    for figure in figures:
        if not 0 < (figure.value or 0) < inf:
            raise ValueError(f"{path} has {figure.value:g} for {figure.title}: no machine can be compared with that")
    return replace(run, figures=figures)


UNITS = ("GB/s", "s", "generation", "lanes")  # of what a round measures


def _figures_of_check(check: Check) -> list[Figure]:
    """What the rounds of `vecadd check` measured, without what other work had disturbed."""
    return [
        figure
        for figure in check.figures
        if figure.name.split("/")[0] in GROUPS.values()
        and figure.unit in UNITS
        and figure.severity != "unknown"
        and figure.value is not None
    ]


def _figures_of_bench(run: Run) -> list[Figure]:
    """A bench's figures as those of the acceptance test."""
    values: dict[tuple[str, str], float] = {}  # by kind and what was measured
    for kind, names in measure.PROBED.items():
        probed = run.meta.get("limits", {}).get(kind, {})
        values |= {(kind, what): float(probed[key]) for what, key in names.items() if key in probed}
    for row in run.figures:
        if row.dtype != str(DTYPE) or row.seconds is None or row.gbps is None:
            continue
        add = f"add {show_size(row.n)}"
        if row.sweep == "host" and row.n == SMALL:
            if row.name == "add":
                values["host", add] = row.seconds
        elif row.sweep == "host" and row.name in ("add", *STREAMERS):
            values["host", add] = max(row.gbps, values.get(("host", add), 0.0))
        elif row.sweep == "size" and row.name == "tuned":
            values["device", add] = row.gbps
        elif row.sweep == "size" and row.name == "add" and row.n == SMALL:
            values["launch", "call of add"] = row.seconds
    return [replace(make_measured(kind, what), value=value) for (kind, what), value in values.items()]


def _expect_host(figure: Figure, probes: Mapping[str, float]) -> Expected | None:
    if figure.unit == "s":
        return (probes["numpy"], 1.0, "numpy.add of the same run") if "numpy" in probes else None
    if "host" not in probes:
        return None
    return probes["host"], SHARES["host add"], "the best that a probe of the same run reached"


def _expect_link(figure: Figure, gpu: Gpu) -> Expected | None:
    if gpu.link_generation_max is None or gpu.link_width_max is None:
        return None
    source = f"PCIe {gpu.link_generation_max} x{gpu.link_width_max} in theory"
    if " node " in figure.params["what"]:
        return None  # the near node's figure is the link's, and the far one's has no theory
    if figure.params["what"] in ("generation", "width"):
        most = gpu.link_generation_max if figure.params["what"] == "generation" else gpu.link_width_max
        return most, 1.0, "the most that GPU and slot can have"
    rate = machine.link_theory(gpu.link_generation_max, gpu.link_width_max)
    if rate is None:
        return None
    ways = 2 if figure.params["what"] == "both ways" else 1
    return ways * rate / 1e9, SHARES[figure.measurement], source


def _expect_pair(figure: Figure, measured: Measured) -> Expected | None:
    pair = figure.params["gpu"], figure.params["to"]
    connection = measured.connections.get(pair)
    if connection is None or connection.rate is None or not measured.peers[pair]["access"]:
        return None  # without peer access copies go through the host
    share, gbps = SHARES["pair by NVLink" if connection.nvlink else "pair by PCIe"], connection.rate / 1e9
    return gbps, share, f"{connection.name}, in theory {show_figure(gbps, 'GB/s')}"


def _expect_device(figure: Figure, gpu: Gpu, limits: Limits) -> Expected | None:
    if figure.measurement in SHARES:
        if gpu.bandwidth is None:
            return None
        return gpu.bandwidth / 1e9, SHARES[figure.measurement], "the memory's clock and bus in theory"
    (n,) = parse_sizes(figure.params["what"].removeprefix("add "))
    tuned = next(rung for rung in _core.rungs() if rung["name"] == "tuned")
    try:
        found = model.predict(tuned, None, asdict(gpu), model.Limits.of(limits), str(DTYPE), n, {})
    except ValueError:  # a probe has failed, or the driver hides the GPU's clock
        return None
    gbps = model.bytes_moved(n, DTYPE.itemsize) / found.seconds / 1e9
    return gbps, SHARES["device add"], "vecadd.model, from the probes of the same run"


def _expect_launch(figure: Figure, limits: Limits) -> Expected | None:
    if figure.params["what"] == "call of add":
        if "launch" not in limits:
            return None
        source = f"{CALLS} times what the host takes to queue an empty kernel, in the same run"
        return CALLS * limits["launch"]["issued_seconds"], 1.0, source
    seconds = RECORDED.need("kernel" if figure.params["what"] == "empty kernel" else "queued")
    return seconds, LAUNCH_SHARE, "an H200's"
