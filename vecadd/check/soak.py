"""The soak: memory is filled by patterns and looked through, again and again, while rates, clocks and heat are noted.

The GPUs and the host are soaked at once. A pattern fills all of a part's memory before any of it is looked at, so that
the words come from the memory and not from a cache.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from math import inf
from statistics import median
from typing import Any

import numpy as np

from vecadd import _core, _machine
from vecadd.check import topology
from vecadd.check.findings import DRIFT, make_figure, make_unknown
from vecadd.check.measure import UNMEASURED, describe_error
from vecadd.figures import Figure
from vecadd.tables import show_rate

PATTERNS = ("address", "inverse", "walking one", "walking zero", "random")
CHUNK = 2 << 30  # bytes of an array: the last one is smaller
MARGIN, MARGIN_SHARE = 512 << 20, 0.03  # left free of a GPU's memory: the larger of these bytes and this share
SHARE_OF_HOST = 0.5  # of what is available
DRIFT_OF_HOST = 0.2  # its rate is shared with other work; a GPU's is findings.DRIFT
POINTS = 120  # over the whole soak
FEWEST_SECONDS = 1.0  # from point to point: nvidia-smi takes a tenth of it
WORD = 8

# What nvidia-smi tells of a GPU beside each rate, and the name in the series.
WATCHED = {"clocks.sm": "clock MHz", "clocks.mem": "memory clock MHz", "temperature.gpu": "°C", "power.draw": "W"}

Series = list[dict[str, float | None]]


@dataclass
class Part:
    """A GPU's memory or the host's: what was found wrong in it, and how fast it was."""

    where: str
    gpu: int | None
    nbytes: int = 0
    passes: int = 0
    wrong: int = 0  # words
    first: str | None = None  # the first wrong word, in words
    failure: str | None = None
    series: Series = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _moved: list[float] = field(default_factory=lambda: [0.0, 0.0])  # bytes and seconds since the last point

    def moved(self, nbytes: int, seconds: float) -> None:
        """Notes bytes that were written or looked through."""
        with self._lock:
            self._moved[0] += nbytes
            self._moved[1] += seconds

    def point(self, at: float, watched: dict[str, float | None]) -> None:
        """Adds the rate since the last point, where anything was moved."""
        with self._lock:
            (nbytes, seconds), self._moved = self._moved, [0.0, 0.0]
        if seconds > 0:
            self.series.append({"at": round(at, 3), "GB/s": nbytes / seconds / 1e9, **watched})


def soak(gpus: int, minutes: float, memory: str, tell: Callable[[str], object]) -> tuple[list[Figure], bool]:
    """The findings, and whether the soak was interrupted. ``memory`` is "device", "host" or "both"."""
    _core.release()
    parts = [Part(f"gpu {gpu}", gpu) for gpu in range(gpus) if memory != "host"]
    parts += [Part("host", None)] if memory != "device" else []
    stop = threading.Event()
    begin = time.monotonic()
    end = begin + 60 * minutes
    interrupted = False
    with ThreadPoolExecutor(max(1, len(parts))) as pool:
        running = [pool.submit(_soak_part, part, end, stop) for part in parts]
        try:
            _watch(parts, running, begin, max(FEWEST_SECONDS, 60 * minutes / POINTS), tell)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            stop.set()
    for part in parts:
        part.point(time.monotonic() - begin, {})
    return [figure for part in parts for figure in _figures(part)], interrupted


def _watch(
    parts: Sequence[Part], running: Sequence[Future[None]], begin: float, step: float, tell: Callable[[str], object]
) -> None:
    try:
        numbers = topology.smi_numbers(_core.gpu_facts()) if any(part.gpu is not None for part in parts) else {}
    except RuntimeError:  # a GPU was lost on the way, which its part tells
        numbers = {}
    waiting: Sequence[Future[None]] = running
    while waiting := list(wait(waiting, timeout=step).not_done):
        seen = {int(row["index"]): row for row in _machine.query_nvidia_smi("gpu", "index", *WATCHED) if "index" in row}
        for part in parts:
            row = seen.get(numbers.get(part.gpu, -1), {}) if part.gpu is not None else {}
            part.point(
                time.monotonic() - begin, {name: _number(row[key]) for key, name in WATCHED.items() if key in row}
            )
        passes = min((part.passes for part in parts if part.failure is None), default=0)
        tell(f"soak for {(time.monotonic() - begin) / 60:.1f} minutes: {passes} passes")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _soak_part(part: Part, end: float, stop: threading.Event) -> None:
    """Each pattern once at least, and then until the end."""
    try:
        arrays = list(_arrays(part))
        part.nbytes = sum(array.nbytes for array in arrays)
        while not stop.is_set() and (part.passes < len(PATTERNS) or time.monotonic() < end):
            _pass(part, arrays)
    except Exception as error:  # one GPU's failure leaves the others their soak
        part.failure = describe_error(error)


def _pass(part: Part, arrays: Sequence[Any]) -> None:
    pattern, seed = PATTERNS[part.passes % len(PATTERNS)], part.passes // len(PATTERNS)
    for array in arrays:
        seconds = _core.pattern_write(array, pattern, seed)
        if part.passes:  # the first writing has the system find the host's pages: a tenth of the rate
            part.moved(array.nbytes, seconds)
    for array in arrays:
        seconds, wrong, address, words = _core.pattern_check(array, pattern, seed)
        part.moved(array.nbytes, seconds)
        part.wrong += wrong
        if wrong and part.first is None:
            part.first = _wrong_word(part.passes, pattern, address, *words[0])
    part.passes += 1


def _wrong_word(number: int, pattern: str, address: int, index: int, expected: int, found: int) -> str:
    bits = [bit for bit in range(64) if (expected ^ found) >> bit & 1]
    which = f"bit {bits[0]}" if len(bits) == 1 else f"bits {', '.join(map(str, bits))}"
    return (
        f"the first in pass {number + 1} ({pattern}) at address {address + WORD * index:#x}: {expected:#018x} was "
        f"written and {found:#018x} found, {which}"
    )


def _arrays(part: Part) -> Iterator[Any]:
    """Arrays of 64-bit words that fill the part's memory up to a margin."""
    if part.gpu is None:
        left = int(SHARE_OF_HOST * _machine.memory_available())
        while left >= WORD:
            words = min(CHUNK, left) // WORD
            yield np.zeros(words, np.uint64)
            left -= words * WORD
        return
    available, total = _core.device_memory(part.gpu)
    left = available - max(MARGIN, int(MARGIN_SHARE * total))
    if left < WORD:
        raise MemoryError(f"{available} bytes of the GPU's memory are free: other work uses the rest")
    first = _core.to_device(np.zeros(min(CHUNK, left) // WORD, np.uint64), part.gpu)
    yield first
    left -= first.nbytes
    while left >= WORD:
        words = min(first.size, left // WORD)
        yield first[:words].copy()  # within the GPU: nothing crosses the link
        left -= words * WORD


def _figures(part: Part) -> Iterator[Figure]:
    name, what, unit = f"soak/{part.where}/memory", "memory that keeps what is written", "wrong words"
    looked = part.passes > 0 or part.wrong > 0
    if not looked and (part.failure is None or part.failure.startswith(UNMEASURED)):
        lost = part.failure or "it was interrupted before the first pattern was through"
        yield make_unknown(name, what, unit, f"the soak could not run: {lost}.", "End other work, and run it again.")
        return
    failed = bool(part.wrong or part.failure)
    meaning = f"{part.passes} passes of {len(PATTERNS)} patterns in turn over {part.nbytes / 2**30:.4g} GiB: "
    meaning += f"{part.wrong} words were wrong; {part.first}." if part.wrong else "every word was found as written."
    meaning += f" Then it failed: {part.failure}" if part.failure else ""
    if not looked:
        meaning = f"It failed before the first pattern was through: {part.failure}"
    yield make_figure(
        name,
        what,
        "critical" if failed else "pass",
        part.wrong if looked else None,
        unit,
        meaning,
        "Take the machine out of service, and have the memory replaced: nothing that it computes can be trusted.",
        expected=(-inf, 0.0),
        source="memory that works",
    )
    if part.series:
        yield _rate(part)


def _rate(part: Part) -> Figure:
    rates = [point["GB/s"] or 0.0 for point in part.series]
    fifth = max(1, len(rates) // 5)
    early, late = median(rates[:fifth]), median(rates[-fifth:])
    drift = DRIFT if part.gpu is not None else DRIFT_OF_HOST
    fell = len(rates) > 2 and late < (1 - drift) * early
    clocks = [point["clock MHz"] for point in part.series if point.get("clock MHz")]
    meaning = (
        f"The rate of writing and looking through, {show_rate(early)} GB/s at first and {show_rate(late)} at last."
    )
    if fell:
        meaning += f" It fell by {100 * (1 - late / early):.0f} %."
        meaning += f" The clock went from {clocks[0]:.0f} to {clocks[-1]:.0f} MHz." if clocks else ""
    return make_figure(
        f"soak/{part.where}/rate",
        "rate over the soak",
        "warning" if fell else "pass",
        median(rates),
        "GB/s",
        meaning,
        "Look at temperature, power and throttling in the series and in nvidia-smi -q.",
        interval=(min(rates), max(rates)),
        expected=((1 - drift) * early, inf),
        source="the first fifth of the soak",
        more={"series": part.series},
    )
