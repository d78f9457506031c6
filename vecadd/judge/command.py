"""The command ``vecadd judge``: its options, what it prints, its exit status."""

import argparse
import sys
from pathlib import Path

from vecadd._command import STDOUT, UsageError, epilog, status_line, target
from vecadd.bench import machine, options
from vecadd.figures import write_json
from vecadd.info import info
from vecadd.judge import run as judgement
from vecadd.judge import verdict
from vecadd.judge.verdict import Verdict
from vecadd.tables import Screen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd judge` takes."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a .py or .cu file with the function")
    parser.add_argument("--function", default="add", metavar="NAME", help="the function's name (default: add)")
    parser.add_argument(
        "--dtype", type=options.parse_dtype, default="float32", metavar="DTYPE", help="default: float32"
    )
    parser.add_argument(
        "--sizes",
        type=options.parse_sizes,
        metavar="N,...",
        help="elements: 2^20, 1e6, 1000 (default: 2^16,2^20,2^24,2^28)",
    )
    parser.add_argument(
        "--arrays",
        choices=judgement.ARRAYS,
        help="whose arrays a .py file takes (default: torch's or CuPy's where it imports torch, triton or cupy)",
    )
    parser.add_argument(
        "--alignment", type=int, metavar="BYTES", help="alignment of the operands (default: one element)"
    )
    parser.add_argument(
        "--rounds", type=int, default=verdict.ROUNDS, metavar="N", help=f"timed calls at each size ({verdict.ROUNDS})"
    )
    parser.add_argument(
        "--timeout",
        type=options.parse_seconds,
        default=judgement.TIMEOUT,
        metavar="S",
        help=f"seconds that a call or a compiler may take ({judgement.TIMEOUT:.0f})",
    )
    parser.add_argument("--json", type=target, metavar="FILE", help="write the verdict there; - is stdout")
    parser.epilog = epilog(
        {
            "vecadd judge kernel.cu": 'its extern "C" function add: a kernel, or a function that launches some',
            "vecadd judge triton_add.py --sizes 2^24,2^28": "its function add(a, b, out) of torch tensors",
            "vecadd judge mine.py --function fast --dtype float16 --json verdict.json": "another name and dtype",
        },
        {
            0: "accepted",
            1: "rejected: one line says why",
            2: "could not be judged: the file, its function, a GPU, a compiler or a library is missing",
        },
    )
    parser.description = (
        f"{parser.description}\n\nThe file's code runs in a process of its own with your rights. That is no sandbox: "
        "judge only code that\nyou would run."
    )


def run(arguments: argparse.Namespace) -> int:
    """Judges, prints, writes; returns the exit status: 0 accepted, 1 rejected. Raises what `judge` raises
    for what cannot be judged, and UsageError."""
    if not arguments.file.is_file():  # before what else is missing
        raise UsageError(f"{arguments.file}: No such file")
    conditions = machine.conditions_now()
    found = info()
    if not found.gpus:
        raise UsageError(f"there is no GPU to judge on: {found.gpu_reason}")
    with status_line("judge") as tell:
        judged = judgement.judge(
            arguments.file,
            arguments.dtype,
            arguments.sizes,
            function=arguments.function,
            arrays=arguments.arrays,
            alignment=arguments.alignment,
            rounds=arguments.rounds,
            timeout=arguments.timeout,
            tell=tell,
        )
    if arguments.json is not None:
        meta = machine.meta(found, machine.conditions_since(conditions), method=verdict.METHOD)
        write_json(arguments.json, {"meta": meta, "verdict": judged.as_dict()})
    _show(Screen(sys.stderr if arguments.json == STDOUT else None), judged)
    return 0 if judged.accepted else 1


def _show(screen: Screen, judged: Verdict) -> None:
    if judged.sizes:
        screen.show([judged.table()])
    screen.say(*(f"checked: {line}" for line in judged.checked), *judged.sentences())
    if judged.accepted:
        screen.say(f"method: {verdict.METHOD}")
