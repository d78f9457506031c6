"""`%%why`: a cell of a notebook, and the receipt of its additions below it."""

import shlex
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from vecadd._command import target
from vecadd.why import noted
from vecadd.why.receipt import Receipt, stop

# What of a shell shows a cell's error; handlers of one's own for some errors would show them, too.
_SHOWING = ("showtraceback", "showsyntaxerror", "showindentationerror")
_HANDLED = "custom_exceptions"


def register(shell: Any) -> None:
    """Gives the shell the cell magic ``%%why``; a file's name behind it gets the receipt as JSON."""

    def why(line: str, cell: str) -> Receipt:
        file = _file(line)
        noted.start()
        try:
            with _unshown(shell) as errors:
                ran = shell.run_cell(cell)
        finally:
            receipt = stop()
        for error in errors:  # those that the cell went on after, as behind %run
            if error[1] not in (ran.error_before_exec, ran.error_in_exec):
                shell.showtraceback(error)
        wrong = _saved(receipt, file, line)
        if wrong or not ran.success:  # no cell that fails has a result to be shown
            import_module("IPython.display").display(receipt)
        if wrong and not ran.success:
            print(f"%%why: {wrong}", file=sys.stderr)
        ran.raise_error()
        if wrong:
            raise _usage_error(wrong)
        return receipt

    shell.register_magic_function(why, "cell", "why")


def unregister(shell: Any) -> None:
    """Takes it away again."""
    shell.magics_manager.magics["cell"].pop("why", None)


def _file(line: str) -> Path | str | None:
    """The file that the line names, if any: asked before the cell runs, which may change to another folder."""
    try:
        names = shlex.split(line)
        if len(names) > 1:
            raise ValueError(f"{len(names)} names are given")
    except ValueError as error:
        raise _usage_error(
            f"{line.strip()}: {error}; %%why takes the name of one file, in quotes where it has spaces, or none"
        ) from None
    if not names:
        return None
    try:
        file = target(names[0])
    except ArgumentTypeError as error:
        raise _usage_error(str(error)) from None
    return Path.cwd() / file if isinstance(file, Path) else file


@contextmanager
def _unshown(shell: Any) -> Iterator[list[Any]]:
    """The errors that the shell would show, as sys.exc_info() has them. The cell's own is shown where the cell around
    it fails by it, once and below the receipt."""
    own, errors = vars(shell), []

    def keep(error: Any = None, *arguments: Any, **options: Any) -> None:
        errors.append(error if isinstance(error, tuple) else sys.exc_info())

    silent = {**dict.fromkeys(_SHOWING, keep), _HANDLED: ()}
    before = {name: own[name] for name in silent if name in own}
    own.update(silent)
    try:
        yield errors
    finally:
        for name in silent:
            own.pop(name, None)
        own.update(before)


def _saved(receipt: Receipt, file: Path | str | None, line: str) -> str | None:
    """Writes the receipt; what is wrong and what to do where the file cannot be written."""
    try:
        if file is not None:
            receipt.save(file)
    except (OSError, ValueError) as error:  # ValueError: the cell has closed stdout
        why_not = getattr(error, "strerror", None) or error
        return f"{line.strip()}: the receipt is not written: {why_not}; name a file that can be written"
    return None


def _usage_error(message: str) -> Exception:
    """The shell shows it as one line."""
    error: Exception = import_module("IPython.core.error").UsageError(f"%%why: {message}")
    return error
