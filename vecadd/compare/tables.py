"""The comparison, for a terminal and for a page."""

from collections.abc import Iterable

from vecadd.compare.verdict import BAD, VERDICTS, Compared, Comparison
from vecadd.tables import Column, Style, Table, columns, show_figure

METHOD = (
    "Rows are matched by what they measure. The ratio is the later time over the earlier one, of rates the "
    "earlier one over the later; above 1 is slower. Its 95 % interval follows from that of both logarithms, in "
    "quadrature: a check's own interval; of a bench, Student's for a median of six rounds, the fewest there are, from "
    "the p10 and p90 that it keeps. Slower or faster: the whole interval is beyond the smallest difference of "
    "interest; same: the whole interval is within it (two one-sided tests); undecided: neither; failed: there is no "
    "figure any more, or its check calls it critical and did not before. What differs from one "
    "run to the next on the same machine is in no interval of one run: compare two runs of one version first."
)


def table(title: str, rows: Iterable[Compared]) -> Table:
    """A line a row: what is worse first, then by the ratio."""
    result = Table(
        title,
        columns("what", "old", "new", "new / old", "95 %", Column("verdict", right=False)),
        optional_columns=("95 %", "old", "new"),
    )
    for row in ordered(rows):
        result.add(
            row.name,
            show_figure(row.old, row.unit),
            show_figure(row.new, row.unit),
            "-" if row.ratio is None else f"{row.ratio:.3g}",
            "-" if row.interval is None else f"{row.interval[0]:.3g} to {row.interval[1]:.3g}",
            row.verdict,
            style=Style.FAILED if row.verdict in BAD else Style.PLAIN,
        )
    return result


def ordered(rows: Iterable[Compared]) -> list[Compared]:
    """By verdict, in the order of VERDICTS, and by how far the ratio is from 1."""
    return sorted(
        rows, key=lambda row: (VERDICTS.index(row.verdict), -max(row.ratio or 1.0, 1 / (row.ratio or 1.0)), row.name)
    )


def summary(comparison: Comparison, least: float) -> str:
    """The verdicts counted, in a sentence."""
    counts = ", ".join(f"{comparison.count(verdict)} {verdict}" for verdict in VERDICTS)
    missing = [
        f"{len(names)} only in the {which} run"
        for which, names in (("old", comparison.only_old), ("new", comparison.only_new))
        if names
    ]
    return f"{len(comparison.rows)} figures in both runs, at {least:g} %: {'; '.join([counts, *missing])}"
