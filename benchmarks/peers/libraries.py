"""The peers: found or not, in which version, and where a library's arrays are."""

import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Generic, TypeVar

from vecadd.bench.operands import MemoryKind

POISON = 0xA5

Add = Callable[..., object]  # add(a, b, out=out); on a GPU it queues the work on the legacy default stream
Peer = TypeVar("Peer")


@dataclass(frozen=True)
class Entry(Generic[Peer]):
    """A row of a stage's table of peers: the name in tables, the module that Python imports, the package that pip
    installs, and what makes the peer of it.

    ``module`` is "" where none is needed. Without ``make`` the library has a place in the table and no figure.
    """

    name: str
    module: str
    package: str
    make: Callable[[], Peer] | None


def module(name: str) -> Any:
    """Imports a library by name: none is required, not even by the type checker."""
    return importlib.import_module(name)


def meeting(sweep: str, entries: Iterable[Entry[Peer]], missing: list[str]) -> Iterator[Peer]:
    """The peers that this machine has. Of each other one a line joins ``missing``: which, and why it is unmeasured."""
    for entry in entries:
        reason = "no addition is written for it"
        try:
            if entry.make is not None:
                yield entry.make()
                continue
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        if not _is_installed(entry.module):
            absent = f"not installed: pip install '{entry.package}'"
            reason = absent if entry.make else f"{absent}; and {reason}"
        missing.append(f"{sweep} {entry.name}: unmeasured: {reason}")


def _is_installed(name: str) -> bool:
    try:
        return not name or importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def versions(entries: Iterable[Entry[Any]]) -> dict[str, str]:
    """The version of each of their libraries that this process has imported, by the name in tables."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry.module not in sys.modules:
            continue
        try:
            found[entry.name] = metadata.version(entry.package.partition("[")[0])
        except metadata.PackageNotFoundError:  # CuPy has a package for each CUDA
            found[entry.name] = str(getattr(sys.modules[entry.module.partition(".")[0]], "__version__", "unknown"))
    return found


def torch_place() -> MemoryKind:
    torch = module("torch")
    return MemoryKind(
        "torch",
        put=lambda x: torch.from_numpy(x).to("cuda"),
        get=lambda x: x.cpu().numpy(),
        poison=lambda x: x.view(torch.uint8).fill_(POISON),
        on_gpu=True,
    )


def cupy_place() -> MemoryKind:
    cupy = module("cupy")
    return MemoryKind(
        "cupy",
        put=cupy.asarray,
        get=cupy.asnumpy,
        poison=lambda x: x.view(cupy.uint8).fill(POISON),
        on_gpu=True,
    )
