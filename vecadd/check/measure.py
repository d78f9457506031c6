"""One round of the acceptance test: every figure once, every timed sum compared bit for bit as `vecadd bench` does."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from vecadd import _core, _host
from vecadd._machine import Gpu, Info
from vecadd.bench import contestants, limits
from vecadd.bench.axes import show_size, sizes
from vecadd.bench.buffers import DEVICE, HOST, Pattern, Place, rotation
from vecadd.bench.contestants import Contestant
from vecadd.bench.limits import FixedLimit, HostLimit, Limit
from vecadd.bench.timing import Cell, Measurement, Timed
from vecadd.check.rows import Kind, Row, Unit
from vecadd.info import info

DTYPE = np.dtype("float32")
SMALL = 1 << 10  # elements of an addition that is all overhead
STREAMING = (1 << 26, 1 << 24, 1 << 22)  # of the host's streaming add, the first that fits: past most caches
DEVICE_SIZES = (1 << 20, 1 << 24, 1 << 28)
LARGEST = 1 << 29  # and this, where three arrays are a sixteenth of the GPU's memory: 10 s of filling and checking
SHARE_OF_GPU, SHARE_OF_HOST = 1 / 16, 1 / 4  # of their memory that one set of arrays may take
SECONDS = 0.5  # of timed work a cell
STREAMERS = ("threads", "threads_stream")  # rungs that count for the host's best besides vecadd.add


@dataclass
class Measured:
    """The rows of all rounds by title, and the last round's probes: the host's GB/s and seconds by name, and each GPU's
    limits as a result file has them."""

    rows: dict[str, Row] = field(default_factory=dict)
    probes: dict[str, float] = field(default_factory=dict)
    limits: dict[int, dict[str, dict[str, float]]] = field(default_factory=dict)

    def add(
        self, kind: Kind, name: str, unit: Unit, value: float | None, error: str | None = None, gpu: int = 0
    ) -> None:
        """Notes a round's figure, or why there is none."""
        row = Row(kind, name, unit, gpu=gpu)
        row = self.rows.setdefault(row.title, row)
        if value is not None:
            row.values.append(value)
        row.error = row.error or error


def round_of(found: Info, measured: Measured, tell: Callable[[str], object]) -> None:
    """Adds one round of all this machine's figures to ``measured``; a failure becomes its row's error."""
    pattern, order = Pattern(DTYPE), random.Random(0)

    def time(n: int, every: list[Contestant], limit: Limit, sets: int) -> list[Timed]:
        measurement = Measurement(Cell("check", DTYPE, n, every, limit, sets), pattern, order)
        measurement.run(SECONDS)
        return measurement.timed

    for kind, rows in ROWS.items():
        for gpu in range(len(found.gpus)) if kind != "host" else (0,):
            tell(f"{kind} of GPU {gpu}" if gpu else kind)
            try:
                rows(measured, time, gpu)
            except Exception as error:  # a GPU that cannot be probed does not keep the host from being measured
                measured.add(kind, "figures", "GB/s", None, f"{type(error).__name__}: {error}", gpu)


def impossible(found: Info, measured: Measured, titles: Iterable[str]) -> Iterator[Row]:
    """A failed row for each of these titles that rounds measure on other machines and cannot measure on this one."""
    units = _units()
    for title in titles:
        figure, _, number = title.partition(" of GPU ")
        gpu = int(number or 0)
        if title in measured.rows or figure not in units:
            continue
        kind = next(kind for kind in ROWS if figure.startswith(f"{kind} "))
        row = Row(kind, figure.removeprefix(f"{kind} "), units[figure], gpu=gpu)
        row.error = _why_not(found, measured, row)
        if row.error:
            yield row


def _units() -> dict[str, Unit]:
    """What a round can measure. The machine's memory decides which of the additions it does measure."""
    additions: dict[Kind, tuple[int, ...]] = {"host": STREAMING, "device": (*DEVICE_SIZES, LARGEST)}
    return {
        **{f"{kind} add {show_size(n)}": "GB/s" for kind, every in additions.items() for n in every},
        **{f"link {name}": "GB/s" for name in ("to the device", "to the host", "both ways")},
        "device read": "GB/s",
        "device write": "GB/s",
        f"host add {show_size(SMALL)}": "s",
        **{f"launch {name}": "s" for name in ("empty kernel", "queued kernel", "call of add")},
        "link generation": "generation",
        "link width": "lanes",
    }


def _why_not(found: Info, measured: Measured, row: Row) -> str | None:
    """Why this machine has no such figure; None where it has that of a larger addition in its place."""
    if row.kind != "host" and row.gpu >= len(found.gpus):
        return f"there is no GPU {row.gpu}" if found.gpus else f"there is no GPU: {found.gpu_reason}"
    broken = measured.rows.get(replace(row, name="figures").title)
    if broken is not None:
        return broken.error
    if not row.name.startswith("add "):
        return "neither the driver nor the system says it"
    (n,) = sizes(row.name.removeprefix("add "))
    larger = (f"host add {show_size(other)}" for other in STREAMING if other > n)
    if row.kind == "host" and any(title in measured.rows for title in larger):
        return None
    return f"its arrays take {_bytes(n) / 2**30:.2g} GiB, a larger share of the memory than is used here"


Time = Callable[[int, list[Contestant], Limit, int], list[Timed]]


def _host_rows(measured: Measured, time: Time, gpu: int) -> None:
    free = SHARE_OF_HOST * _host.memory_available()
    n = next((n for n in STREAMING if _bytes(n) <= free), STREAMING[-1])
    limit = HostLimit()
    every = [contestants.host_add(), *(contestants.rung(name, HOST) for name in STREAMERS)]
    timed = time(n, every, limit, 1)
    measured.add("host", f"add {show_size(n)}", "GB/s", _best(n, timed), _error(timed))
    if limit.gbps:
        measured.probes["host"] = limit.gbps
    timed = time(SMALL, [contestants.host_add(), contestants.numpy_add()], FixedLimit(None), 1)
    ours, theirs = timed
    measured.add("host", f"add {show_size(SMALL)}", "s", None if ours.error else ours.median, ours.error)
    if not theirs.error:
        measured.probes["numpy"] = theirs.median


def _link_rows(measured: Measured, time: Time, gpu: int) -> None:
    rates = limits.probe_link(gpu)
    measured.limits.setdefault(gpu, {})["link"] = rates
    for name, key in (("to the device", "to_device_gbps"), ("to the host", "to_host_gbps"), ("both ways", "both_gbps")):
        measured.add("link", name, "GB/s", rates[key], gpu=gpu)
    now = _link_under_load(gpu)
    if now.link_generation is not None:
        measured.add("link", "generation", "generation", now.link_generation, gpu=gpu)
    if now.link_width is not None:
        measured.add("link", "width", "lanes", now.link_width, gpu=gpu)


def _device_rows(measured: Measured, time: Time, gpu: int) -> None:
    facts = _core.gpu_facts()[gpu]
    memory, l2 = facts["memory"], facts["l2"]
    rates = limits.probe_device(gpu, l2, memory)
    measured.limits.setdefault(gpu, {}).update(device=rates, latency=limits.probe_latency(gpu))
    measured.add("device", "read", "GB/s", rates["read_gbps"], gpu=gpu)
    measured.add("device", "write", "GB/s", rates["write_gbps"], gpu=gpu)
    most = min(SHARE_OF_GPU * memory, SHARE_OF_HOST * _host.memory_available())
    for n in (*DEVICE_SIZES, LARGEST):
        if _bytes(n) <= most:
            sets = rotation(_bytes(n), l2, int(most))
            timed = time(n, [contestants.rung("tuned", _place(gpu))], FixedLimit(None), sets)
            measured.add("device", f"add {show_size(n)}", "GB/s", _best(n, timed), _error(timed), gpu)


def _launch_rows(measured: Measured, time: Time, gpu: int) -> None:
    seconds = limits.probe_launch(gpu)
    measured.limits.setdefault(gpu, {})["launch"] = seconds
    measured.add("launch", "empty kernel", "s", seconds["kernel_seconds"], gpu=gpu)
    measured.add("launch", "queued kernel", "s", seconds["queued_seconds"], gpu=gpu)
    if gpu:
        return  # the cost of a call is measured once, for the host
    (timed,) = time(SMALL, [contestants.device_add()], FixedLimit(None), 1)
    measured.add("launch", "call of add", "s", None if timed.error else timed.median, timed.error)


ROWS: Mapping[Kind, Callable[[Measured, Time, int], None]] = {
    "host": _host_rows,
    "link": _link_rows,
    "device": _device_rows,
    "launch": _launch_rows,
}


def _place(gpu: int) -> Place:
    if gpu == 0:
        return DEVICE
    return replace(DEVICE, name=f"device {gpu}", put=lambda x: _core.to_device(x, gpu))


def _link_under_load(index: int) -> Gpu:
    """The GPU's facts while its link is busy: an idle link may be at a lower generation than it can have."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(info)
        while not asked.done():
            _core.link_limits(index, limits.LINK_BYTES, limits.PROBE_ROUNDS)
        return asked.result().gpus[index]


def _bytes(n: int) -> int:
    return 3 * n * DTYPE.itemsize


def _best(n: int, timed: Sequence[Timed]) -> float | None:
    """GB/s of the fastest; None where one of them failed."""
    return None if _error(timed) else _bytes(n) / min(each.median for each in timed) / 1e9


def _error(timed: Sequence[Timed]) -> str | None:
    return next((f"{each.contestant.name}: {each.error}" for each in timed if each.error), None)
