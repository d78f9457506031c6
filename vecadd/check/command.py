"""The command ``vecadd check``: its options, what it prints, its exit status."""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from vecadd import _core
from vecadd._command import INTERRUPTED, USAGE_ERROR, UsageError, epilog, status_line, target
from vecadd._machine import Info
from vecadd.bench import machine
from vecadd.check import expected, findings, measure, soak
from vecadd.check import outputs as formats
from vecadd.check.measure import GROUPS, Measured
from vecadd.figures import Check, Figure, Outputs, Run
from vecadd.info import info
from vecadd.tables import Screen

METHOD = (
    "each figure once a round as vecadd bench measures it, medians of interleaved repeats, every sum of the first and "
    "the last repeat compared bit for bit with numpy.add's; what would fail the machine is measured three times, and "
    "the median of all rounds decides"
)
BOTH = "both"  # memories: the device's and the host's
EXIT_STATUSES = {"passed": 0, "failed": 1, "unknown": USAGE_ERROR}
FORMATS: Mapping[str, Callable[[Check], str]] = {
    "json": formats.as_json,
    "junit": formats.junit,
    "prometheus": formats.prometheus,
    "html": formats.page,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd check` takes."""
    parser.add_argument(
        "--expect",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="an earlier file of vecadd bench --json or vecadd check --json; repeat the option for a run of several "
        "files. A figure that it has and this machine cannot measure fails. Default, and for what it lacks: theory, "
        "probes of this run",
    )
    parser.add_argument("--require-gpu", action="store_true", help="fail without a working GPU")
    parser.add_argument(
        "--minutes", type=parse_minutes, default=0.0, metavar="N", help="repeat for N minutes (default: one round)"
    )
    parser.add_argument(
        "--soak",
        type=parse_minutes,
        default=0.0,
        metavar="MINUTES",
        help="then fill memory with patterns and compare it for that time; each pattern at least once",
    )
    parser.add_argument(
        "--soak-memory",
        choices=(BOTH, "device", "host"),
        help="with --soak: which memory to fill: the GPUs' free memory less a margin, half of the host's available "
        "memory, or both (default)",
    )
    for name, what in (
        ("json", "machine, findings and status (vecadd check --schema describes them)"),
        ("junit", "the findings as JUnit's XML, for CI"),
        ("prometheus", "the findings as Prometheus' text, for node_exporter's textfile collector"),
        ("html", "one page, which needs nothing else (pip install 'vecadd[fleet]')"),
    ):
        parser.add_argument(f"--{name}", type=target, metavar="FILE", help=f"write {what}; - is stdout")
    parser.add_argument(
        "--explain", action="store_true", help="say for each rate what a data sheet and other tools would show"
    )
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of --json, and exit")
    parser.epilog = epilog(
        {
            "vecadd check": "against theory and probes of the same run: half a minute",
            "vecadd check --require-gpu --minutes 30 --soak 30 --json check.json": "to accept a machine with a GPU",
            "vecadd check --expect check.json": "later: does it still deliver that",
        },
        {
            0: "passed",
            1: "failed",
            USAGE_ERROR: "could not run or judge: an error, a figure that could not be measured or was missed on a "
            "busy host, a wrong option, or a file that is missing or of another kind",
            130: "interrupted; whole rounds are shown and written",
        },
    )


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints, writes; returns the exit status: 0 for a machine that passes, 1 for one that does not, 2 for
    one of which nothing could be measured, 130 when interrupted. Raises OSError for a file that cannot be read,
    ValueError for one of another kind, UsageError for options that do not go together and a package that is
    missing."""
    if arguments.schema:
        print(formats.read_schema(), end="")
        return 0
    outputs = Outputs(arguments, *FORMATS)
    if arguments.soak_memory is not None and not arguments.soak:
        raise UsageError("--soak-memory is for --soak MINUTES, which is not given")
    files = [expected.read_expectations(path) for path in arguments.expect]
    conditions = machine.conditions_now()  # before CUDA starts here, or this process counts as another on the GPU
    here = info()
    if here.cpu.simd is None:  # every addition would fail, and so would the machine
        levels = ", ".join(here.cpu.simd_levels)
        raise UsageError(f'VECADD_SIMD is "{os.environ.get("VECADD_SIMD")}"; this machine and build have {levels}')
    with status_line("check") as tell:
        measured, rounds, interrupted = _measure_rounds(here, arguments.minutes, tell)
        for file in files:
            expected.expect_from_run(file, here, measured)
        expected.expect_from_theory(here.gpus, measured)
        more: list[Figure] = []
        try:
            if not interrupted:
                measure.repeat_failed(measured, tell)
            if arguments.soak and not interrupted:
                more, interrupted = soak.soak(len(here.gpus), arguments.soak, arguments.soak_memory or BOTH, tell)
        except KeyboardInterrupt:
            interrupted = True
    expected.expect_from_theory(here.gpus, measured)  # of figures that only a repeat has brought
    more = [*findings.find_topology(here, _read_gpu_facts(here), measured), *more]
    conditions = machine.conditions_since(conditions)
    found = findings.find_all(here, conditions, measured, require_gpu=arguments.require_gpu, rounds=rounds, more=more)
    meta = machine.meta(
        here, conditions, method=METHOD, limits=measured.limits.get(0, {}), rounds=rounds, interrupted=interrupted,
        tolerances=dict(expected.TOLERANCES), shares=dict(expected.SHARES),
    )  # fmt: skip
    check = formats.make_check(meta, formats.describe_machine_type(here), found, conditions)
    screen = outputs.screen
    try:
        outputs.write({name: partial(text, check) for name, text in FORMATS.items()})
    finally:
        _show(screen, here, check, rounds, files, arguments.explain)
    if interrupted:
        screen.say(f"interrupted: whole rounds that count: {rounds}")
        return INTERRUPTED
    return EXIT_STATUSES[check.status]


def _measure_rounds(here: Info, minutes: float, tell: Callable[[str], object]) -> tuple[Measured, int, bool]:
    """What the rounds of that many minutes have measured, how many they were, and whether they were interrupted."""
    measured, rounds = Measured(), 0
    end = time.monotonic() + 60 * minutes
    try:
        while rounds == 0 or time.monotonic() < end:
            measure.measure_round(here, measured, tell)
            rounds += 1
    except KeyboardInterrupt:  # the rounds before it count
        if rounds == 0:
            raise
        return measured, rounds, True
    return measured, rounds, False


def _read_gpu_facts(here: Info) -> list[dict[str, Any]]:
    try:
        return _core.gpu_facts() if here.gpus else []
    except RuntimeError:  # the GPU was lost on the way
        return []


def _show(screen: Screen, here: Info, check: Check, rounds: int, files: Sequence[Run], explain: bool) -> None:
    screen.show([formats.make_table((each for each in check.figures if each.sweep in GROUPS), rounds)])
    name, critical = machine.name(here), [figure.name for figure in check.figures if figure.fails]
    if explain:
        for figure in check.figures:
            normal = figure.more.get("normal", {})
            screen.say(*([f"{figure.name}:"] if normal else []), *(f"  {key}: {text}" for key, text in normal.items()))
    others = [(file.path, file.meta.get("machine", "unknown")) for file in files]
    screen.say(
        *([] if here.gpus else [f"host rows only: {here.gpu_reason}"]),
        *(f"{path} is of {other}, this machine is {name}" for path, other in others if other != name),
        *_list_problems(check.figures),
        f"failed: {', '.join(critical)}" if critical else check.status,
    )


def _list_problems(found: Sequence[Figure]) -> Iterator[str]:
    """Lines of what is not as it should be, the worst last, where a terminal shows it. What is unknown for one reason
    shares a line."""
    groups = defaultdict(list)
    for figure in found:
        if figure.severity == "unknown":
            groups[figure.next].append(figure)
    for next, group in groups.items():
        yield (
            f"unknown: {', '.join(each.name for each in group)}. Next: {next}"
            if len(group) > 1
            else _show_figure(group[0])
        )
    for severity in ("warning", "critical"):
        yield from (_show_figure(figure) for figure in found if figure.severity == severity)


def _show_figure(figure: Figure) -> str:
    return f"{figure.severity}: {figure.name}: {figure.meaning}" + (f" Next: {figure.next}" if figure.next else "")


def parse_minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 7 * 24 * 60:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes up to a week")
    return value
