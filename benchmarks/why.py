"""Whether the receipts of `vecadd run --why` predict what their advice gains, and what a receipt costs.

    python -m benchmarks.why                               # a few minutes, on a machine that does nothing else
    python -m benchmarks.why --json benchmarks/results/why-MACHINE.json
    python -m benchmarks.why --programs bias,heat --rounds 1

Each program of examples/why runs as it is and in its mended version, in turns, each with a receipt. The predicted gain
is that of the change that mends the program's reason, from the receipt of the slow version; the measured gain is what
the additions of both versions took. The cost is the time of additions while they are noted, over that of the same ones
while they are not, in alternating rounds.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from vecadd._command import target
from vecadd.bench import machine, results
from vecadd.bench.axes import show_size
from vecadd.bench.show import show_gain, show_seconds
from vecadd.bench.tables.table import Column, Style, Table, columns
from vecadd.bench.terminal import Screen
from vecadd.info import info
from vecadd.why import noted

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "why"
WITHIN = 0.15  # of the measured gain, which a prediction should come to
ROUNDS, COST_ROUNDS = 5, 12
SESSION = 0.1  # seconds of additions, in which the small ones that are all noted are few
SIZES = (1000, 16_400, 1 << 16, 1 << 18, 1 << 20, 1 << 22)  # float32; the second is the first that is noted


@dataclass(frozen=True)
class Program:
    """A file of examples/why, and the reason that its receipt should find."""

    name: str
    reason: str


PROGRAMS = (
    Program("audio_mix", "first use of memory"),
    Program("bias", "short rows"),
    Program("ensemble", "a cache that did not hold"),
    Program("heat", "operands that overlap"),
    Program("image_stack", "a cast in pieces"),
    Program("optimiser", "page faults of a new sum"),
    Program("pandas_column", "page faults of a new sum"),
    Program("particles", "gaps between elements"),
    Program("running_mean", "one thread"),
    Program("symmetric", "short rows"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints and writes; the exit status is 1 where a prediction is farther off than WITHIN."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.why", description="how well receipts predict")
    parser.add_argument("--programs", default=",".join(program.name for program in PROGRAMS), metavar="NAME,...")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-cost", action="store_true", help="leave out what a receipt costs")
    parser.add_argument("--json", type=target, metavar="FILE")
    given = parser.parse_args(arguments)
    chosen = [program for program in PROGRAMS if program.name in given.programs.split(",")]
    conditions = machine.conditions_now()
    rows = [measured(program, given.rounds) for program in chosen]
    costs = [] if given.no_cost else [cost(n, form) for n in SIZES for form in FORMS]
    if given.json is not None:
        meta = machine.meta(info(), machine.conditions_since(conditions), method=" ".join((__doc__ or "").split()))
        kinds = [{"kind": "program", **row} for row in rows] + [{"kind": "cost", **row} for row in costs]
        results.save(given.json, {"meta": meta, "rows": kinds})
    Screen(sys.stderr).show([_programs(rows), *([_costs(costs)] if costs else [])])
    return 0 if all(row["within"] for row in rows) else 1


def measured(program: Program, rounds: int) -> dict[str, Any]:
    """The medians of a program's rounds, and the predicted and the measured gain of each round."""
    pairs = [
        prediction(program.reason, receipt(program.name, "slow"), receipt(program.name, "mended"))
        for _ in range(rounds)
    ]
    predicted = [pair["predicted"] for pair in pairs if pair["predicted"] is not None]
    gain, expected = median(pair["measured"] for pair in pairs), median(predicted) if predicted else None
    return {
        "program": program.name,
        "reason": program.reason,
        "predicted": expected,
        "measured": gain,
        "within": expected is not None and abs(expected / gain - 1) <= WITHIN,
        "first": sum(pair["first"] for pair in pairs),  # rounds in which the reason was the one that gains most
        "seconds": median(pair["seconds"] for pair in pairs),
        "mended_seconds": median(pair["mended_seconds"] for pair in pairs),
        "rounds": [[pair["predicted"], pair["measured"]] for pair in pairs],
    }


def prediction(reason: str, slow: Mapping[str, Any], mended: Mapping[str, Any]) -> dict[str, Any]:
    """What the slow version's receipt predicts of mending that reason, and what the mended one's says it gained."""
    longest = max(slow["lines"], key=lambda row: row["seconds"])
    gains = [change["gain"] for change in longest["changes"] if change["reason"] == reason]
    before, after = (sum(row["seconds"] for row in side["lines"]) for side in (slow, mended))
    return {
        "predicted": gains[0] if gains else None,
        "measured": before / after,
        "seconds": before,
        "mended_seconds": after,
        "first": longest["reason"] == reason,
    }


def receipt(name: str, version: str) -> dict[str, Any]:
    """The receipt of a version, run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "receipt.json"
        words = ["run", "--why", "--json", str(file), str(FOLDER / f"{name}.py"), version]
        subprocess.run([sys.executable, "-m", "vecadd", *words], check=True, stderr=subprocess.PIPE)
        found: dict[str, Any] = json.loads(file.read_text())
    return found


def _new(n: int) -> Callable[[], Any]:
    a, b = np.ones((2, n), np.float32)
    return lambda: a + b


def _into(n: int) -> Callable[[], Any]:
    a, b, out = np.ones((3, n), np.float32)
    return lambda: np.add(a, b, out)


def _rows(n: int) -> Callable[[], Any]:
    a, b = np.ones((n // 4, 4), np.float32), np.ones(4, np.float32)
    return lambda: np.add(a, b, a)


FORMS: Mapping[str, Callable[[int], Callable[[], Any]]] = {"a + b": _new, "out=": _into, "rows of 4": _rows}


def cost(n: int, form: str) -> dict[str, Any]:
    """Seconds of an addition without a receipt and with one, and the median and the quartiles of their ratios."""
    add = FORMS[form](n)
    calls = max(10, int(SESSION / (_session(add, 10) / 10)))
    ratios, off, on = [], [], []
    for turn in range(COST_ROUNDS):
        taken = {}
        for noting in (False, True) if turn % 2 else (True, False):
            if noting:
                noted.start()
            taken[noting] = _session(add, calls) / calls
            if noting:
                noted.stop()
        off.append(taken[False])
        on.append(taken[True])
        ratios.append(taken[True] / taken[False])
    ratios.sort()
    quartiles = [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]]
    return {
        "form": form,
        "n": n,
        "seconds": median(off),
        "noted_seconds": median(on),
        "ratio": median(ratios),
        "quartiles": quartiles,
    }


def _session(add: Callable[[], Any], calls: int) -> float:
    begun = time.perf_counter()
    for _ in range(calls):
        add()
    return time.perf_counter() - begun


def _programs(rows: Sequence[Mapping[str, Any]]) -> Table:
    reason = Column("reason", right=False)
    table = Table("predictions", columns("program", reason, "time", "mended", "predicted", "measured", "off by"))
    for row in rows:
        expected, gain = row["predicted"], row["measured"]
        table.add(
            row["program"],
            row["reason"],
            show_seconds(row["seconds"]),
            show_seconds(row["mended_seconds"]),
            show_gain(expected) if expected else "-",
            show_gain(gain),
            f"{100 * (expected / gain - 1):+.0f} %" if expected else "-",
            style=Style.PLAIN if row["within"] else Style.FAILED,
        )
    return table


def _costs(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("the cost of a receipt", columns("form", "float32", "addition", "noted", "quartiles", "median"))
    for row in rows:
        low, high = (f"{100 * (ratio - 1):+.1f}" for ratio in row["quartiles"])
        table.add(
            row["form"],
            show_size(row["n"]),
            show_seconds(row["seconds"]),
            show_seconds(row["noted_seconds"]),
            f"{low} to {high} %",
            f"{100 * (row['ratio'] - 1):+.1f} %",
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
