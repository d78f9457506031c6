"""The command ``vecadd bench``: its options, what it prints, its exit status."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from vecadd._command import (
    INTERRUPTED,
    STDOUT,
    UsageError,
    epilog,
    folder,
    need,
    status_line,
    target,
    unknown,
)
from vecadd.bench import machine, options, output, plot
from vecadd.bench.options import Options
from vecadd.bench.run import Session, Sweep
from vecadd.bench.sweeps import SWEEPS, draw_run, make_tables
from vecadd.figures import Outputs, Run, run_text
from vecadd.info import info
from vecadd.tables import Screen


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
        "--sizes", type=options.parse_sizes, metavar="N,...", help="elements: 2^20,1e6,1000 (default: the sweep's own)"
    )
    parser.add_argument(
        "--dtypes", type=options.parse_dtypes, metavar="DTYPE,...", help="default: float32, or the sweep's own"
    )
    parser.add_argument("--rungs", type=options.parse_rungs, metavar="RUNG,...", help="default: all that run unnamed")
    parser.add_argument(
        "--seconds-per-cell",
        type=options.parse_seconds,
        metavar="S",
        help="seconds of timed work for all rungs of one dtype and size together (default: "
        f"{options.DEFAULT_SECONDS:g}, or {options.BRIEF_SECONDS:g} where no sweep is named)",
    )
    parser.add_argument(
        "--block", type=options.parse_block, default=0, metavar="N", help="threads a block of the device rungs"
    )
    parser.add_argument(
        "--json",
        type=target,
        metavar="FILE",
        help="write the result file there; - is stdout, the tables then on stderr",
    )
    parser.add_argument("--csv", type=target, metavar="FILE", help="write a line a row there, or to -")
    parser.add_argument("--markdown", type=target, metavar="FILE", help="write the tables there, or to -")
    parser.add_argument("--html", type=target, metavar="PAGE", help="write tables and pictures there as one page")
    parser.add_argument("--plot", type=folder, metavar="DIR", help="draw a picture of each sweep there")
    parser.epilog = epilog(
        {
            "vecadd bench": "everything that can run here, on few sizes",
            "vecadd bench host --sizes 2^10,2^20 --dtypes float32,int8": "one sweep, with these sizes and dtypes",
            "vecadd bench ladder --rungs naive,float4 --json run.json": "two kernels, and a file for check --expect",
            "vecadd bench size --html size.html": "tables and pictures on one page",
            "vecadd bench host --csv - | column -s, -t": "rows for another program",
        },
        {
            0: "every sum is right and no figure above its limit",
            1: "a row failed or is above its limit, nothing was measured, or a sweep that was named needs a GPU",
            2: "wrong usage, or a package that it needs is not installed",
            130: "interrupted; what was measured until then is shown and written",
        },
    )


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints, writes; returns the exit status: 0, 1 for a failed or impossible row, 130 when interrupted.

    Raises UsageError where a package is missing, or where two files are to go to stdout.
    """
    _refuse_what_is_missing(arguments)
    outputs = Outputs(arguments, "json", "csv", "markdown", "html")
    files = {Path(each).resolve() for each in outputs.paths.values()}
    if arguments.plot is not None and arguments.plot.resolve() in files:
        raise UsageError(f"--plot {arguments.plot} is a folder, and a file is to have that name: name another")
    screen = outputs.screen
    conditions = machine.conditions_now()  # before CUDA starts here, or this process counts as another on the GPU
    found = info()
    possible = [name for name in SWEEPS if found.gpus or not SWEEPS[name].needs_gpu]
    impossible = [name for name in arguments.sweeps if name not in possible]
    if impossible:
        print(f"vecadd bench: {', '.join(impossible)} needs a GPU: {found.gpu_reason}", file=sys.stderr)
        return 1
    sweeps = list(dict.fromkeys(arguments.sweeps)) or possible
    session = Session(_options(arguments))
    measure_with_progress(session, [SWEEPS[name] for name in sweeps])
    measured = session.result(found, machine.conditions_since(conditions))
    try:  # the files first: the reader of a pipe may have left, and a full disk must not keep the tables from it
        written = _write(outputs, arguments.plot, measured)
    finally:
        _show(screen, measured, sweeps)
        if not arguments.sweeps and not found.gpus:
            screen.say(f"no GPU sweeps: {found.gpu_reason}")
    screen.say(*(f"written to {path}" for path in written if path != STDOUT))
    if session.interrupted:
        return INTERRUPTED
    return 0 if session.ok else 1


def _refuse_what_is_missing(arguments: argparse.Namespace) -> None:
    """Names all packages at once that the options need and that are not installed."""
    extras = {"matplotlib": "plot"} if arguments.plot is not None or arguments.html is not None else {}
    if arguments.html is not None:
        extras["jinja2"] = "fleet"
    if any(map(options.needs_ml_dtypes, arguments.dtypes or ())):
        extras["ml_dtypes"] = "bench"
    need("this", extras, UsageError)


def _options(arguments: argparse.Namespace) -> Options:
    brief = not arguments.sweeps
    return Options(
        arguments.sizes,
        arguments.dtypes,
        arguments.rungs,
        arguments.seconds_per_cell or (options.BRIEF_SECONDS if brief else options.DEFAULT_SECONDS),
        arguments.block,
        brief,
    )


def _write(outputs: Outputs, folder: Path | None, measured: Run) -> list[Path | str]:
    """Writes the files that the options name, the result file first: the others can be made from it."""
    try:
        outputs.write(
            {
                "json": lambda: run_text(measured.meta, measured.figures),
                "csv": lambda: output.as_csv(measured.figures),
                "markdown": lambda: output.as_markdown(measured),
                "html": lambda: output.as_page(measured),
            }
        )
    finally:
        pictures = [] if folder is None else plot.save(draw_run(measured), folder)
    return [*outputs.paths.values(), *pictures]


def measure_with_progress(session: Session, sweeps: Iterable[Sweep]) -> None:
    """Runs the sweeps; a terminal's stderr shows which cell is measured."""
    with status_line("bench") as tell:
        tell("probing the machine")
        session.measure(sweeps, lambda what, done, total: tell(f"{done + 1}/{total} {what}"))


def _show(screen: Screen, measured: Run, sweeps: Sequence[str]) -> None:
    screen.say(*output.describe_machine(measured), "")
    screen.show(make_tables(measured.figures))
    lines = output.list_problems(measured)
    if not measured.figures and not lines:
        lines.append(f"nothing was measured: --rungs and --dtypes leave nothing of {', '.join(sweeps)}")
    screen.say(*lines, *output.describe_method(measured))


def _sweep(text: str) -> str:
    if text not in SWEEPS:
        raise argparse.ArgumentTypeError(unknown("sweep", text, SWEEPS))
    return text
