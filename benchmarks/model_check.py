"""What vecadd.model expects of each cell of recorded runs, beside what was measured.

    python -m benchmarks.model_check FILE...
    python -m benchmarks.model_check FILE --misses

Prints a line a cell, the share of cells within 10 %, and by how much each rung was missed; ``--misses`` leaves out the
cells within 10 %. Transfers are left out: the model gives their least possible time, and ``vecadd bench transfer``
shows it beside them. Rows that the model does not cover (host rungs, calls, limits that were not probed) are counted
separately.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vecadd import _core
from vecadd.figures import Figure, Run, read_run
from vecadd.model import Limits, Prediction, predict

WITHIN = 0.10

SWEEPS = ("size", "ladder", "blocksize", "precision", "latency")


@dataclass(frozen=True)
class Compared:
    """A cell: what was measured and what was expected, in seconds."""

    sweep: str
    name: str
    measured: float
    prediction: Prediction

    @property
    def error(self) -> float:
        """The prediction's error relative to the measured time; below 0 where the model is faster."""
        return self.prediction.seconds / self.measured - 1

    @property
    def within(self) -> bool:
        return abs(self.error) <= WITHIN

    def line(self) -> str:
        return (
            f"{self.name:58} {1e6 * self.measured:12.2f} {1e6 * self.prediction.seconds:12.2f} "
            f"{100 * self.error:+7.1f} %  {self.prediction.dominant}"
        )


def compare(run: Run) -> tuple[list[Compared], Counter[str]]:
    """The cells of a run that the model covers, and the number of the others by reason."""
    gpu = run.meta["gpu"][0] if run.meta["gpu"] else {}
    limits = Limits.of(run.meta["limits"])
    rungs = {rung["name"]: rung for rung in _core.rungs()}
    compared, left_out = [], Counter[str]()
    for figure in run.figures:
        if figure.sweep not in SWEEPS or figure.name not in rungs:
            continue
        if not figure.seconds:
            left_out["failed"] += 1
            continue
        try:
            compared.append(_compared(figure, figure.seconds, rungs[figure.name], gpu, limits))
        except ValueError as error:
            left_out[str(error)] += 1
    return compared, left_out


def _compared(
    figure: Figure, seconds: float, rung: Mapping[str, Any], gpu: Mapping[str, Any], limits: Limits
) -> Compared:
    chosen, block = figure.params.get("parameters", {}), figure.params.get("block", 0)
    prediction = predict(rung, None, gpu, limits, figure.dtype, figure.n, chosen, block=block)
    shown = " ".join(f"{name}={value}" for name, value in {**chosen, "block": block}.items() if value)
    name = f"{figure.sweep} {figure.name} {figure.dtype} {figure.n} {shown}"
    return Compared(figure.sweep, name, seconds, prediction)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 where nine tenths of the cells are within 10 %, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_check", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--misses", action="store_true", help="leave out the cells within 10 %%")
    chosen = parser.parse_args(arguments)
    compared, left_out = [], Counter[str]()
    print(f"{'cell':58} {'measured us':>12} {'expected us':>12} {'error':>9}  decided by")
    for path in chosen.files:
        of_file, others = compare(read_run(path))
        for cell in of_file:
            if not (chosen.misses and cell.within):
                print(cell.line())
        compared += of_file
        left_out += others
    for why, count in left_out.items():
        print(f"not covered, {count} rows: {why}")
    missed: dict[str, list[str]] = {}
    for cell in compared:
        if not cell.within:
            missed.setdefault(cell.name.split()[1], []).append(f"{100 * cell.error:+.0f} %")
    for rung, errors in missed.items():
        print(f"missed, {len(errors)} rows of {rung}: {', '.join(errors)}")
    for sweep in dict.fromkeys(cell.sweep for cell in compared):
        cells = [cell for cell in compared if cell.sweep == sweep]
        print(f"{sweep}: {sum(cell.within for cell in cells)} of {len(cells)} cells within 10 %")
    within = sum(cell.within for cell in compared)
    print(f"{within} of {len(compared)} cells within 10 % ({100 * within / max(1, len(compared)):.1f} %)")
    return 0 if compared and within >= (1 - WITHIN) * len(compared) else 1


if __name__ == "__main__":
    raise SystemExit(main())
