"""The command ``vecadd bench``: its options, what it prints, its exit status."""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vecadd._terminal import status_line
from vecadd.bench import axes, formats, machine, opening, results
from vecadd.bench.results import Row
from vecadd.bench.run import Run
from vecadd.bench.sweeps import SWEEPS, Sweep
from vecadd.bench.tables import tables
from vecadd.bench.terminal import Screen
from vecadd.info import info

INTERRUPTED = 130  # exit status, by the shells' convention for SIGINT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd bench` takes."""
    parser.add_argument(
        "sweeps",
        nargs="*",
        type=_sweep,
        metavar="SWEEP",
        help=f"{', '.join(SWEEPS)} (default: all that can run here, on few sizes: some minutes)",
    )
    parser.add_argument(
        "--sizes", type=axes.sizes, metavar="N,...", help="elements: 2^20,1e6,1000 (default: the sweep's own)"
    )
    parser.add_argument("--dtypes", type=axes.dtypes, metavar="DTYPE,...", help="default: float32, or the sweep's own")
    parser.add_argument("--rungs", type=axes.rungs, metavar="RUNG,...", help="default: all that need not be named")
    parser.add_argument(
        "--seconds-per-cell",
        type=axes.seconds,
        metavar="S",
        help="of timed work for all rungs of one dtype and size together (default: "
        f"{axes.DEFAULT_SECONDS:g}, or {axes.BRIEF_SECONDS:g} where no sweep is named)",
    )
    parser.add_argument("--block", type=axes.block, default=0, metavar="N", help="threads a block of the device rungs")
    parser.add_argument("--json", type=target, metavar="FILE", help="write the result file there")
    parser.add_argument("--csv", type=target, metavar="FILE", help="write a line a row there")
    parser.add_argument("--markdown", type=target, metavar="FILE", help="write the tables there as they are printed")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="draw a picture of each sweep there")


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints, writes; returns the exit status: 0, 1 for a failed or impossible row, 130 when interrupted."""
    if arguments.plot is not None and importlib.util.find_spec("matplotlib") is None:
        print("vecadd bench needs the package matplotlib: pip install 'vecadd[plot]'", file=sys.stderr)
        return 2
    conditions = machine.conditions_now()  # before CUDA starts here, or this process counts as another on the GPU
    found = info()
    possible = [name for name in SWEEPS if found.gpus or not SWEEPS[name].needs_gpu]
    impossible = [name for name in arguments.sweeps if name not in possible]
    if impossible:
        print(f"vecadd bench: {', '.join(impossible)} needs a GPU: {found.gpu_reason}", file=sys.stderr)
        return 1
    sweeps = arguments.sweeps or possible
    running = Run(_axes(arguments))
    measure_with_progress(running, [SWEEPS[name] for name in sweeps])
    meta = running.meta(found, machine.conditions_since(conditions))
    try:  # the files first: the reader of a pipe may have left, and a full disk must not keep the tables from it
        written = _write(arguments, meta, running.rows)
    finally:
        _show(meta, running.rows, sweeps)
        if not arguments.sweeps and not found.gpus:
            print(f"no GPU sweeps: {found.gpu_reason}")
    for path in written:
        print(f"written to {path}")
    if running.interrupted:
        return INTERRUPTED
    return 0 if running.ok else 1


def _axes(arguments: argparse.Namespace) -> axes.Axes:
    brief = not arguments.sweeps
    return axes.Axes(
        arguments.sizes,
        arguments.dtypes,
        arguments.rungs,
        arguments.seconds_per_cell or (axes.BRIEF_SECONDS if brief else axes.DEFAULT_SECONDS),
        arguments.block,
        brief,
    )


def _write(arguments: argparse.Namespace, meta: Mapping[str, Any], rows: Sequence[Row]) -> list[Path]:
    """Writes the files that the options name, the result file first: the others can be made from it."""
    if arguments.json is not None:
        results.write(arguments.json, meta, rows)
    texts: tuple[tuple[Path | None, Callable[[], str]], ...] = (
        (arguments.csv, lambda: formats.as_csv(rows)),
        (arguments.markdown, lambda: formats.as_markdown(meta, rows)),
    )
    for path, text in texts:
        if path is not None:
            results.replace(path, text())
    pictures: list[Path] = []
    if arguments.plot is not None:
        from vecadd.bench import plots

        pictures = plots.save(meta, rows, arguments.plot, recorded=False)
    return [path for path in (arguments.json, arguments.csv, arguments.markdown) if path is not None] + pictures


def measure_with_progress(running: Run, sweeps: Iterable[Sweep]) -> None:
    """Runs the sweeps; a terminal's stderr shows which cell is measured."""
    with status_line("bench") as tell:
        tell("probing the machine")
        running.measure(sweeps, lambda what, done, total: tell(f"{done + 1}/{total} {what}"))


def _show(meta: Mapping[str, Any], rows: Sequence[Row], sweeps: Sequence[str]) -> None:
    screen = Screen()
    screen.say(*opening.lines(meta, rows), "")
    screen.show(tables(rows))
    lines = opening.findings(meta, rows)
    if not rows:
        lines.append(f"nothing was measured: --rungs and --dtypes leave nothing of {', '.join(sweeps)}")
    screen.say(*lines, *formats.method(meta))


def _sweep(text: str) -> str:
    if text not in SWEEPS:
        raise argparse.ArgumentTypeError(f"no sweep is called {text!r}; there are {', '.join(SWEEPS)}")
    return text


def target(text: str) -> Path:
    """A path whose folder exists: checked before the run, not after it."""
    path = Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a folder; name a file in it")
    return path
