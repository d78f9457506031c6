"""`vecadd add`: two .npy files into a third."""

import argparse
import sys
import time
import warnings
from pathlib import Path

from vecadd._command import epilog
from vecadd._terminal import status_line
from vecadd.bench.show import show_rate, show_seconds
from vecadd.files import add_files

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("a", metavar="A.npy")
    parser.add_argument("b", metavar="B.npy")
    parser.add_argument("-o", "--out", metavar="C.npy", required=True, help="may be one of the inputs")
    parser.add_argument(
        "--no-sync",
        dest="sync",
        action="store_false",
        help="do not wait until the sum is on the disk (fsync): a crash of the machine may then leave C.npy damaged",
    )
    parser.epilog = epilog(
        {
            "vecadd add a.npy b.npy -o c.npy": "c.npy takes its name when it is complete and on the disk",
            "vecadd add a.npy b.npy -o a.npy": "adds b to a",
        }
    )


def run(arguments: argparse.Namespace) -> int:
    """Adds the files, and says on standard error how many bytes were read and written in which time."""
    a, b, out = arguments.a, arguments.b, arguments.out
    with warnings.catch_warnings(), status_line(f"{a} + {b}") as tell:
        # Without the line of our code, which does not help the command's user.
        warnings.showwarning = lambda message, *place: _say(f"warning: {message}")
        moved = Path(a).stat().st_size + Path(b).stat().st_size
        begun = time.perf_counter()
        add_files(a, b, out, sync=arguments.sync, progress=lambda done, size: tell(f"{100 * done // size} %"))
        seconds = time.perf_counter() - begun
        moved += Path(out).stat().st_size
    written = "and synced to the disk" if arguments.sync else "without a wait for the disk"
    _say(
        f"{_show_bytes(moved)} in {show_seconds(seconds)}, {show_rate(moved / seconds / 1e9)} GB/s "
        f"({a} and {b} read, {out} written {written})"
    )
    return 0


def _say(text: str) -> None:
    print(f"vecadd add: {text}", file=sys.stderr)


def _show_bytes(count: int) -> str:
    scale, unit = next(((s, u) for s, u in _UNITS if count >= s), (1, "bytes"))
    return f"{count / scale:.3g} {unit}"
