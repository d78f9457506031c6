"""The tables of what vecadd.model expects: how many recorded cells it meets, and the model column of the matrices.

The expectation is computed from the recorded limits when the table is made, so that it is the present model's.
"""

from collections.abc import Sequence

from benchmarks import model_check
from benchmarks.tables import sweeps
from benchmarks.tables.recordings import Recording
from vecadd.figures import Figure, Run
from vecadd.tables import markdown


def counts(runs: Sequence[Recording]) -> list[str]:
    """A line a sweep: the cells that the model covers, and those within 10 %."""
    lines, total = [], [0, 0]
    for run in runs:
        cells, _ = model_check.compare(run)
        met = sum(cell.within for cell in cells)
        lines.append([run.sweep, str(met), str(len(cells)), _share(met, len(cells))])
        total = [total[0] + met, total[1] + len(cells)]
    lines.append(["all", *map(str, total), _share(*total)])
    return markdown(["sweep", "within 10 %", "cells", "share"], lines)


def matrices(runs: Sequence[Recording]) -> list[str]:
    """Transposes, or products, whose model column is computed anew."""
    return sweeps.matrices([row for run in runs for row in _expected(run)])


def _expected(run: Recording) -> list[Figure]:
    """The rows with what the model expects of each; as they were recorded where it lacks a limit."""
    rows = []
    for row in run.figures:
        cells, _ = model_check.compare(Run(run.meta, [row]))
        for cell in cells:
            row = row.with_params(model_seconds=cell.prediction.seconds)
        rows.append(row)
    return rows


def _share(met: int, cells: int) -> str:
    return f"{100 * met / cells:.0f} %" if cells else "-"
