"""Whether the receipts of `vecadd run --why` predict what their advice gains, and what a receipt costs.

python -m benchmarks.why                               # a few minutes, on a machine that does nothing else
python -m benchmarks.why --json benchmarks/results/MACHINE/why.json
python -m benchmarks.why --programs bias,heat --rounds 1
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vecadd._command import target
from vecadd.bench import machine
from vecadd.bench.timing import paired_interval
from vecadd.figures import Figure, write_run
from vecadd.info import info
from vecadd.tables import Column, Screen, Style, Table, columns, show_gain, show_seconds, show_size, table_as_markdown
from vecadd.why import recording

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "why"
PREDICTED, COST = "why-programs", "why-costs"  # the sweeps of a result file
METHOD = "medians of rounds, in which both sides of a comparison take turns"
CLOCKS = {
    PREDICTED: "each program as it is and mended, each with a receipt, in a process of its own; time and mended are "
    "what the additions of each took, by its receipt; measured is the gain from one to the other, predicted what the "
    "first receipt says of mending that reason",
    COST: "timed by the host, in random order in each round: a hundredth of a second of a + b with a receipt, and "
    "twice without one, each behind additions that are not timed, among them the first 64, whose page faults are all "
    "counted; median and interval are of the rounds' ratios of recorded to not recorded, the interval at 95 % by the "
    "sign test; same again is that interval of the two without a receipt",
}
ROUNDS = 5
SESSION = 0.01  # seconds of additions: memory is as fast in two so close, and in two of 0.1 s 3 % apart
COST_SECONDS, COST_ROUNDS = 12.0, 6  # of a size, and rounds at least
SETTLING = 65  # additions before those that are timed: of the first 64 a receipt counts the page faults
SIZES = (1000, 16_400, 1 << 16, 1 << 18, 1 << 20, 1 << 22)  # float32; the second is the first that is recorded


@dataclass(frozen=True)
class Program:
    """A file of examples/why, the reason that its receipt should find, and one of its sums: elements and dtype."""

    name: str
    reason: str
    n: int
    dtype: str


PROGRAMS = (
    Program("audio_mix", "first use of memory", 12_000_000, "float32"),
    Program("bias", "short rows", 3_000_000, "float32"),
    Program("ensemble", "operands evicted from the cache", 1 << 15, "float64"),
    Program("heat", "operands that overlap", 7_999_999, "float64"),
    Program("image_stack", "a cast in pieces", 2160 * 3840, "float32"),
    Program("optimiser", "page faults of a new sum", 12_000_000, "float32"),
    Program("pandas_column", "page faults of a new sum", 6_000_000, "float64"),
    Program("particles", "gaps between elements", 250_000, "float32"),
    Program("running_mean", "one thread", 1 << 24, "float32"),
    Program("symmetric", "short rows", 2048 * 2048, "float64"),
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
    costs = [] if given.no_cost else [cost(n) for n in SIZES]
    if given.json is not None:
        conditions = machine.conditions_since(conditions)
        meta = machine.meta(info(), conditions, method=METHOD, clocks=CLOCKS)
        write_run(given.json, meta, [*rows, *costs])
    Screen(sys.stderr).show([program_table(rows), *([cost_table(costs)] if costs else [])])
    return 0 if all(map(is_within, rows)) else 1


def measured(program: Program, rounds: int) -> Figure:
    """The medians of a program's rounds, and the predicted and the measured gain of each round."""
    pairs = [
        prediction(program.reason, receipt(program.name, "slow"), receipt(program.name, "mended"))
        for _ in range(rounds)
    ]
    predicted = [pair["predicted"] for pair in pairs if pair["predicted"] is not None]
    params = {
        "reason": program.reason,
        "predicted": median(predicted) if predicted else None,
        "measured": median(pair["measured"] for pair in pairs),
        "first": sum(pair["first"] for pair in pairs),  # rounds in which the reason was the one that gains most
        "mended_seconds": median(pair["mended_seconds"] for pair in pairs),
        "rounds": [[pair["predicted"], pair["measured"]] for pair in pairs],
    }
    seconds = median(pair["seconds"] for pair in pairs)
    return Figure(
        PREDICTED, program.name, program.dtype, program.n, params, value=seconds, bytes=pairs[0]["bytes"]
    )  # what limits these additions is not known, and others compare their sums


def prediction(reason: str, slow: Mapping[str, Any], mended: Mapping[str, Any]) -> dict[str, Any]:
    """What the slow version's receipt predicts of mending that reason, and what the mended one's says it gained."""
    longest = max(slow["lines"], key=lambda row: row["seconds"])
    gains = [change["gain"] for change in longest["changes"] if change["reason"] == reason]
    before, after = (sum(row["seconds"] for row in side["lines"]) for side in (slow, mended))
    return {
        "predicted": gains[0] if gains else None,
        "measured": before / after,
        "seconds": before,
        "bytes": sum(row["bytes"] for row in slow["lines"]),
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


def cost(n: int) -> Figure:
    """Seconds of a + b without a receipt and with one, and the intervals of their ratios: with to without, and of those
    without to the same again."""
    a, b = np.ones((2, n), np.float32)
    _session(a, b, 10)
    each = _session(a, b, 10) / 10
    calls = max(2, round(SESSION / each))
    settling = SETTLING + calls // 4  # starting a receipt takes a millisecond, after which the caches are cold
    taken: dict[str, list[float]] = {"off": [], "again": [], "on": []}
    order = random.Random(n)
    for _ in range(max(COST_ROUNDS, round(COST_SECONDS / (len(taken) * (settling + calls) * each)))):
        for side in order.sample(list(taken), len(taken)):
            if side == "on":
                recording.start()
            _session(a, b, settling)
            taken[side].append(_session(a, b, calls) / calls)
            if side == "on":
                recording.stop()
    low, middle, high = paired_interval(taken["on"], taken["off"])
    least, _, most = paired_interval(taken["again"], taken["off"])
    params = {
        "recorded_seconds": median(taken["on"]),
        "ratio": middle,
        "ratio_interval": [low, high],
        "same_interval": [least, most],
    }
    return Figure(COST, "a + b", "float32", n, params, value=median(taken["off"]), bytes=12 * n)


def _session(a: NDArray[Any], b: NDArray[Any], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        a + b
    return time.perf_counter() - begin


# The tables, for the documents and for the terminal

WITHIN = 0.15  # of the measured gain, which a prediction should come to


def is_within(row: Figure) -> bool:
    """Whether the prediction came so near."""
    predicted, measured = row.params["predicted"], row.params["measured"]
    return predicted is not None and abs(predicted / measured - 1) <= WITHIN


def programs(rows: list[Figure]) -> list[str]:
    """A line a program, and how many predictions are within that."""
    near = sum(map(is_within, rows))
    return [
        *table_as_markdown(program_table(rows)),
        "",
        f"Of {len(rows)} predictions {near} are within {100 * WITHIN:.0f} % of the measured gain; "
        f"{len(rows[0].params['rounds'])} rounds.",
    ]


def costs(rows: list[Figure]) -> list[str]:
    """A line a form and size, and the range of the medians."""
    medians = [_percent(row.params["ratio"]) for row in rows]
    said = f"The medians are between {min(medians):+.1f} and {max(medians):+.1f} %."
    return [*table_as_markdown(cost_table(rows)), "", said]


def program_table(rows: Sequence[Figure]) -> Table:
    """A line a program; what is farther off than WITHIN has failed."""
    reason = Column("reason", right=False)
    table = Table("predictions", columns("program", reason, "time", "mended", "predicted", "measured", "off by"))
    for row in rows:
        predicted, measured = row.params["predicted"], row.params["measured"]
        table.add(
            row.name,
            row.params["reason"],
            show_seconds(row.seconds or 0.0),
            show_seconds(row.params["mended_seconds"]),
            show_gain(predicted) if predicted else "-",
            show_gain(measured),
            f"{100 * (predicted / measured - 1):+.0f} %" if predicted else "-",
            style=Style.PLAIN if is_within(row) else Style.FAILED,
        )
    return table


def cost_table(rows: Sequence[Figure]) -> Table:
    """A line a size: an addition without a receipt and with one."""
    names = ("float32", "a + b", "recorded", "median", "interval", "same again")
    table = Table("the cost of a receipt", columns(*names))
    for row in rows:
        table.add(
            show_size(row.n),
            show_seconds(row.seconds or 0.0),
            show_seconds(row.params["recorded_seconds"]),
            f"{_percent(row.params['ratio']):+.1f} %",
            _range(row.params["ratio_interval"]),
            _range(row.params["same_interval"]),
        )
    return table


def _range(ratios: Sequence[float]) -> str:
    """ "+0.1 to +2.3 %"."""
    return " to ".join(f"{_percent(ratio):+.1f}" for ratio in ratios) + " %"


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


if __name__ == "__main__":
    sys.exit(main())
