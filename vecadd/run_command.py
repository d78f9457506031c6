"""`vecadd run`: a program unchanged, with vecadd in NumPy's addition."""

import argparse
import atexit
import builtins
import os
import pkgutil
import runpy
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NoReturn

from vecadd import why
from vecadd._command import INTERRUPTED, UsageError, epilog, say, status_line, target
from vecadd._install import Installation, install


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments, those before the program."""
    parser.usage = (
        "vecadd run [-h] [--allocator] [--count] [--why [--install] [--json FILE]]\n"
        "                  (SCRIPT | -m MODULE | -c CODE | -) [ARGUMENT ...]"
    )
    parser.allow_abbrev = False  # program_begins knows whole names
    parser.add_argument(
        "--allocator", action="store_true", help="keep the memory of large arrays for the next ones, in the main thread"
    )
    parser.add_argument("--count", action="store_true", help="at the end, print on stderr what vecadd added")
    parser.add_argument(
        "--why",
        action="store_true",
        help="print at the end, on stderr, a receipt of the program's additions above 64 KiB: what each line took, "
        "what this machine allows, why it took longer, and how to fix it. The program runs as it is: without vecadd in "
        "NumPy's addition",
    )
    parser.add_argument("--install", action="store_true", help="with --why: also put vecadd into NumPy's addition")
    parser.add_argument("--json", type=target, metavar="FILE", help="with --why: write the receipt there; - is stdout")
    parser.epilog = epilog(
        {
            "vecadd run train.py --epochs 3": "train.py's NumPy adds by vecadd where that is faster",
            "vecadd run --why train.py": "which of its additions are slow, why, and how to fix them",
            "vecadd run --count -m pytest tests": "says at the end how many elements vecadd added",
        },
        {1: "the program raised an exception; else the status is the program's"},
    )


def program_begins(words: Sequence[str]) -> int:
    """Where the program begins among the words after ``vecadd run``: what follows is the program's own."""
    for at, word in enumerate(words):
        begins = not word.startswith("-") or word in ("-", "--") or word.startswith(("-m", "-c"))
        if begins and (at == 0 or words[at - 1] != "--json"):
            return at
    return len(words)


def run(arguments: argparse.Namespace) -> NoReturn:
    """Runs the program as Python would run it, and ends with its exit status."""
    words = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if words and words[0].startswith(("-m", "-c")) and len(words[0]) > 2:
        words = [words[0][:2], words[0][2:], *words[1:]]
    if words in ([], ["-m"], ["-c"]):
        raise UsageError("name a script, a module after -m, or code after -c")
    if words[0] not in ("-m", "-c", "-") and not Path(words[0]).exists():
        raise UsageError(f"there is no file {words[0]!r}")
    if words[0] == "-" and sys.stdin is None:
        raise UsageError("standard input is closed: there is no program to read from it")
    with_install = arguments.install or not arguments.why
    if not arguments.why and (arguments.install or arguments.json is not None):
        raise UsageError("--install and --json are for --why")
    if not with_install and (arguments.allocator or arguments.count):
        raise UsageError("--allocator and --count are for vecadd in NumPy's addition: give --install too")
    # What is registered first runs last: after the program's threads and its own handlers.
    if arguments.why:
        folder = Path.cwd() if isinstance(arguments.json, Path) else Path()  # a folder that is gone has no cwd
        atexit.register(_print_receipt, os.getpid(), arguments.json, folder)
    if with_install:
        installation = install(allocator=arguments.allocator)
        if arguments.count:
            atexit.register(_print_count, installation)
    if arguments.why:
        _start_recording()
    failure: BaseException | None = None
    try:
        _run_program(words)
    except SystemExit:
        raise
    except BaseException as error:
        failure = error  # shown outside of this block, where no exception is being handled
    # The interpreter flushes the program's output, which the program may have closed.
    sys.exit(None if failure is None else _show(failure))


def _has_stderr() -> bool:
    """Whether the program has left it open."""
    return sys.stderr is not None and not getattr(sys.stderr, "closed", False)


def _start_recording() -> None:
    try:
        why.start()
    except RuntimeError as error:
        atexit.unregister(_print_receipt)
        raise UsageError(str(error)) from None


def _print_count(installation: Installation) -> None:
    if _has_stderr():
        say(f"vecadd run: {installation.elements} elements added in {installation.calls} calls of NumPy's loops")


def _print_receipt(process: int, file: Path | str | None, folder: Path) -> None:
    """``folder``: where the file's name was given. The program may have changed to another."""
    if os.getpid() != process:  # a forked child, whose parent prints
        return
    if not _has_stderr():
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # to the end of the process
    try:
        with status_line("why") as tell:
            receipt = why.stop(tell)
    except RuntimeError as error:  # the program has ended it
        say(f"vecadd run: there is no receipt: {error}")
        return
    why_not: object = None
    if file is not None:  # first: stderr may be a full disk, or of a reader that has left
        try:
            receipt.save(folder / file if isinstance(file, Path) else file)
        except (OSError, ValueError) as error:  # ValueError: the program has closed stdout
            why_not = getattr(error, "strerror", None) or error
    with suppress(OSError, ValueError):
        receipt.show()
    if why_not is not None:
        say(f"vecadd run: {file}: the receipt is not written: {why_not}")


def _show(error: BaseException) -> int:
    """Shows an exception that ended the program, as the interpreter does, and gives the exit status.

    The program may have put a hook of its own in the interpreter's place. What that raises is shown beside the
    exception; SystemExit of it gives the status.
    """
    failure: BaseException | None = None
    trace = _of_program(error)
    try:
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    except SystemExit:
        raise
    except BaseException as of_hook:
        failure = of_hook
    if failure is not None:
        print("Error in sys.excepthook:", file=sys.stderr)
        of_hook_alone = _of_program(failure)
        sys.__excepthook__(type(failure), failure.with_traceback(of_hook_alone), of_hook_alone)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, trace)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _of_program(error: BaseException) -> TracebackType | None:
    """Its traceback without the frames of this module."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _run_program(words: list[str]) -> None:
    """Runs it in a new ``__main__``, which stays: the program's threads and exit handlers may outlive this call."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    names = vars(main)
    names.update(__annotations__={}, __builtins__=builtins, __loader__=BuiltinImporter)
    sys.argv = words
    if words[0] == "-m":
        sys.argv = ["-m", *words[2:]]
        _search_first(Path.cwd())
        runpy._run_module_as_main(words[1])  # type: ignore[attr-defined]  # public functions take __main__ away again
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        _search_first("")
        exec(compile(words[1], "<string>", "exec", dont_inherit=True), names)
    elif words[0] == "-":
        _search_first("")
        names.update(__file__="<stdin>", __cached__=None)
        exec(compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True), names)
    elif pkgutil.get_importer(words[0]):  # a folder or a zip file, with a __main__.py
        sys.path[: not sys.flags.safe_path] = [str(Path(words[0]).absolute())]
        runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]
    else:
        _search_first(Path(words[0]).resolve().parent)
        path = str(Path(words[0]).absolute())
        loader = (SourcelessFileLoader if path.endswith(".pyc") else SourceFileLoader)("__main__", path)
        names.update(__file__=path, __cached__=None, __loader__=loader)
        is_source = isinstance(loader, SourceFileLoader)  # its get_code would leave a .pyc file behind
        code: Any = (
            compile(loader.get_data(path), path, "exec", dont_inherit=True)
            if is_source
            else loader.get_code("__main__")
        )
        exec(code, names)


def _search_first(folder: Path | str) -> None:
    """Puts the folder where Python has a script's: before the others, in place of this command's own."""
    if not sys.flags.safe_path:
        sys.path[0] = str(folder)
