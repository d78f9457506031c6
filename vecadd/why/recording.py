"""Records a program's additions, in groups: those of one line with operands of one kind."""

import os
import site
import sys
import sysconfig
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.why.layout import Layout

Operand = Layout | type  # a NumPy array, or the type of anything else


@dataclass(frozen=True)
class SourceLine:
    """A line of a source file, and its function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        if self.file.startswith("<ipython-input-") or Path(self.file).parent.name.startswith("ipykernel_"):
            return f"cell:{self.line}"
        inside = self.file
        if self.file.startswith(os.sep):
            with suppress(OSError):  # the program may have removed its working directory
                inside = os.path.relpath(self.file)
        return f"{min(inside, self.file, key=len)}:{self.line}"


@dataclass(frozen=True)
class AdditionGroup:
    """Additions of one line with operands of one kind, whose sizes agree to three bits.

    ``a``, ``b``, ``out``, ``route``, ``loops`` and ``loop_elements`` are those of the first addition. ``via`` is
    "numpy", "add" or "add_many"; ``through`` the line of a library that made the call for the program's line; ``new``
    says that no sum was given. ``seconds`` and ``nbytes`` are the totals of all ``calls``.
    """

    line: SourceLine
    through: SourceLine | None
    via: str
    a: Operand
    b: Operand
    out: Operand
    new: bool
    device: str | None
    other_keywords: bool  # where=, dtype= or another
    route: Mapping[str, Any] | None  # of `vecadd.add`, as `_core.explain_route` says it
    calls: int
    nbytes: int
    seconds: float
    first_seconds: float
    first_faults: int
    later_faults: float | None  # of a call after the first; None where none was counted
    faulted: float  # the share of such calls that faulted in most pages of the sum; of the first where it is alone
    loops: int | None  # calls of NumPy's loop; None where they cannot be counted
    loop_elements: float | None  # of a call of the loop
    installed: bool  # vecadd added some of them in NumPy's place

    @property
    def typical(self) -> float:
        """Seconds of a call after the first; of the first where it is alone."""
        return self.seconds if self.calls < 2 else (self.seconds - self.first_seconds) / (self.calls - 1)

    @property
    def faults(self) -> float:
        """Page faults of a call after the first; of the first where it is alone."""
        return float(self.first_faults) if self.later_faults is None else self.later_faults

    @property
    def arrays(self) -> list[Layout]:
        """Those of a, b and the sum that are NumPy arrays."""
        return [x for x in (self.a, self.b, self.out) if isinstance(x, Layout)]


@dataclass(frozen=True)
class Recording:
    """All groups of a run, which took ``seconds``. There was no room for ``missed`` additions, and ``small`` ones
    have sums of up to 64 KiB: they are only counted."""

    groups: list[AdditionGroup]
    seconds: float
    missed: int
    missed_seconds: float
    small: int


_begin = 0.0


def start() -> None:
    """Records the additions of this process from now on. Raises RuntimeError where they are recorded already."""
    global _begin
    _core.receipt_start(*_file_beginnings())
    _begin = time.perf_counter()


def stop() -> Recording:
    """Ends the recording. Raises RuntimeError where there is none."""
    seconds = time.perf_counter() - _begin
    found = _core.receipt_stop()
    groups = [_read_group(row) for row in found["groups"]]
    return Recording(groups, seconds, found["missed"], found["missed_seconds"], found["small"])


def _file_beginnings() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """How the names of files begin: those of NumPy and vecadd, and those of all libraries."""
    ours = [str(Path(file).parent) for file in (np.__file__, _core.__file__)]
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    libraries = {sysconfig.get_path(name) for name in names} | {site.getusersitepackages()}
    libraries |= {folder for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")}
    return tuple(folder + os.sep for folder in ours), ("<frozen ", *(f"{folder}{os.sep}" for folder in libraries))


def _read_line(code: CodeType, at: int) -> SourceLine:
    lines = [position[0] for position in code.co_positions()]
    line = lines[at // 2] if 0 <= at // 2 < len(lines) else None
    return SourceLine(code.co_filename, line or code.co_firstlineno, code.co_qualname)


def _read_group(row: Mapping[str, Any]) -> AdditionGroup:
    example, loops, watched = row["example"], row["loops"], row["watched"]
    a, b, out = (Layout(*x) if isinstance(x, tuple) else x for x in (example[name] for name in ("a", "b", "out")))
    return AdditionGroup(
        line=_read_line(*row["line"]),
        through=_read_line(*row["through"]) if row["through"] else None,
        via=row["via"],
        a=a,
        b=b,
        out=out,
        new=example["new"],
        device=example["device"],
        other_keywords=example["others"],
        route=example["route"],
        calls=row["calls"],
        nbytes=row["bytes"],
        seconds=row["seconds"],
        first_seconds=row["first_seconds"],
        first_faults=row["first_faults"],
        later_faults=row["faults"] / watched if watched else None,
        faulted=row["faulted"] / watched if watched else float(row["first_faulted"]),
        loops=loops or None,
        loop_elements=row["elements"] / loops if loops else None,
        installed=row["added"] > 0,
    )
