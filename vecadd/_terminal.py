"""What a terminal can show: its columns, its colours, and one line that says what is done now."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from textwrap import shorten
from typing import TextIO

WIDTH = 80  # of a terminal that does not say
_LEFT_OUT = " ..."


def columns(file: TextIO) -> int | None:
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
    """Gives a function that shows what is done now. Its text stands in a line of the terminal of stderr, until the next
    text replaces it or the work ends; without a terminal nothing is shown. What does not fit is left out by words."""
    if not controllable(sys.stderr):
        yield lambda what: None
        return

    def tell(what: str) -> None:
        width = max((columns(sys.stderr) or WIDTH) - 1, len(_LEFT_OUT))
        text = shorten(f"{name}: {what}", width, placeholder=_LEFT_OUT)
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
