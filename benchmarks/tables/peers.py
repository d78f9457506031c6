"""README.md's tables of the peers: every library's time over ours, by what a stage varies."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from benchmarks.tables import cells, nearest_peer, route_sentences
from benchmarks.tables.call_costs import STAGE
from benchmarks.tables.recordings import Recording
from vecadd.figures import Figure
from vecadd.tables import markdown, show_size

MAIN = "float32"

RECORDED = {"peer-device": "on the device", "peer-host": "on the host"}
LIBRARIES = (  # by the names of their rows
    *(
        "CUB DeviceTransform",
        "CuTe DSL",
        "TileLang",
        "Warp",
        "arrow",
        "cuTile",
        "cuda.compute",
        "cupy",
        "helion",
        "jax",
    ),
    *("numba", "numexpr", "numkong", "numpy", "torch", "torch.compile", "triton"),
)


def host_forms(rows: list[Figure]) -> list[str]:
    """float32 on the host: our time in each form, NumPy's and the nearest other's over it, a line a size; our share of
    the machine's own limit where it was measured beside us."""
    main = [row for row in rows if row.dtype == MAIN]
    return _forms(main, lambda row: show_size(row.n), strip="vecadd ", shares=True, apart="numpy")


def installed(rows: list[Figure]) -> list[str]:
    """Our time in each form, and that of NumPy alone over it, a line a size."""
    return _forms(rows, lambda row: show_size(row.n), strip="installed ")


def host_dtypes(rows: list[Figure]) -> list[str]:
    """The other dtypes on the host, at the sizes that they were measured at."""
    others = [row for row in rows if row.dtype != MAIN]
    return _forms(others, lambda row: f"{row.dtype} {show_size(row.n)}", strip="vecadd ", apart="numpy")


def queued(rows: list[Figure]) -> list[str]:
    """Seconds of one of our additions in a row of them, and each peer's over them."""
    return _forms(rows, lambda row: f"{row.dtype} {show_size(row.n)}")


def routes(rows: list[Figure]) -> list[str]:
    """The chosen route beside each possible route, by dtype, memory and size."""
    compared = [row for row in rows if row.params.get("reference", row.name) == "add as routed"]
    table = _forms(compared, lambda row: f"{row.dtype} {show_size(row.n)}, {row.params['memory']}", strip="add ")
    return [*table, "", route_sentences.of_choice(compared)]


def recorded(runs: Sequence[Recording]) -> list[str]:
    """The libraries that the recorded comparisons hold, a line each, with their versions where the file has them."""
    lines = []
    for run in runs:
        rungs = {row.name for row in run.figures if row.seconds and not row.name.startswith("vecadd")}
        names = sorted(
            name for name in LIBRARIES if any(re.match(rf"{re.escape(name)}(?![\w.])", rung) for rung in rungs)
        )
        known = run.meta.get("versions", {})
        shown = [f"{name} {known[name]}" if name in known else name for name in names]
        lines.append(f"- {RECORDED[run.sweep]}: {', '.join(shown) or 'none'}")
    return lines


def one_size(rows: list[Figure]) -> list[str]:
    """The comparison at the one size at which each library's own round trip was measured."""
    compared = [row for row in rows if row.params.get("reference", row.name) == "add"]
    return [*plain(compared), "", route_sentences.of_link(compared)]


def files(rows: list[Figure]) -> list[str]:
    """A line for each place of the files, with the rate of all three and its share of the rate of moving them."""
    return plain(rows, rates=True)


def calls(rows: list[Figure]) -> list[str]:
    """The cost of each form of a call to its caller; its stages have a table of their own."""
    return plain([row for row in rows if not row.label.startswith(STAGE)])


def ratios(rows: list[Figure]) -> list[str]:
    """Time of each peer over ours by size; of several dtypes the nearest peer of each."""
    if len({row.dtype for row in rows}) > 1:
        return nearest_peer.table(rows)
    return _forms(rows, lambda row: show_size(row.n))


def misaligned(rows: list[Figure]) -> list[str]:
    """Seconds of aligned operands, and each other view's over them."""
    return _forms(rows, lambda row: f"{row.dtype} {show_size(row.n)}", strip="vecadd ")


def layouts(rows: list[Figure]) -> list[str]:
    """Our seconds in each form and the others' over them, a line a form and dtype."""
    return _forms(
        rows,
        lambda row: row.params["form"] + ("" if row.dtype in row.params["form"] else f", {row.dtype}"),
        name=lambda row: row.name.partition(" ")[0],
    )


def plain(rows: Sequence[Figure], *, rates: bool = False) -> list[str]:
    """A line a row: seconds, and the ratio with its interval to the row that it was compared with. The head names that
    row; with several such rows each line does."""
    rows = [row for row in rows if row.seconds is not None]
    several = len({row.n for row in rows}) > 1
    references = {str(row.params["reference"]) for row in rows if "reference" in row.params}
    whose = references.pop() if len(references) == 1 else ""
    lines = [
        [
            f"{row.label}, {row.dtype} {show_size(row.n)}" if several else row.label,
            cells.seconds(row),
            *([cells.rate(row) if row.fraction else "-"] if rates else []),
            _interval(row) + ("" if whose or "ratio" not in row.params else f" x {row.params['reference']}"),
        ]
        for row in rows
    ]
    over = f"time / {whose}" if whose else "time, as a multiple of another row's"
    head = ["", "time", *(["GB/s (% of limit)"] if rates else []), f"{over} (95 % interval)"]
    return markdown(head, lines)


def _forms(
    rows: Iterable[Figure],
    key: Callable[[Figure], str],
    strip: str = "",
    name: Callable[[Figure], str] | None = None,
    shares: bool = False,
    apart: str | None = None,
) -> list[str]:
    """A line for each key, a column for each name: seconds of what others are compared with, else the ratio.
    ``shares``: a second column of what others are compared with, where some of its rows have a limit. ``apart``: that
    peer keeps its column, and of several others the nearest is named in one."""
    rows = [row for row in rows if row.seconds is not None]
    called = name or _name
    show_ratio = _cell
    if apart and _peers(rows, apart) > 1:
        rows, show_ratio = _nearest(rows, key, apart), _named_cell
    references = {called(row) for row in rows if "ratio" not in row.params}
    limited = {called(row) for row in rows if "limit_share" in row.params} & references
    columns: list[tuple[str, str, Callable[[Figure | None], str]]] = []
    for label in dict.fromkeys(map(called, rows)):
        own = label.removeprefix(strip)
        columns.append((label, f"{own}: time" if label in references else f"{label} / ours", show_ratio))
        if shares and label in limited:
            columns.append((label, f"{own}: % of streaming limit", _share))
    found = {(key(row), called(row)): row for row in rows}
    lines = [
        [line, *(show(found.get((line, label))) for label, _, show in columns)]
        for line in dict.fromkeys(map(key, rows))
    ]
    return markdown(["", *(head for _, head, _ in columns)], lines)


def _peers(rows: Sequence[Figure], apart: str) -> int:
    """How many libraries but that one are compared with us in the form that most of them have."""
    others = Counter(
        row.params["reference"] for row in {row.name: row for row in rows}.values() if "ratio" in row.params
    )
    return max(others.values(), default=0) - any(row.name.startswith(apart) for row in rows)


def _nearest(rows: Sequence[Figure], key: Callable[[Figure], str], apart: str) -> list[Figure]:
    """Our rows and those of that peer, and in place of the others' the nearest of each line and form."""
    found: dict[tuple[str, str], Figure] = {}
    for row in rows:
        if "ratio" not in row.params or row.name.startswith(apart):
            found[key(row), row.name] = row
            continue
        library, form = row.name.split(" ", 1)
        at = key(row), f"nearest other {form}"
        if at not in found or row.params["ratio"] < found[at].params["ratio"]:
            found[at] = replace(row, name=at[1]).with_params(library=library)
    return list(found.values())


def _name(row: Figure) -> str:
    """The row's label without its memory, which the line names."""
    return row.label.replace(f" ({row.params['memory']})", "") if "memory" in row.params else row.label


def _cell(row: Figure | None) -> str:
    if row is None:
        return "-"
    if "ratio" not in row.params:
        return cells.seconds(row)
    ahead = row.params["ratio_interval"][1] < 1
    ratio = f"{row.params['ratio']:.3g}"
    return f"**{ratio}**" if ahead else ratio


def _named_cell(row: Figure | None) -> str:
    library = row.params.get("library") if row else None
    return f"{library} {_cell(row)}" if library else _cell(row)


def _share(row: Figure | None) -> str:
    return "-" if row is None or "limit_share" not in row.params else f"{100 * row.params['limit_share']:.0f} %"


def _interval(row: Figure) -> str:
    if "ratio" not in row.params:
        return "1"
    low, high = row.params["ratio_interval"]
    return f"{row.params['ratio']:.3g} ({low:.3g} to {high:.3g})"
