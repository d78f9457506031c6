"""What a figure is compared with: an earlier file's, or theory and the probes of the same run.

Theory is what the device reports: its memory's clock and bus, and the highest generation and width of its link. A table
below has the share of it that a healthy machine reaches, set by an H200's share, which is beside it. Additions of
device memory are compared with vecadd.model, figures without a theory with probes of the same run, and launches with an
H200's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from vecadd import _core, model
from vecadd._machine import Gpu, Info
from vecadd.bench import machine
from vecadd.bench.options import parse_sizes
from vecadd.check import document, measure
from vecadd.check.measure import DTYPE, SMALL, STREAMERS, Expected, Measured, Series, Unit, find_title
from vecadd.figures import Run, load_text, parse_json, run_of_content
from vecadd.model.limits import RECORDED
from vecadd.tables import show_figure, show_size

Limits = Mapping[str, Mapping[str, float]]  # of one GPU, as in the meta of a result file

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
    """Sets what theory and probes expect of every measured row that has no expectation yet."""
    for row in measured.rows.values():
        if row.expected is None and row.values:
            limits = measured.limits.get(row.gpu, {})
            if row.kind == "host":
                row.expected = _expect_host(row, measured.probes)
            elif row.kind == "link":
                row.expected = _expect_link(row, gpus[row.gpu])
            elif row.kind == "device":
                row.expected = _expect_device(row, gpus[row.gpu], limits)
            elif row.kind == "launch":
                row.expected = _expect_launch(row, limits)
            else:
                row.expected = _expect_pair(row, measured)


def read_expectations(path: Path) -> "Expectations":
    """Reads a file of ``vecadd bench --json`` or ``vecadd check --json``; raises ValueError for any other."""
    content = parse_json(path, load_text(path))
    run = document.read_check(path, content) if document.is_check(content) else run_of_content(path, content)
    figures = _figures_of_check(run) if isinstance(run, document.Check) else _figures_of_bench(run)
    if not figures:
        raise ValueError(f"{path} has no figure to compare a machine with")
    for title, figure in figures.items():
        if not 0 < figure < float("inf"):
            raise ValueError(f"{path} has {figure:g} for {title}: no machine can be compared with that")
    return Expectations(path, str(run.meta.get("machine", "unknown")), figures)


class Expectations:
    """The figures of an earlier run, by the title of their row."""

    def __init__(self, path: Path, machine: str, figures: Mapping[str, float]) -> None:
        self.path, self.machine, self.figures = path, machine, figures

    def expect(self, found: Info, measured: Measured) -> None:
        """Sets the expectation of every row that the file has; a GPU that it lacks gets the first GPU's figures. What
        the file has and this machine cannot run becomes a row that has failed."""
        for row in measure.find_missing(found, measured, self.figures):
            measured.rows[row.title] = row
        for title, row in measured.rows.items():
            figure = self.figures.get(title, self.figures.get(row.figure))
            if figure is not None:
                row.expected = Expected(figure, 1 - TOLERANCES[row.kind], str(self.path))


def _figures_of_check(check: document.Check) -> dict[str, float]:
    """The figures of `vecadd check --json` by their titles, without those that other work had disturbed."""
    found: dict[str, float] = {}
    for figure in check.figures:
        title = find_title(figure.name) if figure.unit in get_args(Unit) and figure.severity != "unknown" else None
        if title is not None and figure.value is not None:
            found[title] = figure.value
    return found


def _figures_of_bench(run: Run) -> dict[str, float]:
    """A bench's figures under the acceptance test's titles."""
    figures: dict[str, float] = {}
    for group, names in measure.PROBED.items():
        probed = run.meta.get("limits", {}).get(group, {})
        figures |= {f"{group} {name}": float(probed[key]) for name, key in names.items() if key in probed}
    for row in run.figures:
        if row.dtype != str(DTYPE) or row.seconds is None or row.gbps is None:
            continue
        title = f"add {show_size(row.n)}"
        if row.sweep == "host" and row.n == SMALL:
            if row.name == "add":
                figures[f"host {title}"] = row.seconds
        elif row.sweep == "host" and row.name in ("add", *STREAMERS):
            figures[f"host {title}"] = max(row.gbps, figures.get(f"host {title}", 0.0))
        elif row.sweep == "size" and row.name == "tuned":
            figures[f"device {title}"] = row.gbps
        elif row.sweep == "size" and row.name == "add" and row.n == SMALL:
            figures["launch call of add"] = row.seconds
    return figures


def _expect_host(row: Series, probes: Mapping[str, float]) -> Expected | None:
    if row.unit == "s":
        return Expected(probes["numpy"], 1.0, "numpy.add of the same run") if "numpy" in probes else None
    if "host" not in probes:
        return None
    return Expected(probes["host"], SHARES["host add"], "the best that a probe of the same run reached")


def _expect_link(row: Series, gpu: Gpu) -> Expected | None:
    if gpu.link_generation_max is None or gpu.link_width_max is None:
        return None
    source = f"PCIe {gpu.link_generation_max} x{gpu.link_width_max} in theory"
    if " node " in row.name:
        return None  # the near node's figure is the link's, and the far one's has no theory
    if row.name in ("generation", "width"):
        most = gpu.link_generation_max if row.name == "generation" else gpu.link_width_max
        return Expected(most, 1.0, "the most that GPU and slot can have")
    rate = machine.link_theory(gpu.link_generation_max, gpu.link_width_max)
    if rate is None:
        return None
    ways = 2 if row.name == "both ways" else 1
    return Expected(ways * rate / 1e9, SHARES[row.figure], source)


def _expect_pair(row: Series, measured: Measured) -> Expected | None:
    target = int(row.name.rpartition(" ")[2])
    connection = measured.connections.get((row.gpu, target))
    if connection is None or connection.rate is None or not measured.peers[row.gpu, target]["access"]:
        return None  # without peer access copies go through the host
    share, gbps = SHARES["pair by NVLink" if connection.nvlink else "pair by PCIe"], connection.rate / 1e9
    return Expected(gbps, share, f"{connection.name}, in theory {show_figure(gbps, 'GB/s')}")


def _expect_device(row: Series, gpu: Gpu, limits: Limits) -> Expected | None:
    if row.figure in SHARES:
        if gpu.bandwidth is None:
            return None
        return Expected(gpu.bandwidth / 1e9, SHARES[row.figure], "the memory's clock and bus in theory")
    (n,) = parse_sizes(row.name.removeprefix("add "))
    tuned = next(rung for rung in _core.rungs() if rung["name"] == "tuned")
    try:
        found = model.predict(tuned, None, asdict(gpu), model.Limits.of(limits), str(DTYPE), n, {})
    except ValueError:  # a probe has failed, or the driver hides the GPU's clock
        return None
    gbps = model.bytes_moved(n, DTYPE.itemsize) / found.seconds / 1e9
    return Expected(gbps, SHARES["device add"], "vecadd.model, from the probes of the same run")


def _expect_launch(row: Series, limits: Limits) -> Expected | None:
    if row.name == "call of add":
        if "launch" not in limits:
            return None
        source = f"{CALLS} times what the host takes to queue an empty kernel, in the same run"
        return Expected(CALLS * limits["launch"]["issued_seconds"], 1.0, source)
    seconds = RECORDED.need("kernel" if row.name == "empty kernel" else "queued")
    return Expected(seconds, LAUNCH_SHARE, "an H200's")
