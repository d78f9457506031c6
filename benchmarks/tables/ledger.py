"""The ledger of the documents' claims, and what the refuted ones teach."""

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

from benchmarks.claims import CLAIMS, MACHINE, lessons
from benchmarks.claims.claim import Judged, Verdict, judge
from vecadd.bench.results import Row
from vecadd.bench.tables.table import markdown

WIDTH = 120
_HEAD = ["claim", "its figure", "ours", "holds at", "verdict", "why", "shown by"]


def judged(rows: Sequence[Row]) -> dict[str, list[Judged]]:
    """Each claim with its verdict by these rows, by the file of the claims."""
    return {name: [judge(claim, rows) for claim in claims] for name, claims in CLAIMS.items()}


def ledger(rows: list[Row]) -> list[str]:
    """How many claims hold, and each of them: what the document says, our figure beside its, and why."""
    found = judged(rows)
    lines = [*_counts(found), ""]
    for name, claims in found.items():
        cells = [[*_cells(each), _shown_by(name, each)] for each in claims]
        lines += [f"**{_title(name)}**", "", *markdown(_HEAD, cells, [False] * len(_HEAD)), ""]
    return lines[:-1]


def teachings(rows: list[Row]) -> list[str]:
    """The paragraphs of the refutations that teach most."""
    lines: list[str] = []
    for title, paragraph in lessons.paragraphs(rows).items():
        lines += [*textwrap.wrap(f"**{title}.** {paragraph}", WIDTH, break_on_hyphens=False), ""]
    return lines[:-1]


def _counts(found: Mapping[str, Sequence[Judged]]) -> list[str]:
    cells = []
    for name, claims in found.items():
        number = Counter(each.verdict for each in claims)
        cells.append([_title(name), *(str(number[verdict]) for verdict in Verdict), str(len(claims))])
    cells.append(["all", *(str(sum(int(line[column]) for line in cells)) for column in range(1, len(Verdict) + 2))])
    return markdown(["claims", *(verdict.value for verdict in Verdict), "all"], cells)


def _title(name: str) -> str:
    """document_004_matrices: "Document 004, matrices"."""
    first, number, *more = name.split("_")
    return ", ".join([f"{first.capitalize()} {number}", *more])


def _cells(each: Judged) -> list[str]:
    claim = each.claim
    return [claim.says, claim.theirs, each.ours, claim.rule.words(claim.ours.show), each.verdict.value, each.why]


def _shown_by(name: str, each: Judged) -> str:
    """The files that hold the rows; the claim's own file where its document's digits decide."""
    if each.verdict is Verdict.OPEN:
        return "-"
    files = [f"results/{MACHINE}/{sweep}.json" for sweep in each.sweeps] or [f"claims/{name}.py"]
    return ", ".join(f"[{file.rpartition('/')[2]}](../benchmarks/{file})" for file in files)
