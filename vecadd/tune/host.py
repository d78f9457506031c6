"""The host's part of ``vecadd tune``: from which sizes threads and streaming stores pay on this machine.

Every comparison is of two schedules on the same float32 operands in interleaved rounds, by the paired ratios of their
times: a gain counts where three of four rounds have it, a loss where two have it. csrc/host/thresholds.h says what
each number decides.
"""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vecadd import _core
from vecadd._host import memory_available
from vecadd._rows import bytes_text
from vecadd.tune.part import Found, Part, Tell

KIB, MIB = 1 << 10, 1 << 20

SIZES = tuple(1 << power for power in range(15, 27))  # bytes of the sum: 2^13 to 2^24 float32
# Further sizes for the stores of all threads. Two cores lost 5 % there in one run and gained 27 % in the next, by the
# operands' pages: streaming stores do not read the lines that they overwrite, so they are taken unless they lose more
# than HARMLESS_LARGE allows.
LARGE = tuple(1 << power for power in range(27, 30))
HARMLESS_LARGE = 1.06
MEMORY_SHARE = 8  # three arrays take at most 1/MEMORY_SHARE of the free memory
NEVER = 1 << 60  # csrc/host/thresholds.h
SMALL = 256 * KIB  # bytes of the sum at which the cost of the threads is compared
LEAST_SHARE = 16 * KIB
BLOCKS = tuple(64 * KIB << step for step in range(6))
SHIPPED_BLOCK = 256 * KIB

ROUNDS = 7
ROUNDS_SHORT = 21  # for calls of microseconds, which gain or lose tenths of one
ENOUGH = 200e-6  # seconds: the least that a back-to-back sample lasts
MOST_CALLS = 15
LONG = 1e-3  # seconds: a call this long is a sample by itself

PAYS = 0.97  # of the other's time: a smaller gain is within the noise between two runs
PAYS_AWAKE = 0.85  # threads take processors from others, and a caller's own work between sums slows them
CLEARLY_BELOW = 4 * MIB  # of the sum; larger sums go to memory, where few threads gain little, but reliably
HARMLESS = 1.02

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Schedule:
    """One way to add on the host, as the rungs ``threads`` and ``threads_stream`` take it. 0: their own choice."""

    threads: int
    streaming: bool = False
    block: int = 0  # bytes

    def at(self, size: int, share: int) -> "Schedule":
        """This schedule with at least ``share`` bytes for each thread, but not below two threads."""
        most = max(2, size // share) if share else self.threads
        return replace(self, threads=min(self.threads, most))

    def seconds(self, operands: tuple[Array, Array, Array]) -> float:
        """Seconds of one addition by the rung that runs this schedule."""
        rung = "threads_stream" if self.streaming else "threads"
        params = {"threads": self.threads, "block_kb": self.block // KIB}
        return _core.run_rung(rung, *operands, params=params)


Sample = Callable[[Schedule, tuple[Array, Array, Array]], float]


def back_to_back(schedule: Schedule, operands: tuple[Array, Array, Array]) -> float:
    """The median of calls in a row, when the workers are awake and the caches hold what those calls left."""
    first = schedule.seconds(operands)
    if first >= LONG:
        return schedule.seconds(operands)
    first = min(first, schedule.seconds(operands), schedule.seconds(operands))
    calls = max(3, min(MOST_CALLS, math.ceil(ENOUGH / first)))
    return float(np.median([schedule.seconds(operands) for _ in range(calls)]))


def search(tell: Tell) -> Sequence[Found]:
    """Measures for some seconds. Raises MemoryError where 192 MiB cannot be had."""
    facts = _core.host_facts()
    threads = facts["threads"]
    large = tuple(size for size in LARGE if threads > 1 and 3 * size <= memory_available() // MEMORY_SHARE)
    widest = _operands(max(SIZES + large))
    operands = cut(widest, max(SIZES))
    one, all_ = Schedule(1), Schedule(threads)
    rows: dict[str, int] = {}
    words = [f"{facts['key']}, {facts['simd']}; sizes are bytes of the sum"]

    def compare(
        name: str,
        what: str,
        challenger: Schedule,
        holder: Schedule,
        clearly: float = PAYS,
        more: tuple[int, ...] = (),
    ) -> None:
        def measured(size: int) -> list[float]:
            tell(f"{what}, {bytes_text(size)}")
            pair = [schedule.at(size, rows.get("share", 0)) for schedule in (challenger, holder)]
            return ratios(pair[0], pair[1], cut(widest, size))

        level = min(more, default=NEVER)
        found = {size: measured(size) for size in SIZES + more}
        doubt(found, measured, level)
        rows[name] = pays_from(found, clearly, level)
        words.append(f"{what}: {told(rows[name], {size: float(np.median(each)) for size, each in found.items()})}")

    compare("stream_alone", "streaming stores of one thread", Schedule(1, streaming=True), one)
    if threads > 1:
        if threads > 2:
            tell("threads for a small sum")
            few = sorted({min(threads, count) for count in (2, 4, 8, 16)})
            few_times = medians([Schedule(count) for count in few], cut(operands, SMALL), back_to_back)
            rows["share"] = max(LEAST_SHARE, SMALL // fewest(few, few_times))
            share = bytes_text(rows["share"])
            words.append(f"threads for {bytes_text(SMALL)}: {listed(few, few_times)}; {share} for each at least")
        compare("threads_awake", f"{threads} threads that are awake", all_, one, PAYS_AWAKE)
        streaming = Schedule(threads, streaming=True)
        what = f"streaming stores of {threads} threads"
        compare("stream_together", what, streaming, all_, more=large)

        tell("threads that stream")
        counts = thread_counts(threads)
        # Of a sum of 64 MiB fifteen threads of sixteen took 0.93, of one of 400 MB 1.09.
        times = medians([Schedule(count, streaming=True) for count in counts], widest)
        rows["threads_streaming"] = fewest(counts, times)
        words.append(
            f"threads that stream {bytes_text(widest[0].nbytes)}: {listed(counts, times)}; "
            f"{rows['threads_streaming']} taken"
        )

        tell("blocks")
        block_times = medians([Schedule(threads, streaming=True, block=block) for block in BLOCKS], operands)
        rows["block"] = best_block(BLOCKS, block_times)
        shown = listed([bytes_text(block) for block in BLOCKS], block_times)
        words.append(f"blocks of {shown}; {bytes_text(rows['block'])} taken")
    return [Found("host", facts["key"], [(name, (number,)) for name, number in rows.items()], words)]


def ratios(challenger: Schedule, holder: Schedule, operands: tuple[Array, Array, Array]) -> list[float]:
    """The challenger's times over the holder's of the same round."""
    found = []
    for number in range(ROUNDS_SHORT if operands[0].nbytes <= MIB else ROUNDS):
        pair = [challenger, holder]
        times = {schedule: back_to_back(schedule, operands) for schedule in (pair if number % 2 else pair[::-1])}
        found.append(times[challenger] / times[holder])
    return found


def medians(
    schedules: Sequence[Schedule], operands: tuple[Array, Array, Array], sample: Sample = Schedule.seconds
) -> list[float]:
    """Seconds of each schedule, by interleaved rounds."""
    order = random.Random(0)
    samples: dict[Schedule, list[float]] = {schedule: [] for schedule in schedules}
    for _ in range(ROUNDS):
        for schedule in order.sample(list(schedules), len(schedules)):
            samples[schedule].append(sample(schedule, operands))
    return [float(np.median(samples[schedule])) for schedule in schedules]


def doubt(found: dict[int, list[float]], measured: Callable[[int], list[float]], level: int = NEVER) -> None:
    """Measures the largest size that harms once more, and so on below it until one harms twice.

    That size decides all smaller ones: one that was disturbed kept sums of 256 KiB to 4 MiB to one thread, which took
    2.1 times as long as two.
    """
    again: set[int] = set()
    while (size := harms_at(found, level)) is not None and size not in again:
        found[size] = measured(size)
        again.add(size)


def harms_at(found: Mapping[int, Sequence[float]], level: int = NEVER) -> int | None:
    """The largest size at which the challenger takes longer than is harmless; None where there is none."""
    return max(
        (size for size, values in found.items() if np.median(values) > (HARMLESS_LARGE if size >= level else HARMLESS)),
        default=None,
    )


def pays_from(found: Mapping[int, Sequence[float]], clearly: float = PAYS, level: int = NEVER) -> int:
    """The smallest size from which the challenger pays and beyond which it never harms; NEVER where it pays nowhere.

    It pays where three of four rounds took no more than PAYS of the holder's time, and ``clearly`` of it below
    CLEARLY_BELOW. From the size ``level`` on it pays unless it loses more than HARMLESS_LARGE says.
    """
    harms = harms_at(found, level) or 0
    return min(
        (
            size
            for size, values in found.items()
            if size > harms
            and (size >= level or np.percentile(values, 75) <= (clearly if size < CLEARLY_BELOW else PAYS))
        ),
        default=NEVER,
    )


def thread_counts(threads: int) -> list[int]:
    """A quarter, a half and three quarters of the threads, one less than all and all."""
    return sorted({max(1, threads * part // 4) for part in (1, 2, 3, 4)} | {max(1, threads - 1)})


def fewest(counts: Sequence[int], times: Sequence[float]) -> int:
    """The fewest threads that are as quick as any number, within the noise between two runs."""
    return min(count for count, seconds in zip(counts, times, strict=True) if seconds <= HARMLESS * min(times))


def best_block(blocks: Sequence[int], times: Sequence[float]) -> int:
    """The quickest block, where it beats the build's by more than the noise between two runs."""
    by_block = dict(zip(blocks, times, strict=True))
    best = min(blocks, key=by_block.__getitem__)
    return best if by_block[best] <= PAYS * by_block[SHIPPED_BLOCK] else SHIPPED_BLOCK


def told(size: int, ratios: Mapping[int, float]) -> str:
    """From which size it pays, with what was measured, for the terminal."""
    measured = ", ".join(f"{bytes_text(each)} {value:.2f}" for each, value in ratios.items())
    return f"{'at no size' if size == NEVER else f'from {bytes_text(size)}'} (time over the other's: {measured})"


def listed(names: Iterable[object], times: Sequence[float]) -> str:
    """Names and their times, for the terminal."""
    return ", ".join(f"{name} {seconds * 1e6:.4g} us" for name, seconds in zip(names, times, strict=True))


def cut(operands: tuple[Array, Array, Array], size: int) -> tuple[Array, Array, Array]:
    """The first `size` bytes of each."""
    a, b, out = (x[: size // x.itemsize] for x in operands)
    return a, b, out


def _operands(size: int) -> tuple[Array, Array, Array]:
    n = size // 4
    a = np.linspace(-1, 1, n, dtype=np.float32)
    return a, a[::-1].copy(), np.zeros(n, np.float32)


# Without a file additions learn from the times of their own calls, so that a search may find nothing that gains.
PART = Part("host", search, needs_gpu=False, must_gain=True)
