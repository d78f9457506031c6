"""Rows and the result file: ``{"meta": {...}, "rows": [...]}``."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vecadd.bench.axes import show_size
from vecadd.bench.timing import Measurement, Timed, paired_ratio


@dataclass(frozen=True)
class Row:
    """One contestant at one dtype and size. Rates in GB/s (1e9 bytes a second) count every array once."""

    sweep: str
    rung: str
    dtype: str
    n: int
    params: dict[str, Any]
    seconds: float | None  # median; None where it failed
    spread: tuple[float, float] | None  # p10 and p90 of the seconds
    bytes: int
    gbps: float | None
    limit_gbps: float | None
    fraction: float | None  # of the limit; above 1 the method is wrong, not the rung fast
    checked: bool
    error: str | None = None

    @property
    def name(self) -> str:
        """One line's worth of which row this is: "transfer pinned (pinned) float32 2^20"."""
        block = f" block {self.params.get('block')}" if self.sweep == "blocksize" else ""
        return f"{self.sweep} {self.label}{block} {self.dtype} {show_size(self.n)}"

    @property
    def label(self) -> str:
        """The rung, with its parameters, and the memory or the clock where the rows around it have another."""
        notes = [f"{name} {self.params.get(name, value)}" for name, value in self.params.get("parameters", {}).items()]
        notes += [self.params[key] for key in ("memory", "clock") if self.params.get(key, self.rung) != self.rung]
        return f"{self.rung} ({', '.join(notes)})" if notes else self.rung

    @property
    def impossible(self) -> bool:
        """Above its limit, which says that the method is wrong."""
        return self.fraction is not None and self.fraction > 1

    @property
    def ok(self) -> bool:
        """Neither failed nor impossible."""
        return self.error is None and not self.impossible


def rows_of(measurement: Measurement) -> list[Row]:
    """A row for every contestant that was timed and checked, or failed."""
    return [_row(measurement, timed) for timed in measurement.timed if timed.checks or timed.error]


def _row(measurement: Measurement, timed: Timed) -> Row:
    cell = measurement.cell
    limit = cell.limit.gbps if timed.contestant.limited else None
    nbytes = round(timed.contestant.arrays * cell.additions * cell.n * cell.dtype.itemsize)
    gbps = None if timed.error else nbytes / timed.median / 1e9
    return Row(
        sweep=cell.sweep,
        rung=timed.contestant.name,
        dtype=str(cell.dtype),
        n=cell.n,
        params=_params(measurement, timed),
        seconds=None if timed.error else timed.median,
        spread=None if timed.error else timed.spread,
        bytes=nbytes,
        gbps=gbps,
        limit_gbps=limit,
        fraction=gbps / limit if gbps and limit else None,
        checked=not timed.error and not timed.caught,
        error=timed.error,
    )


def _params(measurement: Measurement, timed: Timed) -> dict[str, Any]:
    """The contestant's own, what was caught of a race, and its paired ratio to the cell's reference where both were
    measured."""
    params = dict(timed.contestant.params) | timed.found | ({"caught": timed.caught} if timed.caught else {})
    reference = next((x for x in measurement.timed if x.contestant.name == measurement.cell.reference), None)
    if reference is None or reference is timed or timed.error or reference.error or not reference.samples:
        return params
    low, median, high = paired_ratio(timed, reference)
    return params | {"reference": reference.contestant.name, "ratio": median, "ratio_interval": [low, high]}


def write(path: Path, meta: Mapping[str, Any], rows: Iterable[Row]) -> None:
    """Writes the result file, whole or not at all."""
    replace(path, json.dumps({"meta": meta, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")


def replace(path: Path, text: str) -> None:
    """Writes the file in one step: a reader finds the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """The meta data and the rows of a result file; raises ValueError for a file that is none."""
    try:
        content = json.loads(path.read_text())
        rows = [Row(**{**row, "spread": row["spread"] and tuple(row["spread"])}) for row in content["rows"]]
        return content["meta"], rows
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a result file: {error}") from error
