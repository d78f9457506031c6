"""`vecadd add`: two .npy files into a third, or two Zarr arrays."""

import argparse
import re
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from vecadd._command import STDOUT, UsageError, epilog, need, status_line
from vecadd.files import add_files
from vecadd.tables import show_rate, show_seconds

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))

# Options that only Zarr arrays have, and what they are without.
_OF_STORES: dict[str, Any] = {"chunks": None, "shards": None, "compressor": "keep"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("a", metavar="A", help="a .npy file or a Zarr array: a folder, in a zip archive, or a URL")
    parser.add_argument("b", metavar="B", help="another of the same kind")
    parser.add_argument(
        "-o", "--out", metavar="C", required=True, help="the sum; for files it may be one of the inputs"
    )
    parser.add_argument(
        "--no-sync",
        dest="sync",
        action="store_false",
        help="do not wait until the sum is on the disk (fsync): a crash of the machine may then leave it damaged",
    )
    stores = parser.add_argument_group("Zarr arrays (pip install 'vecadd[fleet]')")
    stores.add_argument("--chunks", type=_extents, metavar="N,N", help="chunks of the sum (default: the operands')")
    stores.add_argument(
        "--shards", type=_extents, metavar="N,N", help="shards of the sum: several whole chunks in one object each"
    )
    stores.add_argument(
        "--compressor", metavar="NAME", default="keep", help="keep (the operand's), none, zstd, blosc or gzip"
    )
    parser.epilog = epilog(
        {
            "vecadd add a.npy b.npy -o c.npy": "c.npy takes its name when it is complete and on the disk",
            "vecadd add a.npy b.npy -o a.npy": "adds b to a",
            "vecadd add a.zarr b.zarr -o c.zarr": "Zarr arrays, chunk by chunk; c.zarr is replaced when all is there",
            "vecadd add s3://x/a s3://x/b -o s3://x/c --shards 4000,4000": "where nothing is at s3://x/c yet",
        }
    )


def run(arguments: argparse.Namespace) -> int:
    """Adds, and says on standard error how many bytes were read and written in which time."""
    a, b, out = arguments.a, arguments.b, arguments.out
    if STDOUT in (a, b, out):
        raise UsageError(
            "- means standard input or output, where no part of a file can be looked up: name a file; ./- means one "
            "that is called -"
        )
    of_stores = _are_stores(arguments)
    with warnings.catch_warnings(), status_line(f"{a} + {b}") as tell:
        # Without the line of our code, which does not help the command's user.
        warnings.showwarning = lambda message, *place: _say(f"warning: {message}")
        add = _add_stores if of_stores else _add_files
        begun = time.perf_counter()
        moved = add(arguments, lambda done, size: tell(f"{100 * done // size} %"))
        seconds = time.perf_counter() - begun
    what = "of elements " if of_stores else ""
    written = "and synced to the disk" if arguments.sync else "without a wait for the disk"
    if of_stores and "://" in out and not out.startswith("file://"):
        written = "to its store"
    _say(
        f"{_show_bytes(moved)} {what}in {show_seconds(seconds)}, {show_rate(moved / seconds / 1e9)} GB/s "
        f"({a} and {b} read, {out} written {written})"
    )
    return 0


def _add_files(arguments: argparse.Namespace, progress: Callable[[int, int], object]) -> int:
    """The bytes of the three files."""
    a, b, out = arguments.a, arguments.b, arguments.out
    read = Path(a).stat().st_size + Path(b).stat().st_size
    add_files(a, b, out, sync=arguments.sync, progress=progress)
    return read + Path(out).stat().st_size


def _add_stores(arguments: argparse.Namespace, progress: Callable[[int, int], object]) -> int:
    """The bytes of the three arrays, without a compression."""
    from vecadd.stores import NEEDED, add_zarr

    def tell(key: Any, result: Any, graph: Any, state: Any, worker: Any) -> None:
        done = len(state["finished"])
        progress(done, done + sum(len(state[tasks]) for tasks in ("ready", "waiting", "running")))

    a, b, out = arguments.a, arguments.b, arguments.out
    options = {name: getattr(arguments, name) for name in _OF_STORES}
    need(*NEEDED, UsageError)
    try:
        callbacks: Any = import_module("dask.callbacks")
        with callbacks.Callback(posttask=tell):
            add_zarr(a, b, out, sync=arguments.sync, **options)
    except ImportError as error:  # of a dask that is broken, or of a package by which fsspec reads a protocol
        raise UsageError(str(error)) from None
    from vecadd._zarr import absolute_name, open_operand

    return sum(open_operand(absolute_name(name)).nbytes for name in (a, b, out))


def _are_stores(arguments: argparse.Namespace) -> bool:
    """Whether the operands are Zarr arrays, by their names. Raises UsageError for one of each kind."""
    names = [arguments.a, arguments.b, arguments.out]
    stores = [_is_store(name) for name in names]
    # The name of a new array may be any, but one that says .npy is meant as a file.
    names_a_file = not stores[2] and Path(arguments.out).suffix == ".npy"
    if len(set(stores[:2])) > 1 or (stores[2] and not stores[0]) or (names_a_file and stores[0]):
        kinds = ", ".join(
            f"{name} {'a Zarr array' if is_store else 'a file'}" for name, is_store in zip(names, stores, strict=True)
        )
        raise UsageError(f"all three have to be .npy files, or all three Zarr arrays; by their names {kinds}")
    given = [f"--{name}" for name, without in _OF_STORES.items() if getattr(arguments, name) != without]
    if given and not stores[0]:
        raise UsageError(f"{' and '.join(given)}: for Zarr arrays alone, and {arguments.a} is a file")
    return stores[0]


def _is_store(name: str) -> bool:
    path = Path(name)
    return (
        "://" in name
        or path.suffix == ".zarr"
        or path.is_dir()
        or any(part.endswith((".zarr", ".zip")) for part in path.parts)
    )


def _extents(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a shape; write one extent for each axis: 1000,1000")
    return tuple(int(extent) for extent in text.split(","))


def _say(text: str) -> None:
    print(f"vecadd add: {text}", file=sys.stderr)


def _show_bytes(count: int) -> str:
    scale, unit = next(((s, u) for s, u in _UNITS if count >= s), (1, "bytes"))
    return f"{count / scale:.3g} {unit}"
