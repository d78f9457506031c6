"""The command ``vecadd bench``: its options, what it prints, its exit status."""

import argparse
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from vecadd.bench import axes, machine, results
from vecadd.bench.run import Run
from vecadd.bench.sweeps import SWEEPS, Sweep
from vecadd.bench.timing import METHOD
from vecadd.info import info

INTERRUPTED = 130  # exit status, by the shells' convention for SIGINT
PIPE_WIDTH = 110  # columns of a table that goes to a file or a pipe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sweeps",
        nargs="*",
        type=_sweep,
        metavar="SWEEP",
        help=f"{', '.join(SWEEPS)} (default: what can run here of {', '.join(_default())})",
    )
    parser.add_argument(
        "--sizes", type=axes.sizes, metavar="N,...", help="elements: 2^20,1e6,1000 (default: the sweep's own)"
    )
    parser.add_argument(
        "--dtypes", type=axes.dtypes, default=("float32",), metavar="DTYPE,...", help="default: float32"
    )
    parser.add_argument("--rungs", type=axes.rungs, metavar="RUNG,...", help="default: all")
    parser.add_argument(
        "--seconds-per-cell",
        type=axes.seconds,
        default=axes.DEFAULT_SECONDS,
        metavar="S",
        help="of timed work for all rungs of one dtype and size together (default: %(default)g)",
    )
    parser.add_argument(
        "--block", type=axes.block, default=0, metavar="N", help="threads a block of the ladder's rungs"
    )
    parser.add_argument("--json", type=target, metavar="FILE", help="write the result file there")


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints, writes; returns the exit status: 0, 1 for a failed or impossible row, 130 when interrupted."""
    if importlib.util.find_spec("rich") is None:
        print("vecadd bench needs the package rich: pip install 'vecadd[bench]'", file=sys.stderr)
        return 2
    conditions = machine.conditions_now()  # before CUDA starts here, or this process is one of the others on the GPU
    found = info()
    possible = [name for name in SWEEPS if found.gpus or not SWEEPS[name].needs_gpu]
    impossible = [name for name in arguments.sweeps if name not in possible]
    if impossible:
        print(f"vecadd bench: {', '.join(impossible)} needs a GPU: {found.gpu_reason}", file=sys.stderr)
        return 1
    sweeps = arguments.sweeps or [name for name in _default() if name in possible]
    running = Run(
        axes.Axes(arguments.sizes, arguments.dtypes, arguments.rungs, arguments.seconds_per_cell, arguments.block)
    )
    measure_with_progress(running, [SWEEPS[name] for name in sweeps])
    conditions = machine.conditions_since(conditions)
    try:  # the file first: whoever reads the tables may have left, and a full disk must not keep them from the others
        if arguments.json is not None:
            results.write(arguments.json, running.meta(found, conditions), running.rows)
    finally:
        _show(running, sweeps)
        if not arguments.sweeps and not found.gpus:
            print(f"no GPU sweeps: {found.gpu_reason}")
        print(f"conditions: {machine.describe(conditions, gpu=bool(found.gpus))}")
    if arguments.json is not None:
        print(f"written to {arguments.json}")
    if running.interrupted:
        return INTERRUPTED
    return 0 if running.ok else 1


def measure_with_progress(running: Run, sweeps: Iterable[Sweep]) -> None:
    """Runs the sweeps under a progress bar on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("probing", total=None)
        running.measure(
            sweeps, lambda what, done, total: progress.update(task, description=what, completed=done, total=total)
        )


def _show(running: Run, sweeps: list[str]) -> None:
    from rich.console import Console

    from vecadd.bench import tables

    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    for table in tables.tables(running.rows):
        console.print(table)
    lines = tables.notes(running.rows)
    lines += [f"{row.name} failed: {row.error}" for row in running.rows if row.error]
    lines += [
        f"{row.name} is impossible: {row.fraction:.3f} of the limit; the method is wrong, not the rung fast"
        for row in running.rows
        if row.impossible
    ]
    lines += [f"failed: {line}" for line in running.failures]
    lines += [f"skipped: {line}" for line in running.skipped]
    if not running.rows:
        lines.append(f"nothing was measured: --rungs and --dtypes leave nothing of {', '.join(sweeps)}")
    lines.append(f"method: {METHOD}")
    lines += [f"{sweep}: {clock}" for sweep, clock in running.clocks.items()]
    if running.interrupted:
        lines.append("interrupted: the tables hold what was measured until then")
    for line in lines:
        print(line)


def _default() -> list[str]:
    return [name for name, sweep in SWEEPS.items() if sweep.by_default]


def _sweep(text: str) -> str:
    if text not in SWEEPS:
        raise argparse.ArgumentTypeError(f"no sweep is called {text!r}; there are {', '.join(SWEEPS)}")
    return text


def target(text: str) -> Path:
    """A path that can be written: better known before the run than after it."""
    path = Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a folder; name a file in it")
    return path
