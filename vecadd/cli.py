"""The command line: ``vecadd`` and a command of COMMANDS below, also as ``python -m vecadd``.

Exit status: 0, 1 for an error (one line on stderr), 2 for what cannot be asked, 130 when interrupted.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from vecadd import add_command, check, compare, fleet, notebooks_command, profile, report, run_command, tune
from vecadd._command import INTERRUPTED, UNASKABLE, UnaskableError, epilog
from vecadd._names import unknown
from vecadd._version import package_version
from vecadd.bench import command as bench
from vecadd.info import info
from vecadd.judge import command as judge


@dataclass(frozen=True)
class Command:
    """A subcommand: ``run`` gives the exit status."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    program_begins: Callable[[Sequence[str]], int] | None = None  # of a command whose last words are a program's


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that the arguments name and gives its exit status. An error is one line on stderr, and 1."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: `vecadd info >&-`
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False))
    parsed = _parsed(sys.argv[1:] if arguments is None else arguments)
    command: Command = parsed.command
    try:
        status = command.run(parsed)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print(f"vecadd {command.name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # `vecadd info | head`: the reader has left, and the interpreter must not complain at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UnaskableError as error:
        print(f"vecadd {command.name}: {error}", file=sys.stderr)
        return UNASKABLE
    except (ArithmeticError, OSError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        print(f"vecadd {command.name}: {_words(error)}", file=sys.stderr)
        return 1


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


class _CommandParser(argparse.ArgumentParser):
    """A parser that knows which option may have been meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As `argparse` has it; an option that there is not is an error here, ahead of all others."""
        options = re.findall(r"^  (?:-\w.*, )?(--[a-z-]+)", self.format_help(), re.MULTILINE)
        for given in takewhile(lambda given: given != "--", args):
            name = given.partition("=")[0]
            if name.startswith("--") and not any(option.startswith(name) for option in options):
                self.error(unknown("option", name, options))
        return super().parse_known_args(args, namespace)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser, names = _parser(), [command.name for command in COMMANDS]
    if arguments and not arguments[0].startswith("-") and arguments[0] not in names:
        parser.error(unknown("command", arguments[0], names))
    command = next((command for command in COMMANDS if arguments and command.name == arguments[0]), None)
    if command is None or command.program_begins is None:
        return parser.parse_args(arguments)
    own = 1 + command.program_begins(arguments[1:])
    return parser.parse_args(arguments[:own], argparse.Namespace(program=list(arguments[own:])))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vecadd", description="c = a + b at the speed of memory")
    parser.add_argument("--version", action="version", version=f"vecadd {package_version()}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=_CommandParser)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.help,
            description=command.help,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(sub)
        sub.set_defaults(command=command)
    return parser


def _info_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON, sizes in bytes")
    parser.epilog = epilog({"vecadd info --json | jq .gpus": "what a script needs to know of the GPUs"})


def _info(arguments: argparse.Namespace) -> int:
    found = info()
    print(json.dumps(found.as_dict(), indent=1) if arguments.json else found)
    return 0


COMMANDS = (
    Command("info", "what this machine and this build have", _info_arguments, _info),
    Command("bench", "how fast this machine adds, against what its memory allows", bench.add_arguments, bench.run),
    Command("judge", "whether an addition of your own is right, and where it stands", judge.add_arguments, judge.run),
    Command("profile", "what a profiler says of rungs, side by side", profile.add_arguments, profile.run),
    Command("check", "whether this machine does what it should: an acceptance test", check.add_arguments, check.run),
    Command("fleet", "which machines of many are unlike their peers", fleet.add_arguments, fleet.run),
    Command("report", "a page of what a machine does, from its result files", report.add_arguments, report.run),
    Command("compare", "what is faster or slower than in an earlier run", compare.add_arguments, compare.run),
    Command(
        "tune", "search for what is fastest on this machine, and keep it for additions", tune.add_arguments, tune.run
    ),
    Command(
        "notebooks",
        "write the notebooks into a folder, to open them in Jupyter",
        notebooks_command.add_arguments,
        notebooks_command.run,
    ),
    Command(
        "add", "add two .npy files or Zarr arrays of any size into a third", add_command.add_arguments, add_command.run
    ),
    Command(
        "run",
        "run a Python program with vecadd in NumPy's own addition",
        run_command.add_arguments,
        run_command.run,
        run_command.program_begins,
    ),
)
