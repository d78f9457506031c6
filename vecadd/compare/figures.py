"""The figures of result files, each under a name by which two runs are matched.

A row of ``vecadd bench`` or of a comparison with other libraries is named by its sweep, rung, parameters, dtype and
size; a finding of ``vecadd check`` by its id. Where several files have the same figure, the newest counts.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

from vecadd import figures as measured
from vecadd.bench.timing import FEWEST_ROUNDS
from vecadd.fleet import checks, files
from vecadd.fleet.checks import Check

# What of a row's parameters says what was measured; the others are what was found.
IDENTITY = ("parameters", "memory", "clock", "form", "shape", "kernel", "experiment")
SWEPT = {"blocksize": ("block",)}  # a block that is not swept is what the GPU's launch config has: two GPUs may differ

# Of a median of six samples of the normal law whose p10 and p90 are known: Student's 97.5 % quantile for five degrees
# of freedom, times a median's standard error. The files do not say how many rounds there were; six are the fewest.
_HALF = 2.571 * sqrt(3.1416 / 2 / FEWEST_ROUNDS)
_DECILES = 2.563  # standard deviations from p10 to p90

Key = tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A figure with its 95 % interval, which is None where the file does not say. ``error`` says that it failed: then a
    result of a bench has no value; one of a check may have."""

    name: str
    value: float | None
    interval: tuple[float, float] | None
    unit: str
    error: str | None = None


@dataclass
class Side:
    """One side of the comparison: its figures, and the machines that they are of."""

    figures: dict[Key, Figure]
    machines: list[str]


def contents(paths: Sequence[Path]) -> dict[Path, dict[str, Any]]:
    """What the JSON files hold. What a command wrote into a folder earlier, which is no measurement, is passed over.
    Raises UnaskableError for what is not there, ValueError, which names the file, where it holds no object."""
    found = {path: files.content(path) for path in files.listed(paths)}
    return {path: held for path, held in found.items() if held.get("schema") not in files.VERDICTS or path in paths}


def read(held: Mapping[Path, dict[str, Any]]) -> list[measured.Run | Check]:
    """The result files that hold this, oldest first. Raises ValueError for other files."""
    found: list[tuple[str, measured.Run | Check]] = []
    for path, content in held.items():
        if writer := files.VERDICTS.get(str(content.get("schema"))):
            raise ValueError(f"{path} is what {writer} found in result files, and none itself")
        if checks.is_check(content):
            check = checks.of(path, content)
            found.append((check.time.isoformat(), check))
        else:
            run = measured.run_of_content(path, content)
            found.append((str(run.meta.get("date")), run))
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def side(given: Iterable[measured.Run | Check]) -> Side:
    """All figures of these files. Raises ValueError, which names the file, for a row whose numbers cannot be timed."""
    figures: dict[Key, Figure] = {}
    machines: list[str] = []
    for each in given:
        if isinstance(each, Check):
            machines.append(f"{each.host} ({each.machine_type})")
            figures |= _of_check(each)
            continue
        machines.append(str(each.meta.get("machine", "unknown")))
        try:
            figures |= {_key(row): _of_row(row) for row in each.figures}
        except (ArithmeticError, ValueError) as error:
            raise ValueError(f"{each.path} is not a result file: a row cannot be read: {error}") from error
    return Side(figures, list(dict.fromkeys(machines)))


def _of_check(check: Check) -> dict[Key, Figure]:
    """The interval of a figure that other work has disturbed says nothing of the machine."""
    return {
        ("check", each.id, each.unit): Figure(
            each.name,
            each.value,
            None if each.is_disturbed else each.interval,
            each.unit,
            each.severity if each.severity == "critical" else None,
        )
        for each in check.findings
        if each.unit
    }


def _key(row: measured.Figure) -> Key:
    identity = {name: row.params[name] for name in (*IDENTITY, *SWEPT.get(row.sweep, ())) if name in row.params}
    return row.sweep, row.name, row.dtype, str(row.n), json.dumps(identity, sort_keys=True)


def _of_row(row: measured.Figure) -> Figure:
    """A wrong result has no figure, whatever time it took.

    The interval is that of the median's logarithm, from the distance between p10 and p90.
    """
    interval, seconds = None, None if row.error is not None else row.seconds
    if seconds and row.spread and row.spread[0] > 0:
        low, high = row.spread
        half = _HALF * log(high / low) / _DECILES
        interval = seconds * exp(-half), seconds * exp(half)
    more = [str(row.params[name]) for name in ("form", "kernel", "experiment") if name in row.params]
    return Figure(" ".join([row.title, *more]), seconds, interval, "s", row.error)
