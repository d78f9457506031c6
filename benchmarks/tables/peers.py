"""The documents' tables of the peers: every library's time over ours, by what a stage varies."""

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import geometric_mean

from benchmarks.peers import device_peers, host_stage
from benchmarks.tables import sweeps
from benchmarks.tables.recordings import Recording, origin
from vecadd.figures import Figure
from vecadd.tables import markdown, show_seconds, show_size

MAIN = "float32"

RECORDED = {"peer-device": "on the device", "peer-host": "on the host"}


def host_forms(rows: list[Figure]) -> list[str]:
    """float32 on the host, a line a size."""
    return _by_form([row for row in rows if row.dtype == MAIN], lambda row: show_size(row.n))


def installed(rows: list[Figure]) -> list[str]:
    """NumPy's own addition with vecadd in it and without, a line a size."""
    return _by_form(rows, lambda row: show_size(row.n))


def host_dtypes(rows: list[Figure]) -> list[str]:
    """The other dtypes on the host, at the sizes that they were measured at."""
    return _by_form([row for row in rows if row.dtype != MAIN], lambda row: f"{row.dtype} {show_size(row.n)}")


def queued(rows: list[Figure]) -> list[str]:
    """One of our additions in a row, Triton's with an early trigger and the nearest other one over it; then every
    library's least and most."""
    ratios: dict[str, list[float]] = {}
    for row in rows:
        if row.seconds and "ratio" in row.params:
            ratios.setdefault(row.name, []).append(row.params["ratio"])
    spans = "; ".join(f"{name} {min(found):.3g} to {max(found):.3g}" for name, found in ratios.items())
    table = _by_form(rows, lambda row: show_size(row.n), lambda row: row.dtype, apart="triton, early")
    return [*table, "", f"Over ours in all cells: {spans}."]


def routes(rows: list[Figure]) -> list[str]:
    """The chosen route beside each possible route, by dtype, memory and size."""
    compared = [row for row in rows if row.params.get("reference", row.name) == "add as routed"]
    shown = [row for row in compared if row.name != AGAIN]
    table = _forms(shown, lambda row: f"{row.dtype} {show_size(row.n)}, {row.params['memory']}", strip="add ")
    return [*table, "", describe_choice(compared)]


def recorded(runs: Sequence[Recording]) -> list[str]:
    """The libraries in the recorded comparisons, a line each, with their versions where the file has them."""
    libraries = {entry.name for entry in device_peers.entries()} | {entry.name for entry in host_stage.ENTRIES}
    lines = []
    for run in runs:
        rungs = {row.name for row in run.figures if row.seconds and not row.name.startswith("vecadd")}
        names = sorted(
            name for name in libraries if any(re.match(rf"{re.escape(name)}(?![\w.])", rung) for rung in rungs)
        )
        known = run.meta.get("versions", {})
        shown = [f"{name} {known[name]}" if name in known else name for name in names]
        lines.append(f"- {RECORDED[run.sweep]}: {', '.join(shown) or 'none'}")
    return lines


def one_size(rows: list[Figure]) -> list[str]:
    """The comparison at the one size at which each library's own round trip was measured."""
    compared = [row for row in rows if row.params.get("reference", row.name) == "add"]
    return [*plain(compared), "", describe_link(compared)]


def files(rows: list[Figure]) -> list[str]:
    """A line for each place of the files, with the rate of all three and its share of the rate of moving them."""
    return plain(rows, rates=True)


def calls(rows: list[Figure]) -> list[str]:
    """The cost of each form of a call to its caller; its stages have a table of their own."""
    return plain([row for row in rows if not row.label.startswith(sweeps.STAGE)])


def ratios(rows: list[Figure]) -> list[str]:
    """Time of each peer over ours by size; of several dtypes the nearest peer of each."""
    if len({row.dtype for row in rows}) > 1:
        return nearest_peers(rows)
    return _forms(rows, lambda row: show_size(row.n))


def misaligned(rows: list[Figure]) -> list[str]:
    """Our time for aligned operands, and over it each library's in the view that takes it longest."""
    slowest: dict[tuple[str, str, int], Figure] = {}
    for row in rows:
        at = row.name.partition(" ")[0] + " at most" * ("ratio" in row.params), row.dtype, row.n
        if row.seconds and row.params.get("ratio", 0) >= slowest.get(at, row).params.get("ratio", 0):
            slowest[at] = replace(row, name=at[0])
    return _forms(slowest.values(), lambda row: f"{row.dtype} {show_size(row.n)}")


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
            sweeps.show_time(row),
            *([sweeps.show_rate_and_share(row) if row.fraction else "-"] if rates else []),
            _interval(row) + ("" if whose or "ratio" not in row.params else f" x {row.params['reference']}"),
        ]
        for row in rows
    ]
    over = f"time / {whose}" if whose else "time, as a multiple of another row's"
    head = ["", "time", *(["GB/s (% of limit)"] if rates else []), f"{over} (95 % interval)"]
    return markdown(head, lines)


def _by_form(
    rows: Sequence[Figure],
    key: Callable[[Figure], str],
    form: Callable[[Figure], str] = lambda row: str(row.params.get("reference", row.name)).partition(" ")[2],
    apart: str = "numpy",
) -> list[str]:
    """A line for each key, a column for each form: our time and its share of the limit where that was measured, and
    over it the times of the peer ``apart`` and of the nearest other one."""
    cells: dict[tuple[str, str], dict[str, tuple[float, str]]] = {}
    for row in rows:
        if row.seconds is not None:
            who = "ours" if "ratio" not in row.params else "apart" if row.name.startswith(apart) else "other"
            share = f" ({100 * row.params['limit_share']:.0f} %)" if "limit_share" in row.params else ""
            named = "" if who == "ours" else f"{row.name.removesuffix(form(row)).strip()} "
            shown = row.params.get("ratio", 0), f"{named}{_cell(row)}{share}"
            cell = cells.setdefault((key(row), form(row)), {})
            cell[who] = min(cell.get(who, shown), shown)
    forms = list(dict.fromkeys(map(form, rows)))
    lines = [
        [line, *(", ".join(text for _, text in cells.get((line, each), {"": (0, "-")}).values()) for each in forms)]
        for line in dict.fromkeys(map(key, rows))
    ]
    return markdown(["time, others / ours", *forms], lines)


def _forms(
    rows: Iterable[Figure], key: Callable[[Figure], str], strip: str = "", name: Callable[[Figure], str] | None = None
) -> list[str]:
    """A line for each key, a column for each name: seconds for the reference, ratios for the others."""
    rows = [row for row in rows if row.seconds is not None]
    called = name or _name
    references = {called(row) for row in rows if "ratio" not in row.params}
    labels = list(dict.fromkeys(map(called, rows)))
    heads = [f"{label.removeprefix(strip)}: time" if label in references else f"{label} / ours" for label in labels]
    found = {(key(row), called(row)): row for row in rows}
    lines = [[line, *(_cell(found.get((line, label))) for label in labels)] for line in dict.fromkeys(map(key, rows))]
    return markdown(["", *heads], lines)


def _name(row: Figure) -> str:
    """The row's label without its memory, which the line names."""
    return row.label.replace(f" ({row.params['memory']})", "") if "memory" in row.params else row.label


def _cell(row: Figure | None) -> str:
    if row is None:
        return "-"
    if "ratio" not in row.params:
        return sweeps.show_time(row)
    ratio = f"{row.params['ratio']:.3g}"
    return f"**{ratio}**" if place(row) == "ahead" else ratio


def place(row: Figure) -> str:
    """The peer is "ahead" or "behind" only where the whole interval of its time over ours is on one side of 1."""
    low, high = row.params["ratio_interval"]
    return "ahead" if high < 1 else "behind" if low > 1 else "level"


def _interval(row: Figure) -> str:
    if "ratio" not in row.params:
        return "1"
    low, high = row.params["ratio_interval"]
    return f"{row.params['ratio']:.3g} ({low:.3g} to {high:.3g})"


# The peer nearest to us in each of many cells, and in how many it is behind, level or ahead

LARGE = 1 << 26  # elements from which the memory alone decides


Nearest = dict[tuple[str, int], tuple[Figure, Figure]]


def find_nearest(rows: Sequence[Figure]) -> Nearest:
    """By (dtype, n): our own row, the first that others are compared with, and the peer with the least time."""
    ours: dict[tuple[str, int], Figure] = {}
    for row in rows:
        if row.seconds and "reference" not in row.params:
            ours.setdefault((row.dtype, row.n), row)
    found: Nearest = {}
    for row in rows:
        if not row.seconds or "ratio" not in row.params or row.name.startswith("vecadd"):
            continue
        cell = row.dtype, row.n
        if cell in ours and (cell not in found or row.params["ratio"] < found[cell][1].params["ratio"]):
            found[cell] = ours[cell], row
    return found


def nearest_peers(rows: Sequence[Figure]) -> list[str]:
    """Our time and the nearest peer's over ours; a line a size, a column a dtype. Peers that are ahead in bold."""
    found = find_nearest(rows)
    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    sizes = list(dict.fromkeys(row.n for row in rows))
    lines = [[show_size(n), *(_nearest_cell(found.get((dtype, n))) for dtype in dtypes)] for n in sizes]
    return [*markdown(["n: our time, nearest peer / ours", *dtypes], lines), "", _summary_of_nearest(found)]


def _summary_of_nearest(found: Nearest) -> str:
    """In how many cells the nearest peer is behind, level or ahead, and how much in the mean."""
    if not found:
        return "No peer was there."
    counts = Counter(place(nearest) for _, nearest in found.values())
    ours_over_its = {cell: 1 / nearest.params["ratio"] for cell, (_, nearest) in found.items()}
    text = (
        f"Of {len(found)} cells the nearest peer is behind in {counts['behind']}, level in {counts['level']} and "
        f"ahead in {counts['ahead']}; our time over its, geometric mean: "
        f"{geometric_mean(ours_over_its.values()):.3f}"
    )
    large = [over for (_, n), over in ours_over_its.items() if n >= LARGE]
    if large and len(large) < len(found):
        text += f", from {show_size(LARGE)} up {geometric_mean(large):.3f}, at most {max(large):.3f}"
    return f"{text}."


def _nearest_cell(found: tuple[Figure, Figure] | None) -> str:
    if found is None:
        return "-"
    ours, nearest = found
    against = f"{nearest.label} {nearest.params['ratio']:.3g}"
    return f"{show_seconds(ours.seconds or 0)}, {f'**{against}**' if place(nearest) == 'ahead' else against}"


# Routes: how near the choice is to the best, and hybrid to the better of host and GPU

CHOSEN, AGAIN = "add as routed", "add as routed, again"
HOST, TRANSFER, HYBRID = "add on the host", "add by transfer", "add by hybrid"
FIXED = (HOST, TRANSFER, HYBRID, "add on the device")
NEAR, LEVEL = 1.05, 1.02

RouteCell = dict[str, Figure]  # by rung


def describe_choice(rows: Sequence[Figure]) -> str:
    """How many cells take at most 1.05 of the best fixed choice's time, the worst cell, and the noise."""
    times = {name: _over_best(cell) for name, cell in _route_cells(rows) if CHOSEN in cell}
    if not times:
        return "No route was compared."
    furthest = max(times, key=lambda name: times[name])
    text = (
        f"Of {len(times)} cells the chosen route takes at most {NEAR} of the best fixed choice's time in "
        f"{sum(over <= NEAR for over in times.values())}, at most {times[furthest]:.3f} ({furthest})"
    )
    again = [cell[AGAIN].params["ratio"] for _, cell in _route_cells(rows) if AGAIN in cell]
    if again:
        text += f"; the same call, timed twice, differs by {min(again):.3f} to {max(again):.3f}"
    return f"{text}. {_describe_hybrid(rows)}".rstrip()


def _describe_hybrid(rows: Sequence[Figure]) -> str:
    """In how many cells processor and GPU together take at most 1.02 of the better one's time, and the worst cell."""
    over = {}
    for name, cell in _route_cells(rows):
        if HYBRID in cell and HOST in cell:
            alone = [_time_ratio(cell[rung]) for rung in (HOST, TRANSFER) if rung in cell]
            over[name] = _time_ratio(cell[HYBRID]) / min(alone)
    if not over:
        return ""
    furthest = max(over, key=lambda name: over[name])
    return (
        f"Hybrid takes at most {LEVEL} of the better one's time in {sum(each <= LEVEL for each in over.values())} of "
        f"{len(over)} cells, {min(over.values()):.3f} to {max(over.values()):.3f} ({furthest})."
    )


def describe_link(rows: Sequence[Figure]) -> str:
    """The share of the link's bound, and how far our way for ordinary memory is ahead of the driver's own."""
    found = {(row.name, row.params.get("memory")): row for row in rows if row.seconds}
    pinned, ordinary = found.get(("add", "pinned")), found.get(("add", "pageable"))
    driver = found.get(("pageable", "pageable"))
    parts = []
    if pinned and pinned.fraction and pinned.limit:
        parts.append(
            f"Pinned: {100 * pinned.fraction:.1f} % of the {pinned.limit:.1f} GB/s that the link's rates of this "
            "run allow, both directions at once"
        )
    if ordinary and driver:
        parts.append(
            f"ordinary memory: {_time_ratio(driver) / _time_ratio(ordinary):.1f} x the driver's own way for it"
        )
    both, host, link = found.get((HYBRID, "pinned")), found.get((HOST, "pinned")), pinned
    if both and host and link:
        better = min(_time_ratio(host), _time_ratio(link))
        parts.append(f"both together: {_time_ratio(both) / better:.3f} of the better one's time")
    return f"{'; '.join(parts)}." if parts else ""


def _over_best(cell: RouteCell) -> float:
    return 1 / min((_time_ratio(cell[rung]) for rung in FIXED if rung in cell), default=1)


def _time_ratio(row: Figure) -> float:
    return float(row.params.get("ratio", 1))


def _route_cells(rows: Sequence[Figure]) -> Iterator[tuple[str, RouteCell]]:
    """The rows that were timed, by dtype, size and memory."""
    cells: dict[str, RouteCell] = {}
    for row in rows:
        if row.seconds and "memory" in row.params and row.params.get("reference", row.name) == CHOSEN:
            cells.setdefault(f"{row.dtype} {show_size(row.n)}, {row.params['memory']}", {})[row.name] = row
    yield from cells.items()


# Where others are faster than vecadd by the whole 95 % interval

WIDTH = 120
NAMED = 3  # as many cells are named one by one
PLACES = {
    "peer-device": "one addition on a GPU",
    "peer-queued": "additions on a GPU, one after the other",
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
        for name in dict.fromkeys(map(_choose_name(run.sweep), rows)):
            cells = [row for row in rows if _choose_name(run.sweep)(row) == name]
            lines += _lines_of_faster(f"{name} ({PLACES[run.sweep]})", cells)
    return [*(lines or ["- None."]), "", f"*{origin(runs)}.*"]


def _lines_of_faster(what: str, cells: Sequence[Figure]) -> list[str]:
    faster = [row for row in cells if place(row) == "ahead"]
    if not faster:
        return []
    shares = sorted(100 * (1 - row.params["ratio"]) for row in faster)
    least, most = (f"{share:.2g}" for share in (shares[0], shares[-1]))
    by = most if least == most else f"{least} to {most}"
    text = f"- {what}: {by} % less time in {len(faster)} of {len(cells)} cells{_show_cells(faster, cells)}"
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _show_cells(faster: Sequence[Figure], cells: Sequence[Figure]) -> str:
    largest = max(row.n for row in faster)
    if len(faster) <= NAMED:
        return f" ({', '.join(map(_show_cell, faster))})"
    return f", all of up to {show_size(largest)} elements" if largest < max(row.n for row in cells) else ""


def _show_cell(row: Figure) -> str:
    layout = row.sweep == "peer-layouts"
    return f"{row.params['form']}, {row.dtype}" if layout else f"{show_size(row.n)} {row.dtype}"


def _is_other(row: Figure) -> bool:
    return bool(row.seconds) and "ratio" in row.params and not row.name.startswith(("vecadd", "moving as much"))


def _choose_name(sweep: str) -> Callable[[Figure], str]:
    """What a line is about: the library, and its form where it has several; of layouts the library alone."""
    return (lambda row: row.name.partition(" ")[0]) if sweep == "peer-layouts" else (lambda row: row.name)
