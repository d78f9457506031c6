"""What vecadd.model expects of each cell of recorded runs, beside what was measured.

    python -m benchmarks.model_check FILE...
    python -m benchmarks.model_check FILE --assume dram=430e-9 --assume clock=1.98e9 --misses

Prints a line a cell, and the share of cells within 10 %; ``--misses`` leaves out those that are. Rows that the model
does not cover (host rungs, calls, transfers that allocate) are counted apart. ``--assume NAME=VALUE`` stands in for
what a recording lacks, with the names of `vecadd.model.Limits`, in seconds and bytes a second, or clock in Hz; what was
assumed is said.
"""

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from vecadd import _core
from vecadd.model import Limits, Prediction, predict

WITHIN = 0.10
SWEEPS = ("device", "size", "ladder", "blocksize", "precision", "transfer", "latency")


@dataclass(frozen=True)
class Compared:
    """A cell: what was measured and what was expected, in seconds."""

    sweep: str
    name: str
    measured: float
    prediction: Prediction

    @property
    def error(self) -> float:
        """Of the expectation, relative to what was measured; below 0 where the model is faster."""
        return self.prediction.seconds / self.measured - 1

    @property
    def within(self) -> bool:
        return abs(self.error) <= WITHIN

    def line(self) -> str:
        return (
            f"{self.name:58} {1e6 * self.measured:12.2f} {1e6 * self.prediction.seconds:12.2f} "
            f"{100 * self.error:+7.1f} %  {self.prediction.dominant}"
        )


def compare(file: Mapping[str, Any], assumed: Mapping[str, float]) -> tuple[list[Compared], Counter[str]]:
    """The cells of a result file that the model covers, and how many it does not, by why."""
    meta = file["meta"]
    gpu = dict(meta["gpu"][0]) if meta["gpu"] else {}
    limits = Limits.of(meta["limits"])
    of_limits = {field.name for field in fields(Limits)}
    limits = replace(limits, **{name: value for name, value in assumed.items() if name in of_limits})
    if "clock" in assumed:
        gpu["clock"] = assumed["clock"]
    rungs = {rung["name"]: rung for rung in _core.rungs()}
    compared, left_out = [], Counter[str]()
    for row in file["rows"]:
        if row["sweep"] not in SWEEPS or row["rung"] not in rungs:
            continue
        if not row["seconds"]:
            left_out["failed"] += 1
            continue
        try:
            compared.append(_compared(row, rungs[row["rung"]], gpu, limits))
        except ValueError as error:
            left_out[str(error)] += 1
    return compared, left_out


def _compared(row: Mapping[str, Any], rung: Mapping[str, Any], gpu: Mapping[str, Any], limits: Limits) -> Compared:
    params = row["params"]
    chosen = params.get("parameters", {})
    block = params.get("block", 0)
    threads = block[0] * block[1] * block[2] if isinstance(block, list) else block
    prediction = predict(rung, None, gpu, limits, row["dtype"], row["n"], chosen, block=threads)
    shown = " ".join(f"{name}={value}" for name, value in {**chosen, "block": threads}.items() if value)
    return Compared(
        row["sweep"], f"{row['sweep']} {row['rung']} {row['dtype']} {row['n']} {shown}", row["seconds"], prediction
    )


def _assumption(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if name not in {field.name for field in fields(Limits)} | {"clock"}:
        raise argparse.ArgumentTypeError(f"{name} is no limit")
    return name, float(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 where nine tenths of the cells are within 10 %, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_check", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--assume", action="append", default=[], type=_assumption, metavar="NAME=VALUE")
    parser.add_argument("--misses", action="store_true", help="leave out the cells within 10 %%")
    chosen = parser.parse_args(arguments)
    compared, left_out = [], Counter[str]()
    print(f"{'cell':58} {'measured us':>12} {'expected us':>12} {'error':>9}  decided by")
    for path in chosen.files:
        of_file, others = compare(json.loads(path.read_text()), dict(chosen.assume))
        for cell in of_file:
            if not (chosen.misses and cell.within):
                print(cell.line())
        compared += of_file
        left_out += others
    for why, count in left_out.items():
        print(f"not covered, {count} rows: {why}")
    for name, value in chosen.assume:
        print(f"assumed, not measured: {name} = {value:g}")
    for sweep in dict.fromkeys(cell.sweep for cell in compared):
        cells = [cell for cell in compared if cell.sweep == sweep]
        print(f"{sweep}: {sum(cell.within for cell in cells)} of {len(cells)} cells within 10 %")
    within = sum(cell.within for cell in compared)
    print(f"{within} of {len(compared)} cells within 10 % ({100 * within / max(1, len(compared)):.1f} %)")
    return 0 if compared and within >= (1 - WITHIN) * len(compared) else 1


if __name__ == "__main__":
    raise SystemExit(main())
