"""vecadd compare: what is faster and what is slower than in an earlier run, by both runs' result files."""

import argparse
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import exp, hypot, inf, isfinite, log, sqrt
from pathlib import Path

from vecadd import pages
from vecadd._command import (
    UsageError,
    add_comparison_options,
    epilog,
    package_version,
    refuse_inputs,
)
from vecadd.bench.timing import FEWEST_ROUNDS
from vecadd.figures import (
    COMPARISON,
    WRITERS,
    Check,
    Figure,
    Outputs,
    Range,
    Run,
    json_text,
    less_is_better,
    read_objects,
    run_or_check,
)
from vecadd.tables import Column, Style, Table, columns, show_figure

# The figures of result files, each under a name by which two runs are matched.
#
# A row of ``vecadd bench`` or of a comparison with other libraries is named by its sweep, rung, parameters, dtype and
# size; a finding of ``vecadd check`` by its id. Where several files have the same figure, the newest counts.

# What of a row's parameters says what was measured; the others are what was found.
IDENTITY = ("parameters", "memory", "clock", "form", "shape", "kernel", "experiment")
SWEPT = {"blocksize": ("block",)}  # a block that is not swept is what the GPU's launch config has: two GPUs may differ

# Of a median of six samples of the normal law whose p10 and p90 are known: Student's 97.5 % quantile for five degrees
# of freedom, times a median's standard error. The files do not say how many rounds there were; six are the fewest.
_HALF = 2.571 * sqrt(3.1416 / 2 / FEWEST_ROUNDS)
_DECILES = 2.563  # standard deviations from p10 to p90

Key = tuple[str, ...]


@dataclass
class Side:
    """One side of the comparison: its figures, and the machines that they come from."""

    figures: dict[Key, Figure]
    machines: list[str]


def read_runs(path: Path) -> list[Run]:
    """The runs in the result files there, oldest first. Raises UsageError for what is not there, ValueError, which
    names the file, for another file."""
    found: list[tuple[str, Run]] = []
    for file, content in read_objects([path]):
        if isinstance(content, ValueError):
            raise content
        if writer := WRITERS.get(str(content.get("schema"))):
            raise ValueError(f"{file} is what {writer} found in result files, and not one itself")
        run = run_or_check(file, content)
        found.append((run.time.isoformat() if isinstance(run, Check) else str(run.meta.get("date")), run))
    return [run for _, run in sorted(found, key=lambda pair: pair[0])]


def side_of(runs: Iterable[Run]) -> Side:
    """All figures of these files; a later one's count. Raises ValueError, which names the file, for a row whose numbers
    cannot be timed."""
    figures: dict[Key, Figure] = {}
    machines: list[str] = []
    for run in runs:
        known = f"{run.host} ({run.machine_type})" if isinstance(run, Check) else run.meta.get("machine", "unknown")
        machines.append(str(known))
        try:
            figures |= {_key(each): _with_interval(each) for each in run.figures if each.unit}
        except (ArithmeticError, ValueError) as error:
            raise ValueError(f"{run.path} is not a result file: a row cannot be read: {error}") from error
    return Side(figures, list(dict.fromkeys(machines)))


def _key(figure: Figure) -> Key:
    if figure.measurement:
        return "check", figure.name, figure.unit
    names = (*IDENTITY, *SWEPT.get(figure.sweep, ()))
    identity = {name: figure.params[name] for name in names if name in figure.params}
    return figure.sweep, figure.name, figure.dtype, str(figure.n), json.dumps(identity, sort_keys=True)


def _with_interval(figure: Figure) -> Figure:
    """The figure with its 95 % interval, which is None where the file does not say. A wrong result of a bench has no
    value, whatever time it took. The interval of a figure that other work has disturbed says nothing of the machine.

    The interval of a bench's figure is that of the median's logarithm, from the distance between p10 and p90.
    """
    if figure.measurement:
        return replace(figure, interval=None) if figure.is_disturbed else figure
    seconds = None if figure.error is not None else figure.seconds
    interval = None
    if seconds and figure.spread and figure.spread[0] > 0:
        low, high = figure.spread
        half = _HALF * log(high / low) / _DECILES
        interval = seconds * exp(-half), seconds * exp(half)
    return replace(figure, value=seconds, unit="s", interval=interval)


def show_name(figure: Figure) -> str:
    """The figure's title, with what else tells it from others of its sweep."""
    more = [str(figure.params[name]) for name in ("form", "kernel", "experiment") if name in figure.params]
    return " ".join([figure.title, *more])


# The ratio of two figures with its interval, and what it says.
#
# The ratio is how many times as long the later one takes; of rates, their inverse. Its 95 % interval adds the widths of
# both logarithms' intervals in quadrature. It is compared with the zone in which a difference is of no interest: "same"
# where it is inside of the zone, as in the equivalence test of two one-sided tests (D. J. Schuirmann, 1987), "slower"
# or "faster" where it is outside, and "undecided" where it does neither.

VERDICTS = ("slower", "failed", "faster", "same", "undecided")
BAD = ("slower", "failed")


@dataclass(frozen=True)
class Compared:
    """A figure of both runs. ``ratio`` above 1: the later one is slower; with its interval. None where it has none."""

    old: Figure
    new: Figure
    verdict: str
    ratio: float | None = None
    interval: Range | None = None

    @property
    def name(self) -> str:
        return show_name(self.new)


@dataclass(frozen=True)
class Comparison:
    """``only_old`` and ``only_new`` are the names of figures that the other side lacks."""

    rows: list[Compared]
    only_old: list[str]
    only_new: list[str]

    def count(self, verdict: str) -> int:
        """How many rows have that verdict."""
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def is_worse(self) -> bool:
        """Whether something is significantly slower, or has failed that did not fail before."""
        return any(row.verdict in BAD for row in self.rows)


def compare_sides(old: Side, new: Side, least: float) -> Comparison:
    """Compares the figures that both have. ``least`` is the smallest share of interest."""
    return Comparison(
        [compare_figures(old.figures[key], figure, least) for key, figure in new.figures.items() if key in old.figures],
        [show_name(figure) for key, figure in old.figures.items() if key not in new.figures],
        [show_name(figure) for key, figure in new.figures.items() if key not in old.figures],
    )


def compare_figures(old: Figure, new: Figure, least: float) -> Compared:
    """One figure of both runs. One that has failed and did not fail before is that, whatever its ratio. Those without
    an interval, or an open one, are the same where they are equal, else undecided; so are those that have no ratio,
    because one is zero or below."""
    has_failed = _has_failed(new) and not _has_failed(old)
    if old.value is None or new.value is None or min(old.value, new.value) <= 0:
        verdict = "failed" if has_failed or (old.value and new.value is None) else "undecided"
        return Compared(old, new, verdict)
    sign = 1 if less_is_better(new.unit) else -1
    ratio = sign * log(new.value / old.value)
    below, above = (0, 1) if sign > 0 else (1, 0)
    low = ratio - hypot(_reach(new, below), _reach(old, 1 - below))
    high = ratio + hypot(_reach(new, above), _reach(old, 1 - above))
    interval = (exp(low), exp(high)) if isfinite(high - low) else None
    if has_failed:
        verdict = "failed"
    elif interval is None:
        verdict = "undecided" if ratio else "same"
    else:
        verdict = _verdict(low, high, log(1 + least))
    return Compared(old, new, verdict, exp(ratio), interval)


def _has_failed(figure: Figure) -> bool:
    return figure.error is not None or figure.fails


def _reach(figure: Figure, end: int) -> float:
    """How far the figure's interval reaches at that end, as a logarithm."""
    if figure.value is None or figure.interval is None or figure.interval[end] <= 0:
        return inf
    return abs(log(figure.interval[end] / figure.value))


def _verdict(low: float, high: float, zone: float) -> str:
    if low > zone:
        return "slower"
    if high < -zone:
        return "faster"
    return "same" if -zone < low and high < zone else "undecided"


# The comparison, for a terminal and for a page.

METHOD = (
    "Rows are matched by what they measure. The ratio is the later time over the earlier one, of rates the "
    "earlier one over the later; above 1 is slower. Its 95 % interval follows from that of both logarithms, in "
    "quadrature: a check's own interval; of a bench, Student's for a median of six rounds, the fewest there are, from "
    "the p10 and p90 that it keeps. Slower or faster: the whole interval is beyond the smallest difference of "
    "interest; same: the whole interval is within it (two one-sided tests); undecided: neither; failed: there is no "
    "figure any more, or its check calls it critical and did not before. What differs from one "
    "run to the next on the same machine is in no interval of one run: compare two runs of one version first."
)


def make_table(title: str, rows: Iterable[Compared]) -> Table:
    """A line a row: what is worse first, then by the ratio."""
    result = Table(
        title,
        columns("what", "old", "new", "new / old", "95 %", Column("verdict", right=False)),
        optional_columns=("95 %", "old", "new"),
    )
    for row in order_rows(rows):
        result.add(
            row.name,
            show_figure(row.old.value, row.old.unit),
            show_figure(row.new.value, row.new.unit),
            "-" if row.ratio is None else f"{row.ratio:.3g}",
            "-" if row.interval is None else f"{row.interval[0]:.3g} to {row.interval[1]:.3g}",
            row.verdict,
            style=Style.FAILED if row.verdict in BAD else Style.PLAIN,
        )
    return result


def order_rows(rows: Iterable[Compared]) -> list[Compared]:
    """By verdict, in the order of VERDICTS, and by how far the ratio is from 1."""
    return sorted(
        rows, key=lambda row: (VERDICTS.index(row.verdict), -max(row.ratio or 1.0, 1 / (row.ratio or 1.0)), row.name)
    )


def show_summary(comparison: Comparison, least: float) -> str:
    """The verdicts counted, in a sentence."""
    counts = ", ".join(f"{comparison.count(verdict)} {verdict}" for verdict in VERDICTS)
    missing = [
        f"{len(names)} only in the {which} run"
        for which, names in (("old", comparison.only_old), ("new", comparison.only_new))
        if names
    ]
    return f"{len(comparison.rows)} figures in both runs, at {least:g} %: {'; '.join([counts, *missing])}"


# The command

VERSION = 1
PICTURED = 40  # rows, at most; the table has all

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `vecadd compare` takes."""
    what = "files of vecadd bench, of the comparisons with other libraries or of vecadd check: one file, or a folder"
    parser.add_argument("old", type=Path, metavar="OLD", help=f"the earlier run: {what}")
    parser.add_argument("new", type=Path, metavar="NEW", help="the later run")
    add_comparison_options(parser)
    parser.add_argument("--all", action="store_true", help="show the rows that are the same or undecided too")
    parser.epilog = epilog(
        {
            "vecadd compare before.json after.json": "what a change of the code, the driver or the machine has done",
            "vecadd compare before after --least 2 --html compare.html": "two folders of result files, and a page",
        },
        {
            0: "nothing is significantly slower",
            1: "something is significantly slower, or fails that did not fail",
            2: "could not be asked: a wrong option, files of another kind or with nothing in common, a missing package",
        },
    )


def run(arguments: argparse.Namespace) -> int:
    """Reads, compares, prints, writes; returns the exit status. Raises ValueError for files of another kind,
    UsageError for those with nothing in common."""
    outputs = Outputs(arguments, "json", "html")
    runs = [read_runs(path) for path in (arguments.old, arguments.new)]
    refuse_inputs(outputs.paths, [run.path for side in runs for run in side if isinstance(run.path, Path)])
    old, new = map(side_of, runs)
    comparison = compare_sides(old, new, arguments.least / 100)
    if not comparison.rows:
        raise UsageError(
            f"{arguments.old} and {arguments.new} have no figure in common: they have {len(old.figures)} and "
            f"{len(new.figures)}, of other sweeps, rungs, dtypes or sizes"
        )
    outputs.write(
        {
            "json": lambda: json_text(_content(arguments, old, new, comparison)),
            "html": lambda: _page(arguments, old, new, comparison),
        }
    )
    screen = outputs.screen
    shown = make_table(
        "compare", [row for row in comparison.rows if arguments.all or row.verdict not in ("same", "undecided")]
    )
    screen.show([shown] if shown.lines else [])
    screen.say(*_machines(old, new), show_summary(comparison, arguments.least))
    return 1 if comparison.is_worse else 0


def _machines(old: Side, new: Side) -> list[str]:
    if old.machines == new.machines:
        return []
    return [f"the old run is of {', '.join(old.machines)}, the new one of {', '.join(new.machines)}"]


def _content(arguments: argparse.Namespace, old: Side, new: Side, comparison: Comparison) -> dict[str, object]:
    return {
        "schema": COMPARISON,
        "schema_version": VERSION,
        "vecadd": package_version(),
        "status": "slower" if comparison.is_worse else "not slower",
        "least_percent": arguments.least,
        "machines": {"old": old.machines, "new": new.machines},
        "counts": {name: comparison.count(name) for name in VERDICTS},
        "rows": [
            {
                "name": row.name,
                "old": row.old.value,
                "new": row.new.value,
                "unit": row.new.unit,
                "ratio": row.ratio,
                "interval": row.interval,
                "verdict": row.verdict,
            }
            for row in comparison.rows
        ],
        "only_old": comparison.only_old,
        "only_new": comparison.only_new,
    }


def _page(arguments: argparse.Namespace, old: Side, new: Side, comparison: Comparison) -> str:
    kinds = {"slower": "bad", "failed": "bad", "faster": "good"}
    decided = [row for row in comparison.rows if row.ratio and row.interval and row.verdict != "undecided"]
    rows = [
        (row.name, row.interval[0], row.ratio, row.interval[1], (), kinds.get(row.verdict, "plain"))
        for row in order_rows(decided)[:PICTURED]
        if row.ratio and row.interval
    ]
    said = show_summary(comparison, arguments.least)
    caption = (
        f"The {len(rows)} figures that say most, slower ones first, each with its 95 % interval: at 1 both runs take "
        "the same time"
    )
    changes: pages.Part = "missing", "No difference is decided by its interval."
    if rows:
        changes = pages.strips(rows, caption, "time of the new run over that of the old one", 1.0)
    table = make_table(f"All {len(comparison.rows)} figures", comparison.rows)
    sections = {
        "": [pages.verdict(f"{said}.", bad=comparison.is_worse)],
        "What has changed": [changes],
        "All figures": [("folded", (f"The figures: {table.title}", pages.table(table)))],
        "In one run alone": [_list_only("old", comparison.only_old), _list_only("new", comparison.only_new)],
    }
    return pages.render(
        f"{arguments.new.name} against {arguments.old.name}",
        f"Old: {', '.join(old.machines)}. New: {', '.join(new.machines)}.",
        sections,
        [METHOD],
    )


def _list_only(which: str, names: list[str]) -> pages.Part:
    if not names:
        return "missing", f"None is only in the {which} run."
    return "folded", (f"Only in the {which} run: {len(names)}", ("list", names))
