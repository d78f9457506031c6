"""A way to add a block, and its row in the result file."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.proof import exact, flags
from benchmarks.proof.cases import Block, Case, bits_of, blocks
from benchmarks.proof.exact import Array
from vecadd import _core

Row = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """``add`` gives a block's sums, and ``facts`` vecadd's explanation of the call: None where NumPy adds. ``reports``
    is whether it reports floating-point flags, ``flagged`` how the flags of single sums are checked."""

    name: str
    add: Callable[[Block], Array]
    facts: Callable[[Block], Mapping[str, Any] | None]
    reports: bool = False
    flagged: flags.Flagged | None = None


# The parts of vecadd.explain's answer that a row records.
FACTS = ("route", "layout", "kernel", "simd", "stores", "threads", "memory")


def explained(*operands: Any, **keywords: Any) -> Mapping[str, Any] | None:
    """How vecadd adds these operands; None where it leaves them to NumPy."""
    found = _core.explain_route(*operands, **keywords)
    return None if found["route"] == "numpy" else {name: found[name] for name in FACTS if name in found}


def prove(case: Case, ways: Sequence[Way], limit: float) -> Iterator[Row]:
    """A row for each way that is vecadd's own. A way that would take longer than ``limit`` seconds, as its second block
    shows, adds no more than those two, and its row says so."""
    rows: dict[str, Row] = {}
    every = case.blocks
    for number, block in enumerate(blocks(case)):
        if number == 0:
            rows = {way.name: _new(case, way, facts) for way in ways if (facts := way.facts(block)) is not None}
            if not rows:
                return
        block.expect()
        for way in ways:
            row = rows.get(way.name)
            if row is None or "left_out" in row or "error" in row:
                continue
            earlier = row["seconds"]
            _add(row, way, block)
            predicted = (row["seconds"] - earlier) * len(every)
            if number == 1 and len(every) > 2 and predicted > limit:
                row["left_out"] = f"all would take {predicted:.0f} s"
    for row in rows.values():
        row["seconds"] = round(row["seconds"], 3)
        yield {name: value for name, value in row.items() if value is not None}


def is_right(row: Row) -> bool:
    """Whether every sum and every flag was right."""
    return row["wrong"] == 0 and "error" not in row and ("flags" not in row or row["flags"]["wrong"] == 0)


def _new(case: Case, way: Way, facts: Mapping[str, Any]) -> Row:
    return {
        "a": case.a.name,
        "b": case.b.name,
        "out": case.out.name,
        "way": way.name,
        **facts,
        "pairs": 0,
        "wrong": 0,
        "first": None,
        "seconds": 0.0,
        "flags": flags.none_yet() if way.reports and case.plain else None,
    }


def _add(row: Row, way: Way, block: Block) -> None:
    begun = time.perf_counter()
    _core.poison(block.out)
    try:
        with flags.heard() as heard:
            sums = way.add(block)
        wrong, first = exact.wrong(block.due, sums)
        if row["flags"] is not None:
            flags.check_block(row["flags"], set(heard), block.raised)
            if block.case.has_flags and way.flagged:
                flags.check(row["flags"], way.flagged, block)
    except Exception as error:  # the other ways go on, and the run fails
        row["error"] = f"{type(error).__name__}: {error}"
        return
    row["seconds"] += time.perf_counter() - begun
    row["pairs"] += len(block.lefts) * block.case.rights
    row["wrong"] += wrong
    if wrong and row["first"] is None:
        a, b = block.operands_of(first)
        sum_of, due = (bits_of(array.reshape(-1)[first:]) for array in (sums, block.due))
        row["first"] = {"a": a, "b": b, "sum": sum_of, "due": due}
