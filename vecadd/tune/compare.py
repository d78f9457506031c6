"""What the files of ``vecadd tune`` change: additions by one folder of them against additions by another.

A process reads what was tuned once. So two child processes add, one of each folder, and take turns; several pairs of
them, because where a process's arrays lie in memory is worth some per cent. Run as ``python -m vecadd.tune.compare
PART`` it is such a child: it reads a case's name a line, and answers with the seconds of an addition.
"""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import vecadd
from vecadd._environment import of_child
from vecadd._rows import bytes_text
from vecadd.tune.part import Tell

MIB = 1 << 20
SIZES = (MIB // 16, MIB // 4, MIB, 2 * MIB, 4 * MIB, 16 * MIB, 64 * MIB)  # bytes of the sum
PAUSED = (MIB, 4 * MIB, 16 * MIB)
PAUSE = 1e-3  # seconds after which the worker threads sleep
ENOUGH = 2e-3  # seconds: the least that a sample of calls in a row lasts
PAIRS, ROUNDS = 3, 5
NOISE = 1.03  # two medians of the same call differ by less

Case = Callable[[], float]  # gives the seconds of one addition
Ratios = Mapping[str, Sequence[float]]  # by case, a round each: the seconds by the first folder over the second's


def ratios(part: str, before: Path, after: Path, tell: Tell) -> Ratios:
    """How much faster the part's additions are by the second folder, by interleaved rounds.

    Raises RuntimeError where a child process fails.
    """
    found: dict[str, list[float]] = {}
    order = random.Random(0)
    for pair in range(PAIRS):
        with _Child(part, before) as old, _Child(part, after) as new:
            for turn in range(ROUNDS):
                tell(f"what has changed, {pair * ROUNDS + turn + 1} of {PAIRS * ROUNDS}")
                for case in old.cases:
                    seconds = {child: child.seconds(case) for child in order.sample((old, new), 2)}
                    found.setdefault(case, []).append(seconds[old] / seconds[new])
    return found


def gains(found: Ratios) -> bool:
    """Whether a case is faster by the second folder, and none slower."""
    changed = _changed(found).values()
    return bool(changed) and min(changed) > 1


def sentences(found: Ratios, first: str) -> Iterator[str]:
    """What the ratios say of the second folder. ``first`` names what the first one holds, after "than" or "as"."""
    changed = _changed(found)
    for word in ("faster", "slower"):
        told = [
            f"{max(ratio, 1 / ratio):.2f} x {word} {case}"
            for case, ratio in changed.items()
            if (ratio > 1) == (word == "faster")
        ]
        if told:
            yield f"add is {', '.join(told)} than {first}"
    if not changed:
        yield f"nothing changed: add is as fast as {first} {', '.join(found)}"


def _changed(found: Ratios) -> dict[str, float]:
    """The medians of the cases where three of four rounds agree on a change beyond the noise of two runs."""
    changed = {}
    for case, rounds in found.items():
        low, median, high = np.percentile(rounds, (25, 50, 75))
        if (low > 1 and median > NOISE) or (high < 1 and median < 1 / NOISE):
            changed[case] = float(median)
    return changed


class _Child:
    """A process that adds by what one folder keeps."""

    def __init__(self, part: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", "vecadd.tune.compare", part],
            env=of_child(VECADD_CACHE_DIR=str(folder)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.cases = self._answer().split(";")

    def seconds(self, case: str) -> float:
        """One addition's time. Raises RuntimeError where the process has ended."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # there is no answer then, which says more
            self._process.stdin.write(f"{case}\n")
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process that measures what has changed ended with status {self._process.wait()}")
        return line.strip()

    def __enter__(self) -> "_Child":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with ExitStack() as stack:
            stack.enter_context(suppress(BrokenPipeError))  # a question that no one has read
            stack.enter_context(self._process)
            self._process.kill()


def _cases(part: str) -> dict[str, Case]:
    """The additions that the part has a say in, by the words that follow "as fast"."""
    if part == "device":
        return {f"at {bytes_text(size)} on the GPU": _on_device(size) for size in SIZES}
    if part == "routes":
        vecadd.use_gpu()
        kinds: dict[str, Callable[..., Any]] = {"": np.empty, " of page-locked memory": vecadd.empty_pinned}
        return {
            f"at {bytes_text(size)}{kind}": _in_a_row(*_arrays(size, new))
            for kind, new in kinds.items()
            for size in SIZES
        }
    cases = {f"at {bytes_text(size)}": _in_a_row(*_arrays(size, np.empty)) for size in SIZES}
    return cases | {f"at {bytes_text(size)} after a pause": _paused(*_arrays(size, np.empty)) for size in PAUSED}


def _arrays(size: int, new: Callable[..., Any]) -> tuple[Any, Any, Any]:
    made = new(size // 4, np.float32), new(size // 4, np.float32), new(size // 4, np.float32)
    for number, x in enumerate(made):
        x[:] = number
    return made


def _in_a_row(a: Any, b: Any, out: Any, done: Callable[[], object] = lambda: None) -> Case:
    def seconds() -> float:
        begin, calls = time.perf_counter(), 0
        while calls < 2 or time.perf_counter() - begin < ENOUGH:
            vecadd.add(a, b, out)
            calls += 1
        done()
        return (time.perf_counter() - begin) / calls

    return seconds


def _paused(a: Any, b: Any, out: Any) -> Case:
    def seconds() -> float:
        time.sleep(PAUSE)
        begin = time.perf_counter()
        vecadd.add(a, b, out)
        return time.perf_counter() - begin

    return seconds


def _on_device(size: int) -> Case:
    a, b, out = (vecadd.to_device(x) for x in _arrays(size, np.empty))
    return _in_a_row(a, b, out, lambda: out[:1].numpy())


def _serve(part: str) -> None:
    cases = _cases(part)
    for case in cases.values():
        case()
    print(";".join(cases), flush=True)
    for line in sys.stdin:
        print(repr(cases[line.strip()]()), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
