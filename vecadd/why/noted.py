"""What was noted of a program's additions: one entry for each line and kind of operands."""

import os
import site
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from vecadd import _core
from vecadd.why.layout import LINE, Layout

LEAST = 64 << 10  # bytes of a sum: smaller additions are not noted
MANY = 1 << 20  # arrays: more than caches hold of those that are noted


@dataclass(frozen=True)
class Place:
    """A line of a source file, and the function that it stands in."""

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


Operand = Layout | type | None  # an array, the type of anything else, nothing


@dataclass(frozen=True)
class Noted:
    """Additions of one line with operands of one kind, the size to three bits.

    ``via`` is "numpy", "add" or "add_many"; ``through`` the line of a library that made the call for the program's
    line. ``out`` lies where the first sum lay; ``new`` says that NumPy made it. ``seconds`` and ``nbytes`` are of all
    ``calls``. Of small additions in great number a part is noted, which stands for all: ``estimated``.
    """

    place: Place
    through: Place | None
    via: str
    a: Operand
    b: Operand
    out: Operand
    new: bool
    device: str | None
    others: bool  # where=, dtype= or another keyword was given
    pairs: int
    route: Mapping[str, Any] | None  # of `vecadd.add`, as `_core.explain_route` says it
    calls: int
    nbytes: int
    seconds: float
    estimated: bool
    first_seconds: float
    first_faults: int
    later_faults: float | None  # of a call behind the first; None where there is none
    faulted: float  # the share of such calls that faulted in most pages of the sum; of the first where it is alone
    loops: float | None  # calls of NumPy's loops an addition; None where they could not be counted
    elements: float | None  # of a call of the loop
    installed: bool  # vecadd added calls of the loop in NumPy's place
    between: tuple[float | None, ...] = (None, None, None)  # see `turns`

    @property
    def typical(self) -> float:
        """Seconds of a call behind the first; of the first where it is alone."""
        return self.seconds if self.calls < 2 else (self.seconds - self.first_seconds) / (self.calls - 1)

    @property
    def faults(self) -> float:
        """Page faults of a call behind the first; of the first where it is alone."""
        return float(self.first_faults) if self.later_faults is None else self.later_faults

    @property
    def turns(self) -> tuple[int, ...]:
        """How many arrays take turns as a, b and sum: the bytes of additions, those of other lines too, from an array's
        use to its next one, over those of a call. 1 where it is not known; MANY where more arrays than are remembered
        never came again."""
        return tuple(max(1, round(min(MANY, x * self.calls / self.nbytes))) if x else 1 for x in self.between)

    @property
    def arrays(self) -> list[Layout]:
        """a, b and the sum, those of them that are NumPy arrays."""
        return [x for x in (self.a, self.b, self.out) if isinstance(x, Layout)]


@dataclass(frozen=True)
class Run:
    """Everything that was noted; the whole took so many ``seconds``. For ``missed`` additions there was no room."""

    additions: list[Noted]
    seconds: float
    missed: int
    missed_seconds: float


_begun = 0.0


def start() -> None:
    """Notes the additions of this process from now on. Raises RuntimeError where they are noted already."""
    global _begun
    _core.receipt_start(*_beginnings())
    _begun = time.perf_counter()


def stop() -> Run:
    """Notes no more. Raises RuntimeError where nothing was noted."""
    seconds = time.perf_counter() - _begun
    found = _core.receipt_stop()
    return Run([_noted(row) for row in found["additions"]], seconds, found["missed"], found["missed_seconds"])


def _beginnings() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """How the names of files begin: those of NumPy and vecadd, and those of all libraries."""
    ours = [str(Path(file).parent) for file in (np.__file__, _core.__file__)]
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    libraries = {sysconfig.get_path(name) for name in names} | {site.getusersitepackages()}
    libraries |= {folder for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")}
    return tuple(folder + os.sep for folder in ours), ("<frozen ", *(f"{folder}{os.sep}" for folder in libraries))


def _place(found: tuple[CodeType, int] | None) -> Place | None:
    if found is None:
        return None
    code, at = found
    lines = [position[0] for position in code.co_positions()]
    line = lines[at // 2] if 0 <= at // 2 < len(lines) else None
    return Place(code.co_filename, line or code.co_firstlineno, code.co_qualname)


def _operand(found: Any, starts: Sequence[int]) -> Operand:
    return replace(Layout(*found), starts=_spread(starts)) if isinstance(found, tuple) else found


def _spread(counts: Sequence[int]) -> tuple[int, ...]:
    """As many places in a cache line as there are counts, each as often as its share of them, the rarer ones late."""
    places: list[int] = []
    while sum(counts) and len(places) < len(counts):
        owed = [count * (len(places) + 1) / sum(counts) - places.count(at) for at, count in enumerate(counts)]
        places.append(max(range(len(counts)), key=owed.__getitem__))
    return tuple(place * LINE // len(counts) for place in places)


def _noted(row: Mapping[str, Any]) -> Noted:
    example, starts = row["example"], row["starts"]
    place = _place(row["place"])
    assert place is not None
    return Noted(
        place,
        _place(row["through"]),
        row["via"],
        _operand(example["a"], starts[0]),
        _operand(example["b"], starts[1]),
        _operand(example["out"], starts[2]),
        example["new"],
        example["device"],
        example["others"],
        example["pairs"],
        example["route"],
        row["calls"],
        row["bytes"],
        row["seconds"],
        row["calls"] != row["noted"],
        row["first_seconds"],
        row["first_faults"],
        row["faults"] / row["looked"] if row["looked"] else None,
        row["faulted"] / row["looked"] if row["looked"] else float(row["first_faulted"]),
        row["loops"] / row["counted"] if row["counted"] else None,
        row["elements"] / row["loops"] if row["loops"] else None,
        row["added"] > 0,
        row["between"],
    )
