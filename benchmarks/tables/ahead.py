"""Where others are surely faster than vecadd, in what is recorded."""

import textwrap
from collections.abc import Callable, Sequence

from benchmarks.tables.recordings import Recording, origin
from vecadd.figures import Figure
from vecadd.tables import show_size

WIDTH = 120
NAMED = 3  # as many cells are named one by one
PLACES = {
    "peer-device": "one addition on a GPU",
    "peer-queued": "additions on a GPU, one behind the other",
    "peer-layouts": "layouts and pairs of dtypes on a GPU",
    "peer-host": "on the host",
    "peer-installed": "NumPy's own addition, vecadd not installed",
    "peer-end-to-end": "from two NumPy arrays to a new one",
    "peer-files": "files",
}


def ahead(runs: Sequence[Recording]) -> list[str]:
    """A line for each library that is faster somewhere by the whole 95 % interval of the ratio."""
    lines: list[str] = []
    for run in runs:
        rows = [row for row in run.figures if _is_other(row)]
        for name in dict.fromkeys(map(_name(run.sweep), rows)):
            cells = [row for row in rows if _name(run.sweep)(row) == name]
            lines += _line(f"{name} ({PLACES[run.sweep]})", cells)
    return [*(lines or ["- None."]), "", f"*{origin(runs)}.*"]


def _line(what: str, cells: Sequence[Figure]) -> list[str]:
    faster = [row for row in cells if row.params["ratio_interval"][1] < 1]
    if not faster:
        return []
    shares = sorted(100 * (1 - row.params["ratio"]) for row in faster)
    least, most = (f"{share:.2g}" for share in (shares[0], shares[-1]))
    by = most if least == most else f"{least} to {most}"
    text = f"- {what}: {by} % less time in {len(faster)} of {len(cells)} cells{_where(faster, cells)}"
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _where(faster: Sequence[Figure], cells: Sequence[Figure]) -> str:
    largest = max(row.n for row in faster)
    if len(faster) <= NAMED:
        return f" ({', '.join(map(_cell, faster))})"
    return f", all of up to {show_size(largest)} elements" if largest < max(row.n for row in cells) else ""


def _cell(row: Figure) -> str:
    layout = row.sweep == "peer-layouts"
    return f"{row.params['form']}, {row.dtype}" if layout else f"{show_size(row.n)} {row.dtype}"


def _is_other(row: Figure) -> bool:
    return bool(row.seconds) and "ratio" in row.params and not row.name.startswith(("vecadd", "moving as much"))


def _name(sweep: str) -> Callable[[Figure], str]:
    """What a line is about: the library, and its form where it has several; of layouts the library alone."""
    return (lambda row: row.name.partition(" ")[0]) if sweep == "peer-layouts" else (lambda row: row.name)
