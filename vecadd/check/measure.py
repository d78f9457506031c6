"""One round of the acceptance test: every figure once, every timed sum compared bit for bit as `vecadd bench` does.

A row is one figure of a machine: its rounds, and what it is compared with.

"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Literal

import numpy as np

from vecadd import _core, _machine
from vecadd._machine import Gpu, Info
from vecadd.bench import contestants, probes
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import DEVICE, HOST, MemoryKind, Pattern
from vecadd.bench.options import parse_sizes
from vecadd.bench.probes import HostLimit, Limit
from vecadd.bench.timing import Cell, Measurement, Samples
from vecadd.check import topology
from vecadd.check.topology import Connection
from vecadd.info import info
from vecadd.model.theory import rotating_sets
from vecadd.tables import show_size

Kind = Literal["host", "link", "device", "launch", "pair"]
Unit = Literal["GB/s", "s", "generation", "lanes"]
Severity = Literal["pass", "info", "warning", "critical", "unknown"]
SEVERITIES: tuple[Severity, ...] = ("pass", "info", "warning", "critical", "unknown")

GROUPS: dict[Kind, str] = {
    "host": "host memory",
    "link": "link",
    "device": "device memory",
    "launch": "launch",
    "pair": "pair",
}

# An error with one of these says nothing of the machine: the figure is then unknown.
UNMEASURED = ("MemoryError", "OSError")


def describe_error(error: BaseException) -> str:
    """Kind and words of an error, as rows have it. One that is of a kind of UNMEASURED is called by that."""
    names = {each.__name__ for each in type(error).__mro__}
    name = next((name for name in UNMEASURED if name in names), type(error).__name__)
    return f"{name}: {error}"


@dataclass(frozen=True)
class Expected:
    """A figure's expected value. Rates pass from ``share`` of it on, seconds up to it divided by ``share``."""

    value: float
    share: float
    source: str


@dataclass
class Series:
    """``values`` has one figure a round. The median decides; a worse round alone is a warning."""

    kind: Kind
    name: str
    unit: Unit
    values: list[float] = field(default_factory=list)
    expected: Expected | None = None
    error: str | None = None
    gpu: int = 0  # its index, of all but the host's rows; of a pair the source's
    spread: tuple[float, float] | None = None  # of the last round's samples: the 10th and the 90th percentile
    disturbed: bool = False  # by other work, so that a miss says nothing about the hardware

    @property
    def figure(self) -> str:
        """Kind and name: "device add 2^28", "pair copy to GPU 1"."""
        return f"{self.kind} {self.name}"

    @property
    def title(self) -> str:
        """The figure, and the GPU where it is not the first: "device read of GPU 1"."""
        return f"{self.figure} of GPU {self.gpu}" if self.gpu else self.figure

    @property
    def where(self) -> str:
        """The part of the machine: "host", "gpu 0", "gpu 0 to gpu 1"."""
        if self.kind == "host":
            return "host"
        to = re.search(r" to GPU (\d+)$", self.name)
        return f"gpu {self.gpu} to gpu {to[1]}" if to else f"gpu {self.gpu}"

    @property
    def id(self) -> str:
        """In result files: "device memory/gpu 0/read"."""
        return f"{GROUPS[self.kind]}/{self.where}/{self._short}"

    @property
    def measurement(self) -> str:
        """Kind and name, the same for every GPU and every pair of them: "pair copy"."""
        return f"{self.kind} {self._short}"

    @property
    def _short(self) -> str:
        return re.sub(r" to GPU \d+$", "", self.name)

    @property
    def value(self) -> float | None:
        """The median of all rounds; None without a round."""
        return median(self.values) if self.values else None

    @property
    def worst(self) -> float | None:
        """The lowest rate of all rounds, or the most seconds."""
        if not self.values:
            return None
        return max(self.values) if self.unit == "s" else min(self.values)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the rounds; of one round's samples where there is one round."""
        return (min(self.values), max(self.values)) if len(self.values) > 1 else self.spread

    @property
    def drift(self) -> float | None:
        """By how much of the first round's figure the last one's differs; None in a single round."""
        return self.values[-1] / self.values[0] - 1 if len(self.values) > 1 and self.values[0] else None

    @property
    def bound(self) -> float | None:
        """The worst figure that passes."""
        if self.expected is None:
            return None
        return (
            self.expected.value / self.expected.share if self.unit == "s" else self.expected.value * self.expected.share
        )

    @property
    def passed(self) -> bool | None:
        """By the median. None without an expectation; a row that could not be measured has failed."""
        return False if self.error is not None else self._within(self.value)

    @property
    def severity(self) -> Severity:
        """A figure that only some rounds missed is a warning; one that other work has disturbed cannot fail."""
        if self.error is not None and any(name in self.error for name in UNMEASURED):
            return "unknown"
        if self.passed is None:
            return "info"
        if not self.passed:
            return "unknown" if self.disturbed and self.error is None else "critical"
        return "pass" if self._within(self.worst) else "warning"

    def _within(self, value: float | None) -> bool | None:
        if value is None:
            return False
        if self.bound is None:
            return None
        return value <= self.bound if self.unit == "s" else value >= self.bound


def find_title(id: str) -> str | None:
    """The title of the row with that id; None where no row has it."""
    group, _, rest = id.partition("/")
    where, _, name = rest.partition("/")
    kind = next((kind for kind, known in GROUPS.items() if known == group), None)
    place = re.fullmatch(r"host|gpu (\d+)(?: to gpu (\d+))?", where)
    if kind is None or place is None or not name:
        return None
    source, target = place.groups()
    return Series(kind, f"{name} to GPU {target}" if target else name, "GB/s", gpu=int(source or 0)).title


# A round

DTYPE = np.dtype("float32")
SMALL = 1 << 10  # elements of an addition that is all overhead
STREAMING = (1 << 26, 1 << 24, 1 << 22)  # of the host's streaming add, the first that fits: past most caches
DEVICE_SIZES = (1 << 20, 1 << 24, 1 << 28)
LARGEST = 1 << 29  # and this, where three arrays are a sixteenth of the GPU's memory: 10 s of filling and checking
SHARE_OF_GPU, SHARE_OF_HOST = 1 / 16, 1 / 4  # of their memory that one set of arrays may take
SECONDS = 0.5  # of timed work a cell
PROBED: Mapping[Kind, Mapping[str, str]] = {  # figures that a probe of the bench gives, and its names of them
    "link": {"to the device": "to_device_gbps", "to the host": "to_host_gbps", "both ways": "both_gbps"},
    "device": {"read": "read_gbps", "write": "write_gbps"},
    "launch": {"empty kernel": "kernel_seconds", "queued kernel": "queued_seconds"},
}
STREAMERS = ("threads", "threads_stream")  # rungs that count for the host's best besides vecadd.add
PAIR_BYTES, PAIR_ROUNDS = 256 << 20, 5  # from GPU to GPU; five times an H200's L2
ENOUGH = 3  # rounds whose median tells a machine's figure from a moment's


@dataclass
class Measured:
    """The rows of all rounds by title, and the last round's probes: the host's GB/s and seconds by name, and each GPU's
    limits as a result file has them."""

    rows: dict[str, Series] = field(default_factory=dict)
    probes: dict[str, float] = field(default_factory=dict)
    limits: dict[int, dict[str, dict[str, float]]] = field(default_factory=dict)
    peers: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)  # as _core.peer_limits gives them
    connections: dict[tuple[int, int], Connection] = field(default_factory=dict)  # of those

    def add(
        self,
        kind: Kind,
        name: str,
        unit: Unit,
        value: float | None,
        error: str | None = None,
        gpu: int = 0,
        spread: tuple[float, float] | None = None,
    ) -> None:
        """Records a round's figure, or why it could not be measured."""
        row = Series(kind, name, unit, gpu=gpu)
        row = self.rows.setdefault(row.title, row)
        if value is not None:
            row.values.append(value)
            row.spread = spread
        row.error = row.error or error

    def add_probed(self, kind: Kind, found: Mapping[str, float], gpu: int) -> None:
        """Records the figures that a probe gave."""
        for name, key in PROBED[kind].items():
            self.add(kind, name, _unit_of_probe(key), found[key], gpu=gpu)


def measure_round(found: Info, measured: Measured, tell: Callable[[str], object]) -> None:
    """Adds one round of all this machine's figures to ``measured``; a failure becomes its row's error."""
    for kind in MEASUREMENTS:
        for gpu in range(len(found.gpus)) if kind != "host" else (0,):
            _measure_kind(kind, gpu, measured, tell)


def repeat_failed(measured: Measured, tell: Callable[[str], object]) -> None:
    """Measures again what would fail the machine by fewer than ENOUGH rounds: one of them may have been disturbed. What
    failed by an error is not tried again: a wrong sum is wrong once and for all."""
    for _ in range(ENOUGH):
        failing = {
            (row.kind, row.gpu)
            for row in measured.rows.values()
            if row.error is None and row.passed is False and len(row.values) < ENOUGH
        }
        for kind, gpu in sorted(failing):
            _measure_kind(kind, gpu, measured, lambda what: tell(f"{what} again"))


def _measure_kind(kind: Kind, gpu: int, measured: Measured, tell: Callable[[str], object]) -> None:
    pattern, order = Pattern(DTYPE), random.Random(0)

    def time(n: int, every: list[Contestant], limit: Limit | None, sets: int) -> list[Samples]:
        measurement = Measurement(Cell(DTYPE, n, every, limit, sets), pattern, order)
        measurement.run(SECONDS)
        return measurement.timed

    tell(f"{kind} of GPU {gpu}" if gpu else kind)
    try:
        MEASUREMENTS[kind](measured, time, gpu)
    except Exception as error:  # a GPU that cannot be probed does not keep the host from being measured
        measured.add(kind, "figures", "GB/s", None, describe_error(error), gpu)


def find_missing(found: Info, measured: Measured, titles: Iterable[str]) -> Iterator[Series]:
    """A failed row for each of these titles that rounds measure on other machines and cannot measure on this one."""
    units = _units()
    for title in titles:
        figure, _, number = title.partition(" of GPU ")
        gpu = int(number or 0)
        unit = "GB/s" if re.fullmatch(PAIR_FIGURE, figure) else units.get(figure)
        if title in measured.rows or unit is None:
            continue
        kind = next(kind for kind in GROUPS if figure.startswith(f"{kind} "))
        row = Series(kind, figure.removeprefix(f"{kind} "), unit, gpu=gpu)
        row.error = _why_not(found, measured, row)
        if row.error:
            yield row


def _units() -> dict[str, Unit]:
    """What a round can measure. The machine's memory decides which of the additions it does measure."""
    additions: dict[Kind, tuple[int, ...]] = {"host": STREAMING, "device": (*DEVICE_SIZES, LARGEST)}
    return {
        **{f"{kind} add {show_size(n)}": "GB/s" for kind, every in additions.items() for n in every},
        **{f"{kind} {name}": _unit_of_probe(key) for kind, names in PROBED.items() for name, key in names.items()},
        f"host add {show_size(SMALL)}": "s",
        "launch call of add": "s",
        "link generation": "generation",
        "link width": "lanes",
    }


def _unit_of_probe(key: str) -> Unit:
    return "s" if key.endswith("_seconds") else "GB/s"


def _why_not(found: Info, measured: Measured, row: Series) -> str | None:
    """Why this machine has no such figure; None if a larger addition's figure serves instead."""
    if row.kind != "host" and row.gpu >= len(found.gpus):
        return f"there is no GPU {row.gpu}" if found.gpus else f"there is no GPU: {found.gpu_reason}"
    broken = measured.rows.get(replace(row, name="figures").title)
    if broken is not None:
        return broken.error
    if pair := re.fullmatch(PAIR_FIGURE, row.figure):
        target = int(pair[1])
        return f"there is no GPU {target}" if target >= len(found.gpus) else "there is no peer access between the two"
    if not row.name.startswith("add "):
        return "neither the driver nor the system says it"
    (n,) = parse_sizes(row.name.removeprefix("add "))
    larger = (f"host add {show_size(other)}" for other in STREAMING if other > n)
    if row.kind == "host" and any(title in measured.rows for title in larger):
        return None
    return f"its arrays take {_bytes(n) / 2**30:.2g} GiB, a larger share of the memory than is used here"


Time = Callable[[int, list[Contestant], Limit | None, int], list[Samples]]


def _measure_host(measured: Measured, time: Time, gpu: int) -> None:
    free = SHARE_OF_HOST * _machine.memory_available()
    n = next((n for n in STREAMING if _bytes(n) <= free), STREAMING[-1])
    limit = HostLimit()
    every = [contestants.host_add(), *(contestants.rung(name, HOST) for name in STREAMERS)]
    timed = time(n, every, limit, 1)
    measured.add("host", f"add {show_size(n)}", "GB/s", _best(n, timed), _error(timed), spread=_spread(n, timed))
    if limit.gbps:
        measured.probes["host"] = limit.gbps
    timed = time(SMALL, [contestants.host_add(), contestants.numpy_add()], None, 1)
    ours, theirs = timed
    measured.add("host", f"add {show_size(SMALL)}", "s", *_seconds(ours))
    if not theirs.error:
        measured.probes["numpy"] = theirs.median


def _measure_link(measured: Measured, time: Time, gpu: int) -> None:
    rates = probes.probe_link(gpu)
    measured.limits.setdefault(gpu, {})["link"] = rates
    measured.add_probed("link", rates, gpu)
    now = _link_under_load(gpu)
    if now.link_generation is not None:
        measured.add("link", "generation", "generation", now.link_generation, gpu=gpu)
    if now.link_width is not None:
        measured.add("link", "width", "lanes", now.link_width, gpu=gpu)
    every = [node for node in topology.numa_nodes() if topology.usable(node)]
    for node in every if len(every) > 1 else ():
        rates = topology.run_on_node(node, lambda: probes.probe_link(gpu))
        for name, key in (("to the device from", "to_device_gbps"), ("to the host on", "to_host_gbps")):
            measured.add("link", f"{name} node {node.number}", "GB/s", rates[key], gpu=gpu)


def _measure_device(measured: Measured, time: Time, gpu: int) -> None:
    facts = _core.gpu_facts()[gpu]
    memory, l2 = facts["memory"], facts["l2"]
    rates = probes.probe_device(gpu, l2, memory)
    measured.limits.setdefault(gpu, {}).update(device=rates, latency=probes.probe_latency(gpu))
    measured.add_probed("device", rates, gpu)
    most = min(SHARE_OF_GPU * memory, SHARE_OF_HOST * _machine.memory_available())
    for n in (*DEVICE_SIZES, LARGEST):
        if _bytes(n) <= most:
            sets = rotating_sets(_bytes(n), l2, int(most))
            timed = time(n, [contestants.rung("tuned", _memory_of(gpu))], None, sets)
            best = _best(n, timed)
            measured.add("device", f"add {show_size(n)}", "GB/s", best, _error(timed), gpu, _spread(n, timed))


def _measure_launch(measured: Measured, time: Time, gpu: int) -> None:
    seconds = probes.probe_launch(gpu)
    measured.limits.setdefault(gpu, {})["launch"] = seconds
    measured.add_probed("launch", seconds, gpu)
    if gpu:
        return  # the cost of a call is measured once, for the host
    (timed,) = time(SMALL, [contestants.device_add()], None, 1)
    measured.add("launch", "call of add", "s", *_seconds(timed))


def _measure_pairs(measured: Measured, time: Time, gpu: int) -> None:
    """From this GPU to every other one."""
    facts = _core.gpu_facts()
    if len(facts) > 1 and not measured.connections:
        measured.connections = topology.connections(info().gpus, facts)
    for other in (other for other in range(len(facts)) if other != gpu):
        nbytes = min(PAIR_BYTES, facts[gpu]["memory"] // 16, facts[other]["memory"] // 16) // 16 * 16
        found = measured.peers[gpu, other] = _core.peer_limits(gpu, other, nbytes, PAIR_ROUNDS)
        for way, figures in found["ways"].items():
            wrong = _wrong_words(figures["wrong"], figures["words"], nbytes) if figures["wrong"] else None
            measured.add("pair", f"{way} to GPU {other}", "GB/s", figures["rate"] / 1e9, wrong, gpu)


def _wrong_words(count: int, words: Sequence[tuple[int, int, int]], nbytes: int) -> str:
    """What of a copy has not arrived as it was sent."""
    index, expected, found = words[0]
    bits = ", ".join(str(bit) for bit in range(64) if (expected ^ found) >> bit & 1)
    return (
        f"wrong bytes: {count} of {nbytes // 8} words are not those that were sent, and no call reported an error; at "
        f"byte {8 * index} {expected:#018x} was sent and {found:#018x} arrived (bits {bits})"
    )


MEASUREMENTS: Mapping[Kind, Callable[[Measured, Time, int], None]] = {
    "host": _measure_host,
    "link": _measure_link,
    "device": _measure_device,
    "launch": _measure_launch,
    "pair": _measure_pairs,
}
PAIR_FIGURE = r"pair (?:copy|read|write) to GPU (\d+)"


def _memory_of(gpu: int) -> MemoryKind:
    if gpu == 0:
        return DEVICE
    return replace(DEVICE, name=f"device {gpu}", put=lambda x: _core.to_device(x, gpu))


def _link_under_load(index: int) -> Gpu:
    """The GPU's facts while its link is busy: an idle link may be at a lower generation than it can have."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(info)
        while not asked.done():
            _core.probe("link", index, probes.LINK_BYTES, probes.PROBE_ROUNDS)
        return asked.result().gpus[index]


def _bytes(n: int) -> int:
    return 3 * n * DTYPE.itemsize


def _best(n: int, timed: Sequence[Samples]) -> float | None:
    """GB/s of the fastest; None where one of them failed."""
    return None if _error(timed) else _bytes(n) / min(each.median for each in timed) / 1e9


def _spread(n: int, timed: Sequence[Samples]) -> tuple[float, float] | None:
    """The fastest one's 10th and 90th percentile, GB/s."""
    if _error(timed):
        return None
    quick, slow = min(timed, key=lambda each: each.median).spread
    return _bytes(n) / slow / 1e9, _bytes(n) / quick / 1e9


def _seconds(timed: Samples) -> tuple[float | None, str | None, int, tuple[float, float] | None]:
    """Of one contestant, as `Measured.add` takes them: the median, the error, the GPU, the spread."""
    return (None, timed.error, 0, None) if timed.error else (timed.median, None, 0, timed.spread)


def _error(timed: Sequence[Samples]) -> str | None:
    return next((f"{each.contestant.name}: {each.error}" for each in timed if each.error), None)
