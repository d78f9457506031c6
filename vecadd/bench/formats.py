"""A run's rows as CSV, its tables as Markdown, and tables and pictures as a page of HTML."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from vecadd import pages
from vecadd.bench import opening
from vecadd.bench.tables import tables
from vecadd.figures import Figure, show_date
from vecadd.tables import table_as_markdown

_FIELDS = ("sweep", "rung", "dtype", "n")
_FIGURES = ("seconds", "p10", "p90", "bytes", "gbps", "limit_gbps", "fraction", "checked", "error")


def as_csv(rows: Iterable[Figure]) -> str:
    """A line a row. The parameters of a row follow its figures, one column each in the order of their first
    appearance; what is a list or a table in itself is JSON in its cell."""
    rows = list(rows)
    params = list(dict.fromkeys(name for row in rows for name in row.params))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*_FIELDS, *_FIGURES, *params])
    for row in rows:
        low, high = row.spread or (None, None)
        measured = [row.seconds, low, high, row.bytes, row.gbps, row.limit, row.fraction, row.checked, row.error]
        identity = [row.sweep, row.name, row.dtype, row.n]
        writer.writerow([*identity, *map(_cell, measured), *(_cell(row.params.get(name)) for name in params)])
    return text.getvalue()


def as_markdown(meta: Mapping[str, Any], rows: Iterable[Figure]) -> str:
    """The tables as they are printed, after the machine and its limits and before the method."""
    rows = list(rows)
    blocks = ["\n".join(f"- {line}" for line in [*opening.lines(meta, rows), origin(meta)])]
    for table in tables(rows):
        blocks += [f"## {table.title}", "\n".join(table_as_markdown(table))]
        blocks += ["\n".join(f"- {note}" for note in table.notes)] if table.notes else []
    wrong = opening.findings(meta, rows)
    blocks += ["\n".join(f"- {line}" for line in wrong)] if wrong else []
    blocks.append("\n".join(f"- {line}" for line in method(meta)))
    return "\n\n".join(["# vecadd bench", *blocks]) + "\n"


def as_page(meta: Mapping[str, Any], rows: Iterable[Figure]) -> str:
    """One page of HTML that needs nothing else: the machine and its limits, and of each sweep its pictures and tables.
    Needs Jinja2 and matplotlib."""
    from vecadd.bench import plots
    from vecadd.pages.pictures import picture

    rows = list(rows)
    if not rows:
        verdict = pages.verdict("Nothing was measured.", bad=True)
    elif meta["failures"] or not all(row.ok for row in rows):
        verdict = pages.verdict("Something failed or is above its limit.", bad=True)
    else:
        verdict = pages.verdict("Every sum is right, and no figure is above its limit.", bad=False)
    sections = [
        pages.Section("", "", [verdict, *(("text", line) for line in opening.findings(meta, rows))]),
        pages.Section("machine", "The machine", [("text", line) for line in opening.lines(meta, rows)]),
    ]
    for sweep in dict.fromkeys(row.sweep for row in rows):
        of_sweep = [row for row in rows if row.sweep == sweep]
        drawn = plots.figures(meta, of_sweep, recorded=False)
        parts = [*(picture(figure, name) for name, figure in drawn.items()), *map(pages.table, tables(of_sweep))]
        sections.append(pages.Section(sweep, sweep, parts))
    return pages.render(f"vecadd bench of {meta['machine']}", f"{origin(meta)}.", sections, method(meta))


def origin(meta: Mapping[str, Any]) -> str:
    """When and at which commit the run was."""
    return f"vecadd {meta['versions']['vecadd']}, {show_date(meta)}"


def method(meta: Mapping[str, Any]) -> list[str]:
    """How the run timed and what each sweep's clock was, a line each."""
    return [f"method: {meta['method']}", *(f"{sweep}: {clock}" for sweep, clock in meta["clocks"].items())]


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value) if isinstance(value, dict | list | tuple) else value
