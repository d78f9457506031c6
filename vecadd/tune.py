"""``vecadd tune device``: which block, loads and demotion the kernel is fastest with, by the bytes that a call moves.

The rounds are those of vecadd bench: interleaved, over rotating buffers, sums checked after their output was poisoned.
The best of many is also the luckiest: it therefore meets the build's launch config once more in rounds of its own, and
wins where the 95 % interval of its paired ratio there is below 1. It must not lose in another dtype at the same
bytes. Calls beyond the L2 are timed together with a kernel that reads their sum: at 200 MB that kernel loses what
evict_last gains the addition. Copies in bulk are not searched: 16 KB tiles gain 0.2 % from 12 GB on, by a second
kernel.

What wins is kept in a file for each GPU, which csrc/base/tuned_file.c reads.
"""

import argparse
import itertools
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vecadd import _core
from vecadd._command import epilog, status_line, unknown
from vecadd.bench.contestants import Contestant
from vecadd.bench.operands import Buffers, MemoryKind, Pattern
from vecadd.bench.timing import Cell, Measurement, paired_ratio
from vecadd.figures import replace_file
from vecadd.model.theory import rotating_sets
from vecadd.tables import Screen, show_bytes

GONE = ("host", "routes")  # parts that earlier releases searched

BYTES = tuple(3 << power for power in (16, 20, 22, 24, 26, 27, 28, 30))  # of a, b and c together
DTYPES = ("float32", "int8", "float16", "float64")  # the first is searched with, the others must agree

BLOCKS = (128, 256, 512, 768, 1024)
EVICT_LAST_FROM = 2  # L2 sizes: the fewest bytes of a call for which evict_last is tried; fewer stay in the L2
EVICT_LAST_BLOCKS = (512, 768, 1024)
DEMOTED = (16, 24, 30)  # sixtieths of the L2; with fewer the next user of the L2 is more than 1.5 % slower on an H200
EVICT_LAST_CAPABILITY = 90  # the compute capability whose kernel has evict_last: on others these would be plain loads

READER = {"warps": 24, "loads": 1}

SEARCH_SECONDS, DECIDE_SECONDS, AGREE_SECONDS = 1.0, 0.8, 0.3
SHARE = 4  # at most 1/SHARE of the device's memory is used

Tell = Callable[[str], None]  # what is being measured now, a few words


class LaunchConfig(NamedTuple):
    """A launch config, as in csrc/gpu/launch_configs.h."""

    block: int
    loads: int
    demoted: int

    def __str__(self) -> str:
        hints = f", evict_last, {self.demoted}/60 of the L2 demoted" if self.loads else ""
        return f"{self.block} threads{hints}"

    @property
    def params(self) -> dict[str, int]:
        """The parameters of the rung `tuned`."""
        return {"warps": self.block // 32, "loads": 1 + self.loads, "demoted": self.demoted}


class Won(NamedTuple):
    """A launch config that is faster than the build's for calls of about that many bytes."""

    size: int
    config: LaunchConfig


@dataclass(frozen=True)
class Found:
    """What a search found on one GPU. ``rows`` are its launch configs, each with the bytes from which on it is used;
    None where none is faster than the build's. ``words`` are lines for the terminal."""

    key: str
    rows: Sequence[tuple[int, LaunchConfig]] | None
    words: Sequence[str] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd tune` takes."""
    parser.add_argument(
        "part", nargs="?", type=_part, metavar="device", help="the kernels on each GPU, the only part to tune"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be written, and change no file")
    parser.epilog = epilog(
        {"vecadd tune device": "minutes a GPU", "vecadd tune device --dry-run": "the same, without keeping it"},
        {1: "there is no GPU, or a file cannot be written"},
    )


def _part(text: str) -> str:
    if text in GONE:
        raise argparse.ArgumentTypeError(f"`tune {text}` is gone: vecadd's additions on the host need no tuning")
    if text != "device":
        raise argparse.ArgumentTypeError(unknown("part", text, ["device"]))
    return text


def run(arguments: argparse.Namespace) -> int:
    """Searches on each GPU, prints and writes what is found; returns the exit status, 0.

    Raises ValueError where there is no folder for the files and OSError for one that cannot be written, before anything
    is measured, and what the search raises.
    """
    folder = path("any").parent
    if not arguments.dry_run:
        prepare(folder)
    with status_line("device") as tell:
        results = search(tell)
    for found in results:
        Screen().say(*found.words, _keep(found, dry_run=arguments.dry_run))
    return 0


def _keep(found: Found, *, dry_run: bool) -> str:
    """Writes what was found, or removes an earlier search's file where nothing is faster than the build now."""
    file = path(found.key)
    if found.rows is None:
        removed = file.exists() and not dry_run
        if removed:
            file.unlink()
        return "nothing written" + ("; what an earlier search had written is removed" if removed else "")
    if dry_run:
        return f"would be written to {file}"
    return f"written to {write(found.key, found.rows)}; used by processes that start from now on"


def search(tell: Tell) -> list[Found]:
    """What is fastest on each device that the process sees, one `Found` a device. Raises RuntimeError where a kernel
    fails or a sum is wrong, and what device calls raise."""
    return [_search_device(device, facts, tell) for device, facts in enumerate(_core.gpu_facts())]


def _search_device(device: int, facts: dict[str, Any], tell: Tell) -> Found:
    known = _core.device_launch_configs(device)
    shipped = [(row[0], LaunchConfig(*row[1:])) for row in known["shipped"]]
    bench = _Bench(device, facts)
    sizes = [size for size in BYTES if size <= bench.memory]
    won, words = [], []
    for size in sizes:
        tell(show_bytes(size))
        line, winner = _search_size(bench, size, config_for(shipped, size))
        words.append(f"GPU {device}, {facts['name']}, {show_bytes(size)}: {line}")
        if winner is not None:
            won.append(Won(size, winner))
    return Found(known["key"], table(shipped, sizes, won) if won else None, words)


def _search_size(bench: "_Bench", size: int, ours: LaunchConfig) -> tuple[str, LaunchConfig | None]:
    """What was found for that many bytes, in words, and the launch config that replaces ours, if any."""
    others = [config for config in candidates(size, bench.l2, bench.capability) if config != ours]
    ratios = bench.ratios("float32", size, ours, others, SEARCH_SECONDS)
    best = min(ratios, key=lambda config: ratios[config][1])
    low, ratio, high = bench.ratios("float32", size, ours, [best], DECIDE_SECONDS)[best]
    told = f"{best} takes {ratio:.4f} [{low:.4f}, {high:.4f}] of the time of {ours}"
    if high >= 1:
        return f"{ours} stays: {told}", None
    for dtype in DTYPES[1:]:
        low, ratio, _ = bench.ratios(dtype, size, ours, [best], AGREE_SECONDS)[best]
        if low > 1:
            return f"{ours} stays: {told}, but {ratio:.4f} with {dtype}", None
    return told, best


def candidates(size: int, l2: int, capability: int) -> Iterator[LaunchConfig]:
    """All launch configs that a search for calls of that many bytes tries."""
    for block in BLOCKS:
        yield LaunchConfig(block, 0, 0)
    if capability == EVICT_LAST_CAPABILITY and size >= EVICT_LAST_FROM * l2:
        for block, demoted in itertools.product(EVICT_LAST_BLOCKS, DEMOTED):
            yield LaunchConfig(block, 1, demoted)


def config_for(rows: Sequence[tuple[int, LaunchConfig]], size: int) -> LaunchConfig:
    """The launch config for that many bytes: the last of the rows, by growing bytes, that begins at no more."""
    return [config for start, config in rows if start <= size][-1]


def table(
    shipped: Sequence[tuple[int, LaunchConfig]], sizes: Sequence[int], won: Sequence[Won]
) -> list[tuple[int, LaunchConfig]]:
    """The build's rows with the winners inserted: each from half-way, on a logarithmic scale, between its size and the
    next smaller one, to half-way to the next larger one."""
    edges: list[int | None] = [0, *(int((below * above) ** 0.5) for below, above in itertools.pairwise(sizes)), None]
    spans = {size: (edges[at], edges[at + 1]) for at, size in enumerate(sizes)}
    winners = [(*spans[size], config) for size, config in won]

    def at(size: int) -> LaunchConfig:
        inside = [config for low, high, config in winners if (low or 0) <= size and (high is None or size < high)]
        return inside[0] if inside else config_for(shipped, size)

    starts = {start for start, _ in shipped} | {edge for low, high, _ in winners for edge in (low, high) if edge}
    rows: list[tuple[int, LaunchConfig]] = []
    for start in sorted(starts | {0}):
        if not rows or rows[-1][1] != at(start):
            rows.append((start, at(start)))
    return rows


class _Bench:
    """Rounds of launch configs on one device."""

    def __init__(self, device: int, facts: dict[str, Any]) -> None:
        self.l2: int = facts["l2"]
        self.memory: int = facts["memory"] // SHARE
        self.capability: int = 10 * facts["cc_major"] + facts["cc_minor"]
        self._order = random.Random(device)
        self._patterns = {name: Pattern(np.dtype(name)) for name in DTYPES}
        self._place = MemoryKind(
            "device", put=partial(_core.to_device, device=device), get=lambda x: x.numpy(), on_gpu=True
        )

    def ratios(
        self, dtype: str, size: int, reference: LaunchConfig, others: Sequence[LaunchConfig], seconds: float
    ) -> dict[LaunchConfig, tuple[float, float, float]]:
        """Each launch config's times over the reference's of the same rounds: (low, median, high)."""
        configs = [reference, *others]
        n = size // 3 // np.dtype(dtype).itemsize
        read_into = self._place.put(np.empty(n, dtype)) if size >= EVICT_LAST_FROM * self.l2 else None
        meeting = [Contestant(str(config), self._place, _timer(config, read_into)) for config in configs]
        sets = rotating_sets(size, self.l2, self.memory)
        cell = Cell(np.dtype(dtype), n, meeting, sets=sets)
        measurement = Measurement(cell, self._patterns[dtype], self._order)
        measurement.run(seconds)
        for timed in measurement.timed:
            if timed.error is not None:
                raise RuntimeError(f"the kernel with {timed.contestant.name} failed: {timed.error}")
        first, *rest = measurement.timed
        return {config: paired_ratio(timed, first) for config, timed in zip(others, rest, strict=True)}


def _timer(config: LaunchConfig, read_into: Any) -> Callable[[Sequence[Buffers]], float]:
    """Times an addition and, where ``read_into`` is an array, a plain kernel that reads the sum."""

    def time(sets: Sequence[Buffers]) -> float:
        seconds = 0.0
        for a, b, out, _ in sets:
            seconds += _core.run_rung("tuned", a, b, out, params=config.params)
            if read_into is not None:
                seconds += _core.run_rung("tuned", out, out, read_into, params=READER)
        return seconds / len(sets)

    return time


def path(key: str) -> Path:
    """The file of the GPU of that key, whether it exists or not. Raises ValueError where there is no folder for it."""
    found = _core.tuned_path("recipes", key)
    if found is None:
        raise ValueError("there is no folder for tuned configs: set HOME, or set VECADD_CACHE_DIR to a writable folder")
    return Path(found)


def prepare(folder: Path) -> None:
    """Makes the folder where it does not exist. Raises OSError where no file can be written into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):  # without a name, where it can be: a kill leaves nothing
        pass


def write(key: str, rows: Sequence[tuple[int, LaunchConfig]]) -> Path:
    """Writes the GPU's file whole or not at all, and returns its path. Raises OSError where it cannot be written."""
    lines = [f"recipe {start} {config.block} {config.loads} {config.demoted}" for start, config in rows]
    text = "\n".join([f"vecadd {_core.TUNED_VERSION} {key}", *lines, f"end {len(rows)}", ""])
    target = path(key)
    prepare(target.parent)
    replace_file(target, text)
    return target
