"""Summaries of the tables of routes: how near the choice is to the best, and hybrid to the better of host and GPU."""

from collections.abc import Iterator, Sequence

from vecadd.figures import Figure
from vecadd.tables import show_size

CHOSEN, AGAIN = "add as routed", "add as routed, again"
HOST, TRANSFER, HYBRID = "add on the host", "add by transfer", "add by hybrid"
FIXED = (HOST, TRANSFER, HYBRID, "add on the device")
NEAR, LEVEL = 1.05, 1.02

Cell = dict[str, Figure]  # by rung


def of_choice(rows: Sequence[Figure]) -> str:
    """How many cells take at most 1.05 of the best fixed choice's time, the worst cell, and the noise."""
    times = {name: _over_best(cell) for name, cell in _cells(rows) if CHOSEN in cell}
    if not times:
        return "No route was compared."
    furthest = max(times, key=lambda name: times[name])
    text = (
        f"Of {len(times)} cells the chosen route takes at most {NEAR} of the best fixed choice's time in "
        f"{sum(over <= NEAR for over in times.values())}, at most {times[furthest]:.3f} ({furthest})"
    )
    again = [cell[AGAIN].params["ratio"] for _, cell in _cells(rows) if AGAIN in cell]
    if again:
        text += f"; the same call, timed twice, differs by {min(again):.3f} to {max(again):.3f}"
    return f"{text}. {of_hybrid(rows)}".rstrip()


def of_hybrid(rows: Sequence[Figure]) -> str:
    """In how many cells processor and GPU together take at most 1.02 of the better one's time, and the worst cell."""
    over = {}
    for name, cell in _cells(rows):
        if HYBRID in cell and HOST in cell:
            alone = [_ratio(cell[rung]) for rung in (HOST, TRANSFER) if rung in cell]
            over[name] = _ratio(cell[HYBRID]) / min(alone)
    if not over:
        return ""
    furthest = max(over, key=lambda name: over[name])
    return (
        f"Hybrid takes at most {LEVEL} of the better one's time in {sum(each <= LEVEL for each in over.values())} of "
        f"{len(over)} cells, {min(over.values()):.3f} to {max(over.values()):.3f} ({furthest})."
    )


def of_link(rows: Sequence[Figure]) -> str:
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
        parts.append(f"ordinary memory: {_ratio(driver) / _ratio(ordinary):.1f} x the driver's own way for it")
    both, host, link = found.get((HYBRID, "pinned")), found.get((HOST, "pinned")), pinned
    if both and host and link:
        parts.append(f"both together: {_ratio(both) / min(_ratio(host), _ratio(link)):.3f} of the better one's time")
    return f"{'; '.join(parts)}." if parts else ""


def _over_best(cell: Cell) -> float:
    return 1 / min((_ratio(cell[rung]) for rung in FIXED if rung in cell), default=1)


def _ratio(row: Figure) -> float:
    return float(row.params.get("ratio", 1))


def _cells(rows: Sequence[Figure]) -> Iterator[tuple[str, Cell]]:
    """The rows that were timed, by dtype, size and memory."""
    cells: dict[str, Cell] = {}
    for row in rows:
        if row.seconds and "memory" in row.params and row.params.get("reference", row.name) == CHOSEN:
            cells.setdefault(f"{row.dtype} {show_size(row.n)}, {row.params['memory']}", {})[row.name] = row
    yield from cells.items()
