"""One round of the acceptance test: every figure once, every timed sum compared bit for bit as `vecadd bench` does.

Of a measured figure the sweep is its kind, one of GROUPS, and the params are "what" was measured, the index of its
"gpu", and of a pair that of the other GPU, "to".
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from statistics import median
from typing import Any

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
from vecadd.figures import Figure, Range, less_is_better
from vecadd.info import info
from vecadd.model.theory import rotating_sets
from vecadd.tables import show_size

GROUPS = {  # of a figure's id, by its kind
    "host": "host memory",
    "link": "link",
    "device": "device memory",
    "launch": "launch",
    "pair": "pair",
}

# An error with one of these says nothing of the machine: the figure is then unknown.
UNMEASURED = ("MemoryError", "OSError")


def describe_error(error: BaseException) -> str:
    """Kind and words of an error, as figures have it. One that is of a kind of UNMEASURED is called by that."""
    names = {each.__name__ for each in type(error).__mro__}
    name = next((name for name in UNMEASURED if name in names), type(error).__name__)
    return f"{name}: {error}"


# A measured figure


def make_measured(kind: str, what: str, gpu: int = 0, to: int | None = None) -> Figure:
    """Such a figure before its first round."""
    where = "host" if kind == "host" else f"gpu {gpu}" if to is None else f"gpu {gpu} to gpu {to}"
    return Figure(
        kind,
        f"{GROUPS[kind]}/{where}/{what}",
        params={"what": what, "gpu": gpu, "to": to},
        unit=_unit_of(kind, what),
        measurement=f"{kind} {what}",
    )


def find_measured(id: str) -> Figure | None:
    """The figure with that id before its first round; None where no machine measures one."""
    found = re.fullmatch(r"([^/]+)/(?:host|gpu (\d+)(?: to gpu (\d+))?)/(.+)", id)
    kind = next((kind for kind in MEASUREMENTS if found and GROUPS[kind] == found[1]), None)
    if found is None or kind is None or found[4] not in _measurements(kind):
        return None
    return make_measured(kind, found[4], int(found[2] or 0), None if found[3] is None else int(found[3]))


def show_name(figure: Figure) -> str:
    """What was measured, of a pair to which GPU: "device add 2^28", "pair copy to GPU 1"."""
    to = figure.params["to"]
    return figure.measurement if to is None else f"{figure.measurement} to GPU {to}"


def show_title(figure: Figure) -> str:
    """The name, and the GPU where it is not the first: "device read of GPU 1"."""
    gpu = figure.params["gpu"]
    return f"{show_name(figure)} of GPU {gpu}" if gpu else show_name(figure)


def expect(figure: Figure, reference: float, share: float, source: str) -> Figure:
    """The figure with what is expected of it: rates pass from that share of the reference on, seconds up to the
    reference divided by the share."""
    expected = (-inf, reference / share) if less_is_better(figure.unit) else (reference * share, inf)
    return replace(figure, reference=reference, expected=expected, source=source)


def find_bound(figure: Figure) -> float | None:
    """The worst value that passes; None where nothing is expected."""
    return next((end for end in figure.expected or () if isfinite(end)), None)


def find_worst(figure: Figure) -> float | None:
    """The lowest rate of all rounds, or the most seconds."""
    worst = max if less_is_better(figure.unit) else min
    return worst(figure.rounds, default=None)


def find_drift(figure: Figure) -> float | None:
    """By how much of the first round's value the last one's differs; None in a single round."""
    rounds = figure.rounds
    return rounds[-1] / rounds[0] - 1 if len(rounds) > 1 and rounds[0] else None


def misses(figure: Figure, value: float | None) -> bool:
    """Whether that value of the figure is not one that is expected of it."""
    low, high = figure.expected or (-inf, inf)
    return value is None or not low <= value <= high


# A round
DTYPE = np.dtype("float32")
SMALL = 1 << 10  # elements of an addition that is all overhead
STREAMING = (1 << 26, 1 << 24, 1 << 22)  # of the host's streaming add, the first that fits: past most caches
DEVICE_SIZES = (1 << 20, 1 << 24, 1 << 28)
LARGEST = 1 << 29  # and this, where three arrays are a sixteenth of the GPU's memory: 10 s of filling and checking
SHARE_OF_GPU, SHARE_OF_HOST = 1 / 16, 1 / 4  # of their memory that one set of arrays may take
SECONDS = 0.5  # of timed work a cell
PROBED: Mapping[str, Mapping[str, str]] = {  # figures that a probe of the bench gives, and its names of them
    "link": {"to the device": "to_device_gbps", "to the host": "to_host_gbps", "both ways": "both_gbps"},
    "device": {"read": "read_gbps", "write": "write_gbps"},
    "launch": {"empty kernel": "kernel_seconds", "queued kernel": "queued_seconds"},
}
STREAMERS = ("threads", "threads_stream")  # rungs that count for the host's best besides vecadd.add
PAIR_WAYS = ("copy", "read", "write")
LINK_UNITS = {"generation": "generation", "width": "lanes"}
PAIR_BYTES, PAIR_ROUNDS = 256 << 20, 5  # from GPU to GPU; five times an H200's L2
ENOUGH = 3  # rounds whose median tells a machine's figure from a moment's


@dataclass
class Measured:
    """The figures of all rounds by their ids, and the last round's probes: the host's GB/s and seconds by name, and
    each GPU's limits as a result file has them."""

    figures: dict[str, Figure] = field(default_factory=dict)
    probes: dict[str, float] = field(default_factory=dict)
    limits: dict[int, dict[str, dict[str, float]]] = field(default_factory=dict)
    peers: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)  # as _core.peer_limits gives them
    connections: dict[tuple[int, int], Connection] = field(default_factory=dict)  # of those

    def add(
        self,
        kind: str,
        what: str,
        value: float | None,
        error: str | None = None,
        spread: Range | None = None,
        *,
        gpu: int = 0,
        to: int | None = None,
    ) -> None:
        """Records a round's value, or why it could not be measured. ``spread`` is that of the round's samples: the
        interval of a figure with one round."""
        figure = make_measured(kind, what, gpu, to)
        figure = self.figures.get(figure.name, figure)
        if value is not None:
            rounds = (*figure.rounds, value)
            interval = (min(rounds), max(rounds)) if len(rounds) > 1 else spread
            figure = replace(figure, rounds=rounds, value=median(rounds), interval=interval)
        self.figures[figure.name] = replace(figure, error=figure.error or error)

    def add_timed(self, kind: str, what: str, timed: Sequence[Samples], gpu: int = 0) -> None:
        """Records the fastest one's figure: its seconds, or the rate of an addition of the size that ``what`` names;
        or the first error."""
        error = next((f"{each.contestant.name}: {each.error}" for each in timed if each.error), None)
        if error:
            self.add(kind, what, None, error, gpu=gpu)
            return
        best = min(timed, key=lambda each: each.median)
        value, low, high = best.median, *best.spread
        if _unit_of(kind, what) == "GB/s":
            nbytes = _bytes(*parse_sizes(what.removeprefix("add ")))
            value, high, low = (nbytes / seconds / 1e9 for seconds in (value, low, high))
        self.add(kind, what, value, None, (low, high), gpu=gpu)

    def add_probed(self, kind: str, found: Mapping[str, float], gpu: int) -> None:
        """Records the figures that a probe gave."""
        for what, key in PROBED[kind].items():
            self.add(kind, what, found[key], gpu=gpu)


def measure_round(found: Info, measured: Measured, tell: Callable[[str], object]) -> None:
    """Adds one round of all this machine's figures to ``measured``; a failure becomes its figure's error."""
    for kind in MEASUREMENTS:
        for gpu in range(len(found.gpus)) if kind != "host" else (0,):
            _measure_kind(kind, gpu, measured, tell)


def repeat_failed(measured: Measured, tell: Callable[[str], object]) -> None:
    """Measures again what would fail the machine by fewer than ENOUGH rounds: one of them may have been disturbed. What
    failed by an error is not tried again: a wrong sum is wrong once and for all."""
    for _ in range(ENOUGH):
        failing = {
            (each.sweep, each.params["gpu"])
            for each in measured.figures.values()
            if each.error is None and misses(each, each.value) and len(each.rounds) < ENOUGH
        }
        for kind, gpu in sorted(failing):
            _measure_kind(kind, gpu, measured, lambda what: tell(f"{what} again"))


def _measure_kind(kind: str, gpu: int, measured: Measured, tell: Callable[[str], object]) -> None:
    pattern, order = Pattern(DTYPE), random.Random(0)

    def time(n: int, every: list[Contestant], limit: Limit | None, sets: int) -> list[Samples]:
        measurement = Measurement(Cell(DTYPE, n, every, limit, sets), pattern, order)
        measurement.run(SECONDS)
        return measurement.timed

    tell(f"{kind} of GPU {gpu}" if gpu else kind)
    try:
        MEASUREMENTS[kind](measured, time, gpu)
    except Exception as error:  # a GPU that cannot be probed does not keep the host from being measured
        measured.add(kind, "figures", None, describe_error(error), gpu=gpu)


def find_missing(found: Info, measured: Measured, ids: Iterable[str]) -> Iterator[Figure]:
    """A failed figure for each of these ids that rounds measure on other machines and cannot measure on this one."""
    for id in ids:
        figure = find_measured(id)
        if figure is not None and id not in measured.figures and (error := _why_not(found, measured, figure)):
            yield replace(figure, error=error)


def _measurements(kind: str) -> set[str]:
    """What a round can measure. The machine's memory decides which of the additions it does measure."""
    additions: dict[str, tuple[int, ...]] = {"host": (*STREAMING, SMALL), "device": (*DEVICE_SIZES, LARGEST)}
    others = {"link": LINK_UNITS, "launch": ("call of add",), "pair": PAIR_WAYS}
    adds = (f"add {show_size(n)}" for n in additions.get(kind, ()))
    return {*adds, *PROBED.get(kind, ()), *others.get(kind, ())}


def _unit_of(kind: str, what: str) -> str:
    if kind == "link" and what in LINK_UNITS:
        return LINK_UNITS[what]
    return "s" if kind == "launch" or (kind == "host" and what == f"add {show_size(SMALL)}") else "GB/s"


def _why_not(found: Info, measured: Measured, figure: Figure) -> str | None:
    """Why this machine has no such figure; None if a larger addition's figure serves instead."""
    kind, what, gpu, to = figure.sweep, *(figure.params[name] for name in ("what", "gpu", "to"))
    if kind != "host" and gpu >= len(found.gpus):
        return f"there is no GPU {gpu}" if found.gpus else f"there is no GPU: {found.gpu_reason}"
    broken = measured.figures.get(make_measured(kind, "figures", gpu).name)
    if broken is not None:
        return broken.error
    if to is not None:
        return f"there is no GPU {to}" if to >= len(found.gpus) else "there is no peer access between the two"
    if not what.startswith("add "):
        return "neither the driver nor the system says it"
    (n,) = parse_sizes(what.removeprefix("add "))
    larger = (make_measured("host", f"add {show_size(other)}").name for other in STREAMING if other > n)
    if kind == "host" and any(id in measured.figures for id in larger):
        return None
    return f"its arrays take {_bytes(n) / 2**30:.2g} GiB, a larger share of the memory than is used here"


Time = Callable[[int, list[Contestant], Limit | None, int], list[Samples]]


def _measure_host(measured: Measured, time: Time, gpu: int) -> None:
    free = SHARE_OF_HOST * _machine.memory_available()
    n = next((n for n in STREAMING if _bytes(n) <= free), STREAMING[-1])
    limit = HostLimit()
    every = [contestants.host_add(), *(contestants.rung(name, HOST) for name in STREAMERS)]
    measured.add_timed("host", f"add {show_size(n)}", time(n, every, limit, 1))
    if limit.gbps:
        measured.probes["host"] = limit.gbps
    ours, theirs = time(SMALL, [contestants.host_add(), contestants.numpy_add()], None, 1)
    measured.add_timed("host", f"add {show_size(SMALL)}", [ours])
    if not theirs.error:
        measured.probes["numpy"] = theirs.median


def _measure_link(measured: Measured, time: Time, gpu: int) -> None:
    rates = probes.probe_link(gpu)
    measured.limits.setdefault(gpu, {})["link"] = rates
    measured.add_probed("link", rates, gpu)
    now = _link_under_load(gpu)
    for what, value in (("generation", now.link_generation), ("width", now.link_width)):
        if value is not None:
            measured.add("link", what, value, gpu=gpu)
    every = [node for node in topology.numa_nodes() if topology.usable(node)]
    for node in every if len(every) > 1 else ():
        rates = topology.run_on_node(node, lambda: probes.probe_link(gpu))
        for name, key in (("to the device from", "to_device_gbps"), ("to the host on", "to_host_gbps")):
            measured.add("link", f"{name} node {node.number}", rates[key], gpu=gpu)


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
            measured.add_timed("device", f"add {show_size(n)}", timed, gpu)


def _measure_launch(measured: Measured, time: Time, gpu: int) -> None:
    seconds = probes.probe_launch(gpu)
    measured.limits.setdefault(gpu, {})["launch"] = seconds
    measured.add_probed("launch", seconds, gpu)
    if gpu:
        return  # the cost of a call is measured once, for the host
    measured.add_timed("launch", "call of add", time(SMALL, [contestants.device_add()], None, 1))


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
            measured.add("pair", way, figures["rate"] / 1e9, wrong, gpu=gpu, to=other)


def _wrong_words(count: int, words: Sequence[tuple[int, int, int]], nbytes: int) -> str:
    """What of a copy has not arrived as it was sent."""
    index, expected, found = words[0]
    bits = ", ".join(str(bit) for bit in range(64) if (expected ^ found) >> bit & 1)
    return (
        f"wrong bytes: {count} of {nbytes // 8} words are not those that were sent, and no call reported an error; at "
        f"byte {8 * index} {expected:#018x} was sent and {found:#018x} arrived (bits {bits})"
    )


MEASUREMENTS: Mapping[str, Callable[[Measured, Time, int], None]] = {
    "host": _measure_host,
    "link": _measure_link,
    "device": _measure_device,
    "launch": _measure_launch,
    "pair": _measure_pairs,
}


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
