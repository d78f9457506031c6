"""Measures what tuning the host gains: processes that read what `vecadd tune host` found beside processes that do not.

    python -m benchmarks.tuned_host --minutes 20 --json benchmarks/results/MACHINE/tuned-host.json

METHOD and CLOCK say how. The program searches first, as `vecadd tune host` does, but it measures whatever the search
finds, where the command keeps only what gains. The file lies in a folder of its own; the user's files are not read.
"""

import argparse
import contextlib
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import IO, Any

import numpy as np

import vecadd
from benchmarks.tables.tuned_host import table
from vecadd._command import target
from vecadd.bench import axes, machine, results
from vecadd.bench.results import Row
from vecadd.bench.terminal import Screen
from vecadd.bench.timing import paired_interval
from vecadd.info import info
from vecadd.tune import host, store

SWEEP = "tuned-host"
METHOD = (
    "generations of three processes, one that reads the tuned file and two that read none, which take turns in random "
    "order, cell by cell in random order; medians of the generations, and of the ratios within each, with their 95 % "
    "interval by the sign test"
)
CLOCK = (
    "timed by the host around Python calls: back to back for 40 ms, behind 6 ms that are not timed; sums that are kept "
    "until there are 64 MB of them; single calls behind a pause of 1 ms and of 100 ms; a cell's time is their median"
)

MINUTES, FEWEST = 20.0, 6  # generations at least: fewer have no interval of 95 %
SIZES = tuple(2**power for power in (4, 8, 12, 14, 16, 17, 18, 19, 20, 21, 22, 24, 26, 28))
DTYPES = ("float32", "float64")
SIDES = ("untuned", "again", "tuned")
WARM, LONG, KEPT = 0.006, 0.04, 64 << 20  # seconds, seconds, bytes
MOST_PAUSED = 1 << 24  # elements: a larger sum takes longer than it takes to wake the threads

Add = Callable[[], Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Tunes, measures, prints and writes; a wrong sum ends it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuned_host", description="what tuning the host gains")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"in all (default {MINUTES:g})")
    parser.add_argument("--sizes", type=axes.sizes, default=SIZES, metavar="N,...")
    parser.add_argument("--dtypes", type=axes.dtypes, default=DTYPES, metavar="DTYPE,...")
    parser.add_argument("--json", type=target, metavar="FILE")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--search", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        serve()
        return 0
    if given.search is not None:
        search(given.search)
        return 0
    conditions = machine.conditions_now()
    cells = [
        (form, dtype, n)
        for dtype in given.dtypes
        for n in given.sizes
        for form in FORMS
        if "ms" not in form or n <= MOST_PAUSED
    ]
    with tempfile.TemporaryDirectory() as folder:
        tuned = str(Path(folder) / "tuned")
        tune(tuned)
        taken = generations(cells, given.minutes * 60, str(Path(folder) / "none"), tuned)
    rows = [row_of(cell, samples) for cell, samples in taken.items()]
    Screen(sys.stderr).show([table(rows)])
    if given.json is not None:
        meta = machine.meta(
            info(),
            machine.conditions_since(conditions),
            method=METHOD,
            clocks={SWEEP: CLOCK},
        )
        results.write(given.json, meta, rows)
    return 0


def tune(folder: str) -> None:
    """Has a process that reads no tuned file search, and write what it found into that folder."""
    command = [sys.executable, "-m", "benchmarks.tuned_host", "--search", folder]
    subprocess.run(command, env=_reading(folder), check=True)


def search(folder: Path) -> None:
    """Writes what `vecadd tune host` finds, whether additions gain by it or not."""
    for found in host.search(lambda words: None):
        assert found.rows is not None
        store.write(found.kind, found.key, found.rows, folder)


Cell = tuple[str, str, int]  # form, dtype, elements
Samples = dict[str, list[float]]  # by side, a figure a generation


def generations(cells: Sequence[Cell], seconds: float, untuned: str, tuned: str) -> dict[Cell, Samples]:
    """Every side's seconds in every cell, generation by generation, for so long, FEWEST generations at least."""
    order, begun, count = random.Random(0), time.monotonic(), 0
    taken: dict[Cell, Samples] = {cell: {side: [] for side in SIDES} for cell in cells}
    while count < FEWEST or time.monotonic() < begun + seconds:
        with contextlib.ExitStack() as stack:
            processes = {side: stack.enter_context(process(tuned if side == "tuned" else untuned)) for side in SIDES}
            for cell in order.sample(cells, len(cells)):
                for side in order.sample(SIDES, len(SIDES)):
                    taken[cell][side].append(ask(processes[side], cell))
        count += 1
    return taken


@contextlib.contextmanager
def process(folder: str) -> Iterator[subprocess.Popen[str]]:
    """One that reads tuned files from the folder and answers what `ask` asks, until it is left."""
    command = [sys.executable, "-m", "benchmarks.tuned_host", "--child"]
    with subprocess.Popen(
        command, env=_reading(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        yield child
        with contextlib.suppress(BrokenPipeError):
            _pipe(child.stdin).close()


def ask(child: subprocess.Popen[str], cell: Cell) -> float:
    """The seconds of an addition in that process. Raises RuntimeError where it has ended."""
    answer = ""
    with contextlib.suppress(BrokenPipeError):
        _pipe(child.stdin).write(json.dumps(cell) + "\n")
        _pipe(child.stdin).flush()
        answer = _pipe(child.stdout).readline()
    if not answer:
        raise RuntimeError(f"the process that was asked for {cell} has ended")
    return float(answer)


def serve() -> None:
    """Answers each line of standard input, a cell, by its seconds."""
    for line in sys.stdin:
        form, dtype, n = json.loads(line)
        print(measured(form, dtype, n), flush=True)


def measured(form: str, dtype: str, n: int) -> float:
    """Seconds of an addition in this process. Raises RuntimeError for a sum that is not NumPy's."""
    a, b = np.random.default_rng(n).random((2, n)).astype(dtype)
    out = np.zeros_like(a)
    seconds, add = FORMS[form]
    found = float(seconds(functools.partial(add, a, b, out)))
    if not np.array_equal(vecadd.add(a, b, out=out), np.add(a, b)):
        raise RuntimeError(f"{form} {dtype} {n}: the sum is not NumPy's")
    return found


def row_of(cell: Cell, samples: Samples) -> Row:
    """The untuned time, and the ratios of the others to it."""
    form, dtype, n = cell
    low, ratio, high = paired_interval(samples["tuned"], samples["untuned"])
    least, same, most = paired_interval(samples["again"], samples["untuned"])
    params = {
        "ratio": ratio,
        "ratio_interval": [low, high],
        "same": same,
        "same_interval": [least, most],
        "generations": len(samples["tuned"]),
    }
    seconds, nbytes = median(samples["untuned"]), 3 * n * np.dtype(dtype).itemsize
    spread = (float(np.quantile(samples["untuned"], 0.1)), float(np.quantile(samples["untuned"], 0.9)))
    return Row(SWEEP, form, dtype, n, params, seconds, spread, nbytes, nbytes / seconds / 1e9, None, None, True)


def _into(a: Any, b: Any, out: Any) -> Any:
    return vecadd.add(a, b, out=out)


def _new(a: Any, b: Any, out: Any) -> Any:
    del out
    return vecadd.add(a, b)


def _back_to_back(add: Add) -> float:
    clock = time.perf_counter
    warm, count = clock() + WARM, 0
    while count < 3 or clock() < warm:
        add()
        count += 1
    calls = max(1, round(count / WARM * 2e-4))
    samples: list[float] = []
    end = clock() + LONG
    while len(samples) < 3 or clock() < end:
        begun = clock()
        for _ in range(calls):
            add()
        samples.append((clock() - begun) / calls)
    return median(samples)


def _kept(add: Add) -> float:
    count: int = max(4, min(3000, KEPT // add().nbytes))
    samples: list[float] = []
    for _ in range(3):
        begun = time.perf_counter()
        sums = [add() for _ in range(count)]
        samples.append((time.perf_counter() - begun) / count)
        del sums
    return median(samples)


def _paused(pause: float, calls: int, add: Add) -> float:
    for _ in range(3):
        add()
    samples: list[float] = []
    for _ in range(calls):
        time.sleep(pause)
        begun = time.perf_counter()
        add()
        samples.append(time.perf_counter() - begun)
    return median(samples)


# How each is timed, and what it adds.
FORMS: Mapping[str, tuple[Callable[[Add], float], Callable[[Any, Any, Any], Any]]] = {
    "out=": (_back_to_back, _into),
    "a + b": (_back_to_back, _new),
    "a + b, kept": (_kept, _new),
    "out= after 1 ms": (functools.partial(_paused, 1e-3, 30), _into),
    "a + b after 1 ms": (functools.partial(_paused, 1e-3, 30), _new),
    "out= after 100 ms": (functools.partial(_paused, 0.1, 4), _into),
}


def _reading(folder: str) -> dict[str, str]:
    return {**os.environ, "VECADD_CACHE_DIR": folder}


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None  # Popen was asked for it
    return pipe


if __name__ == "__main__":
    sys.exit(main())
