"""The command ``vecadd check``: its options, what it prints, its exit status."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vecadd._command import INTERRUPTED, STDOUT, UnaskableError, epilog, target
from vecadd._machine import Info
from vecadd._terminal import status_line
from vecadd.bench import machine, results
from vecadd.bench.terminal import Screen
from vecadd.check import expected, findings, measure, tables
from vecadd.check.findings import Finding
from vecadd.check.measure import Measured
from vecadd.check.rows import Row
from vecadd.info import info

METHOD = (
    "each figure once a round as vecadd bench measures it, medians of interleaved repeats, every sum of the first and "
    "the last repeat compared bit for bit with numpy.add's; the worst round counts"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd check` takes."""
    parser.add_argument(
        "--expect",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="an earlier file of vecadd bench --json or vecadd check --json, more than once for a run of several files."
        " What it has and this machine cannot run fails. Default, and for what it lacks: theory, probes of this run",
    )
    parser.add_argument("--require-gpu", action="store_true", help="fail where there is no GPU that works")
    parser.add_argument(
        "--minutes", type=_minutes, default=0.0, metavar="N", help="repeat for so long (default: one round)"
    )
    parser.add_argument(
        "--json", type=target, metavar="FILE", help="write rows, findings and verdict there; - is stdout"
    )
    parser.epilog = epilog(
        {
            "vecadd check": "against theory and probes of the same run: half a minute",
            "vecadd check --require-gpu --minutes 30 --json check.json": "to accept a machine with a GPU",
            "vecadd check --expect check.json": "later: does it still deliver that",
        },
        {
            0: "passed",
            1: "failed, or an error",
            2: "could not be asked: a wrong option, or a file that is missing or of another kind",
            130: "interrupted; whole rounds are shown and written",
        },
    )


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints, writes; returns the exit status: 0 for a machine that passes, 1 for one that does not, 130 when
    interrupted. Raises UnaskableError for a file that cannot be read or is of another kind."""
    files = [_expected(path) for path in arguments.expect]
    conditions = machine.conditions_now()  # before CUDA starts here, or this process counts as another on the GPU
    found = info()
    measured, rounds, interrupted = Measured(), 0, False
    end = time.monotonic() + 60 * arguments.minutes
    try:
        with status_line("check") as tell:
            while rounds == 0 or time.monotonic() < end:
                measure.round_of(found, measured, tell)
                rounds += 1
    except KeyboardInterrupt:  # the rounds before it count
        if rounds == 0:
            raise
        interrupted = True
    for file in files:
        file.expect(found, measured)
    expected.of_machine(found.gpus, measured)
    rows = list(measured.rows.values())
    conditions = machine.conditions_since(conditions)
    noted = findings.of(found, conditions, rows)
    if arguments.require_gpu and not found.gpus:
        noted.append(Finding(f"no GPU, which --require-gpu asks for: {found.gpu_reason}", fails=True))
    passed = not any(row.passed is False for row in rows) and not any(finding.fails for finding in noted)
    if arguments.json is not None:
        probed = measured.limits.get(0, {})
        meta = machine.meta(found, conditions, method=METHOD, limits=probed, rounds=rounds, interrupted=interrupted)
        _write(arguments.json, meta, rows, noted, passed)
    screen = Screen(sys.stderr if arguments.json == STDOUT else None)
    _show(screen, found, rows, noted, rounds, passed, files)
    if interrupted:
        screen.say(f"interrupted: whole rounds that count: {rounds}")
        return INTERRUPTED
    return 0 if passed else 1


def _expected(path: Path) -> expected.File:
    try:
        return expected.of_file(path)
    except OSError as error:
        raise UnaskableError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UnaskableError(str(error)) from error


def _write(path: Path | str, meta: dict[str, Any], rows: Sequence[Row], noted: Sequence[Finding], passed: bool) -> None:
    content = {
        "meta": meta | {"tolerances": dict(expected.TOLERANCES), "shares": dict(expected.SHARES)},
        "rows": [row.as_dict() for row in rows],
        "findings": [{"text": finding.text, "fails": finding.fails} for finding in noted],
        "verdict": "passed" if passed else "failed",
    }
    results.save(path, content)


def _show(
    screen: Screen,
    found: Info,
    rows: Sequence[Row],
    noted: Sequence[Finding],
    rounds: int,
    passed: bool,
    files: Sequence[expected.File],
) -> None:
    screen.show([tables.table(rows, rounds)])
    here, failed = machine.name(found), [row.title for row in rows if row.passed is False]
    screen.say(
        *([] if found.gpus else [f"host rows only: {found.gpu_reason}"]),
        *(f"{file.path} is of {file.machine}, this machine is {here}" for file in files if file.machine != here),
        *(f"{row.title} failed: {row.error}" for row in rows if row.error),
        *(f"{'found' if finding.fails else 'note'}: {finding.text}" for finding in noted),
        "passed" if passed else f"failed: {', '.join(failed) or 'see what was found'}",
    )


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 7 * 24 * 60:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes up to a week")
    return value
