"""What the commands share: exit statuses, help, files that they write, terminals, and packages that may be missing."""

import importlib.util
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill, shorten
from typing import TextIO

# Which vecadd this is.

_PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"  # in a source tree alone


def package_version(project: Path = _PROJECT) -> str:
    """vecadd's version: the source tree's where Python runs it from one, else the installed one; "unknown" where
    neither is there."""
    from importlib.metadata import PackageNotFoundError, version

    if project.is_file():
        import tomllib

        about = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {})
        if about.get("name") == "vecadd":
            return str(about["version"])
    try:
        return version("vecadd")
    except PackageNotFoundError:
        return "unknown"


# Unknown names.


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """ "no rung is called 'nave'; did you mean naive?", or all known names where none is like the given one."""
    known = list(known)
    near = get_close_matches(given.lower(), known, cutoff=0.7)
    advice = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    return f"no {what} is called {given!r}; {advice}"


# What a terminal can show: its columns, its colours, and one line that says what is done now.

WIDTH = 80  # of a terminal that does not say
_LEFT_OUT = " ..."


def terminal_columns(file: TextIO) -> int | None:
    """How many columns the file's terminal has; None where it is no terminal. COLUMNS says otherwise."""
    if not _is_terminal(file):
        return None
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) else os.get_terminal_size(file.fileno()).columns or WIDTH


def controllable(file: TextIO) -> bool:
    """Whether control sequences do what they should there."""
    return _is_terminal(file) and os.environ.get("TERM") != "dumb"


def _is_terminal(file: TextIO) -> bool:
    """What a program has put in the place of stderr may have no more than write()."""
    return hasattr(file, "isatty") and file.isatty()


def coloured(file: TextIO) -> bool:
    """Whether text may be coloured there: see no-color.org."""
    return controllable(file) and not os.environ.get("NO_COLOR")


def writable(text: str, file: TextIO) -> str:
    """The text, with an escape (\\udcff) for each character that the file's encoding lacks: a file's name may have
    bytes that are no UTF-8."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def say(line: str) -> None:
    """On stderr; nothing where that takes nothing. An exit status then speaks alone, and the interpreter's own for a
    full disk or a reader that has left would be one that some commands have for a verdict."""
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


@contextmanager
def status_line(name: str) -> Iterator[Callable[[str], None]]:
    """Gives a function that shows what is done now. Its text is in one line of stderr's terminal until the next
    text replaces it or the work ends; without a terminal nothing is shown. What does not fit is left out by words."""
    if not controllable(sys.stderr):
        yield lambda what: None
        return

    def tell(what: str) -> None:
        width = max((terminal_columns(sys.stderr) or WIDTH) - 1, len(_LEFT_OUT))
        text = shorten(f"{name}: {what}", width, placeholder=_LEFT_OUT)
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# The command line

STDOUT = "-"  # as the name of a file that is to be written

LEAST = 5.0  # percent: a smaller difference is of no interest

_LINKS = 40  # that a path may lead through, as Linux has it

USAGE_ERROR, INTERRUPTED = 2, 130  # exit statuses; the second by the shells' convention for SIGINT

STATUSES: Mapping[int, str] = {
    0: "done",
    1: "an error, which one line on stderr says",
    USAGE_ERROR: "wrong usage",
    INTERRUPTED: "interrupted",
}


class UsageError(ValueError):
    """What was asked cannot be begun: exit status 2. Raised before anything is measured or written."""


def epilog(examples: Mapping[str, str], statuses: Mapping[int, str] = STATUSES) -> str:
    """The end of a command's help: each example above what it does, and the exit statuses."""
    width = max(get_terminal_size().columns - 2, 11)  # as argparse has it
    lines = ["examples:"]
    for example, meaning in examples.items():
        lines += [f"  {example}", fill(meaning, width, initial_indent=" " * 6, subsequent_indent=" " * 6)]
    lines += ["", "exit status:"]
    for status, meaning in {**STATUSES, **statuses}.items():
        lines.append(fill(meaning, width, initial_indent=f"  {status:<4}", subsequent_indent=" " * 6))
    return "\n".join(lines)


def target(text: str) -> Path | str:
    """A file to write, whose folder exists and may be written: checked before the run, not after it. "-" stays as it
    is: stdout."""
    if text == STDOUT:
        return text
    path = _named(text)
    if not path.parent.is_dir():
        raise ArgumentTypeError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into")
    if path.is_dir():
        raise ArgumentTypeError(f"{text!r} is a folder; name a file in it")
    if descriptor(path) is not None:
        if not path.exists():
            raise ArgumentTypeError(f"nothing is open at {text!r}")
        return path
    place = path.resolve()  # of a link: what it points to is replaced
    if (place.is_file() or not place.exists()) and not os.access(place.parent, os.W_OK):
        raise ArgumentTypeError(f"the folder {str(place.parent)!r} may not be written: name a file in another")
    return path


def _named(text: str) -> Path:
    """The path, which need not exist. Raises ArgumentTypeError where the system cannot look it up: a name that is too
    long, a link to itself."""
    path = Path(text)
    try:
        path.resolve()
        path.exists()
    except (OSError, RuntimeError) as error:  # of pathlib, before 3.13: RuntimeError for a link to itself
        raise ArgumentTypeError(f"{text!r}: {getattr(error, 'strerror', None) or error}") from error
    return path


def descriptor(path: Path) -> int | None:
    """The descriptor of this process that the path names, as /dev/stdout and /dev/fd/3 do; None where it names none.

    What is open there may be a file of the caller's, such as the log of all it runs: it is written to, not replaced.
    """
    for _ in range(_LINKS):
        named = re.fullmatch(rf"/(?:dev|proc/(?:self|{os.getpid()}))/fd/(\d+)", str(path.absolute()))
        if named:
            return int(named[1])
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def refuse_inputs(targets: Mapping[str, Path | str | None], read: Iterable[Path]) -> None:
    """Raises UsageError where one of these options, by their names, is to write to a file that is read."""
    inputs = {path.resolve() for path in read}
    for name, path in targets.items():
        if path is not None and path != STDOUT and Path(path).resolve() in inputs:
            raise UsageError(f"--{name} {path} is one of the files that are read: name another")


def refuse_shared(targets: Mapping[str, Path | str | None]) -> None:
    """Raises UsageError where two of these options, by their names, are to write to stdout or to one file: neither
    could be read then."""
    given = {f"--{name}": path for name, path in targets.items() if path is not None}
    *first, last = given or [""]
    options = f"{', '.join(first)} and {last}"
    if list(given.values()).count(STDOUT) > 1:
        raise UsageError(f"only one of {options} can be -, which is stdout")
    paths = [Path(path) for path in given.values() if path != STDOUT]
    files = [path.resolve() for path in paths if descriptor(path) is None]
    files = [path for path in files if path.is_file() or not path.exists()]  # a device or a pipe may get them all
    if len(set(files)) < len(files):
        raise UsageError(f"{options} name one file: give each its own")


def folder(text: str) -> Path:
    """A folder to write into, which need not be there: that it can be made, and files in it, is checked before the run,
    not after it."""
    if text == STDOUT:
        raise ArgumentTypeError("- means standard output, which takes no folder: name one; ./- means one called -")
    path = _named(text)
    place = next(each for each in (path, *path.parents) if os.path.lexists(each))  # "." or "/" at last
    if not place.exists():
        raise ArgumentTypeError(f"{str(place)!r} is a link that leads nowhere; name another folder")
    if not place.is_dir():
        raise ArgumentTypeError(f"{str(place)!r} is a file; name {'a' if place == path else 'another'} folder")
    if not os.access(place, os.W_OK):
        raise ArgumentTypeError(f"the folder {str(place)!r} may not be written: name another")
    return path


def add_comparison_options(parser: ArgumentParser) -> None:
    """What the commands share that compare figures: the smallest difference of interest, and files to write."""
    parser.add_argument(
        "--least",
        type=percent,
        default=LEAST,
        metavar="PERCENT",
        help=f"smallest difference of interest (default: {LEAST:g})",
    )
    parser.add_argument("--json", type=target, metavar="FILE", help="write all that was found there; - is stdout")
    parser.add_argument("--html", type=target, metavar="PAGE", help="write a page there, which needs no network")


def percent(text: str) -> float:
    """A share that an option gives in percent."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 100:
        raise ArgumentTypeError(f"{text!r} is not a number of percent above 0 and below 100")
    return value


# Packages that only some of vecadd's users need.


def need(what: str, extras: Mapping[str, str], error: type[Exception] = ImportError) -> None:
    """Raises an error where a package is not installed, which says what needs it and how to get it. ``extras`` has the
    packages, and which extra brings each; none is imported. A command raises UsageError, before it begins."""
    missing = [package for package in extras if importlib.util.find_spec(package) is None]
    if missing:
        names = ",".join(dict.fromkeys(extras[package] for package in missing))
        raise error(f"{what} needs {' and '.join(missing)}: pip install 'vecadd[{names}]'")
