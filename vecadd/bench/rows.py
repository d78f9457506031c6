"""The rows of a measured cell: one a contestant."""

from typing import Any

from vecadd.bench.timing import Measurement, Timed, paired_ratio
from vecadd.figures import Figure


def rows_of(measurement: Measurement) -> list[Figure]:
    """A row for every contestant that was timed and checked, or failed."""
    return [_row(measurement, timed) for timed in measurement.timed if timed.checks or timed.error]


def _row(measurement: Measurement, timed: Timed) -> Figure:
    cell = measurement.cell
    return Figure(
        sweep=cell.sweep,
        name=timed.contestant.name,
        dtype=str(cell.dtype),
        n=cell.n,
        params=_params(measurement, timed),
        value=None if timed.error else timed.median,
        spread=None if timed.error else timed.spread,
        bytes=round(timed.contestant.arrays * cell.additions * cell.n * cell.dtype.itemsize),
        limit=cell.limit.gbps if timed.contestant.limited else None,
        checked=not timed.error and not timed.caught,
        error=timed.error,
    )


def _params(measurement: Measurement, timed: Timed) -> dict[str, Any]:
    """The contestant's own parameters, the errors caught in a race, and its paired ratio to the cell's reference where
    both were measured."""
    params = dict(timed.contestant.params) | timed.found | ({"caught": timed.caught} if timed.caught else {})
    reference = next((x for x in measurement.timed if x.contestant.name == measurement.cell.reference), None)
    if reference is None or reference is timed or timed.error or reference.error or not reference.samples:
        return params
    low, median, high = paired_ratio(timed, reference)
    return params | {"reference": reference.contestant.name, "ratio": median, "ratio_interval": [low, high]}
