"""The command line: ``vecadd`` and a command of COMMANDS below, also as ``python -m vecadd``.

A command's module is imported when the command is named, so that no command waits for the modules of the others.

Exit status: 0, 1 for an error (one line on stderr; 2 where 1 is a verdict), 2 for what cannot be asked, 130 when
interrupted.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import takewhile
from types import ModuleType
from typing import Any

from vecadd import _core
from vecadd._command import INTERRUPTED, USAGE_ERROR, UsageError, package_version, say, unknown


@dataclass(frozen=True)
class Command:
    """A subcommand. Its module has ``add_arguments``, which takes the command's parser, and ``run``, which takes what
    was parsed and gives the exit status. Where the last words are a program's, ``program_begins`` says which begins it.
    ``judges``: its exit status 1 is a verdict, so that an error has another. ``measures``: it needs the laboratory,
    which a build with VECADD_LAB=0 is without.
    """

    name: str
    help: str
    module: str
    judges: bool = False
    measures: bool = False

    def code(self) -> ModuleType:
        """Its module."""
        return import_module(self.module)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that the arguments name and gives its exit status. An error is one line on stderr, and 1, or 2
    of a command that judges."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: `vecadd info >&-`
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False))
    name, failed = "vecadd", 1
    try:
        given = sys.argv[1:] if arguments is None else arguments
        if command := _command(given):
            name = f"vecadd {command.name}"
            failed = USAGE_ERROR if command.judges else 1
        parsed = _parsed(given)
        if parsed.command.measures and not getattr(parsed, "schema", False):  # which only prints a file
            _core.rungs()  # which says so without the laboratory
        status: int = parsed.command.code().run(parsed)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        say(f"{name}: interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # `vecadd info | head`: the reader has left
        _drop_output()
        return failed
    except UsageError as error:
        say(f"{name}: {error}")
        return USAGE_ERROR
    except (ArithmeticError, OSError, MemoryError, RuntimeError, TypeError, ValueError, Warning) as error:
        say(f"{name}: {_words(error)}")
        _drop_output()
        return failed


def _drop_output() -> None:
    """Drops what stdout does not take. The interpreter would complain of it at exit, with a status of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


class _CommandParser(argparse.ArgumentParser):
    """A parser that knows which option may have been meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As `argparse` has it; an unknown option is an error here, before all other errors."""
        plain = re.sub(r"\x1b\[[0-9;]*m", "", self.format_help())  # Python 3.14 colours it on a terminal
        options = re.findall(r"^  (?:-\w.*, )?(--[a-z-]+)", plain, re.MULTILINE)
        for given in takewhile(lambda given: given != "--", args):
            name = given.partition("=")[0]
            if name.startswith("--") and not any(self._means(name, option) for option in options):
                self.error(unknown("option", name, options))
        return super().parse_known_args(args, namespace)

    def _means(self, name: str, option: str) -> bool:
        return option == name or (self.allow_abbrev and option.startswith(name))


def _command(arguments: Sequence[str]) -> Command | None:
    """The command that they begin with."""
    return next((command for command in COMMANDS if [command.name] == list(arguments[:1])), None)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    command = _command(arguments)
    parser = _parser(command)
    if command is None and arguments and not arguments[0].startswith("-"):
        parser.error(unknown("command", arguments[0], [command.name for command in COMMANDS]))
    if command is None or not hasattr(command.code(), "program_begins"):
        return parser.parse_args(arguments)
    own = 1 + command.code().program_begins(arguments[1:])
    return parser.parse_args(arguments[:own], argparse.Namespace(program=list(arguments[own:])))


def _parser(named: Command | None) -> argparse.ArgumentParser:
    """With the arguments of the named command alone."""
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
        if command is named:
            command.code().add_arguments(sub)
            sub.set_defaults(command=command)
    return parser


COMMANDS = (
    Command("info", "what this machine and this build have", "vecadd._machine"),
    Command(
        "bench", "how fast this machine adds, against what its memory allows", "vecadd.bench.command", measures=True
    ),
    Command(
        "judge",
        "whether an addition of your own is right, and how fast it is",
        "vecadd.judge.command",
        judges=True,
        measures=True,
    ),
    Command("profile", "what a profiler says of rungs, side by side", "vecadd.profile.command", measures=True),
    Command(
        "check",
        "whether this machine does what it should: an acceptance test",
        "vecadd.check.command",
        judges=True,
        measures=True,
    ),
    Command("fleet", "which machines of many are unlike their peers", "vecadd.fleet.command", judges=True),
    Command("compare", "what is faster or slower than in an earlier run", "vecadd.compare", judges=True),
    Command(
        "tune", "find the fastest launch configs of each GPU, and keep them for additions", "vecadd.tune", measures=True
    ),
    Command(
        "notebooks",
        "write the notebooks into a folder, to open them in Jupyter",
        "vecadd.notebooks_command",
        measures=True,
    ),
    Command("add", "add two .npy files or Zarr arrays of any size into a third", "vecadd.add_command"),
    Command("run", "run a Python program with vecadd in NumPy's own addition", "vecadd.run_command"),
)
