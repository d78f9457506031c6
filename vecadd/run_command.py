"""`vecadd run`: a program unchanged, with vecadd in NumPy's addition."""

import argparse
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from vecadd._command import UnaskableError, epilog
from vecadd._install import install


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments, those before the program."""
    parser.usage = "vecadd run [-h] [--allocator] [--count] [--least BYTES] (SCRIPT | -m MODULE) [ARGUMENT ...]"
    parser.add_argument(
        "--allocator", action="store_true", help="keep the memory of large arrays for the next ones, in the main thread"
    )
    parser.add_argument("--count", action="store_true", help="print at the end, on stderr, what vecadd added")
    parser.add_argument(
        "--least",
        type=int,
        metavar="BYTES",
        help="for tests: all threads add every run of so many bytes, whether they gain or not",
    )
    parser.epilog = epilog(
        {
            "vecadd run train.py --epochs 3": "train.py's NumPy adds by vecadd where that is faster",
            "vecadd run --count -m pytest tests": "says at the end how many elements vecadd added",
        },
        {1: "the program raised an exception; else the status is the program's"},
    )


def program_begins(words: Sequence[str]) -> int:
    """Where the program begins among the words behind ``vecadd run``: what follows is the program's own."""
    for at, word in enumerate(words):
        if (not word.startswith("-") or word == "-m") and words[at - 1 : at] != ["--least"]:
            return at
    return len(words)


def run(arguments: argparse.Namespace) -> int:
    """Runs the program as Python would run it: the exit status is its own."""
    if arguments.least is not None and arguments.least < 1:
        raise UnaskableError(f"--least takes bytes, 1 or more, not {arguments.least}")
    words = arguments.program
    if words in ([], ["-m"]):
        raise UnaskableError("name a script, or a module after -m")
    if words[0] != "-m" and not Path(words[0]).exists():
        raise UnaskableError(f"there is no file {words[0]!r}")
    installation = install(allocator=arguments.allocator, least=arguments.least)
    try:
        _run_program(words)
    except Exception:  # as the interpreter shows it; SystemExit and KeyboardInterrupt end this process by themselves
        traceback.print_exc()
        return 1
    finally:
        if arguments.count:
            print(
                f"vecadd run: {installation.elements} elements added in {installation.calls} calls of NumPy's loops",
                file=sys.stderr,
            )
    return 0


def _run_program(words: list[str]) -> None:
    if words[0] == "-m":
        sys.argv = words[1:]
        _search_first(Path.cwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = words
    if Path(words[0]).is_file():  # a folder with a __main__.py comes first by itself
        _search_first(Path(words[0]).resolve().parent)
    runpy.run_path(words[0], run_name="__main__")


def _search_first(folder: Path) -> None:
    """Puts the folder where Python has a script's: before the others, in place of this command's own."""
    if not sys.flags.safe_path:
        sys.path[0] = str(folder)
